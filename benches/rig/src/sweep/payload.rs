//! How many bytes a chunk of any size has: the load is encoded to see.

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use super::load::{Load, Timing};
use crate::failure::Failure;
use crate::statistics::to_f64;

/// Bytes of payload per record, by size of the chunk.
pub(super) struct Payloads {
    compression: Compression,
    seed: u64,
}

impl Payloads {
    pub(super) fn new(compression: &str, seed: u64) -> Result<Self, Failure> {
        let compression = compression.parse::<Compression>();
        Ok(Self {
            compression: compression.map_err(Failure::cannot("compress"))?,
            seed,
        })
    }

    /// Encodes a part of the load in chunks of this size at this rate; yields the bytes per record.
    pub(super) fn per_record(&self, records: u32, rate: f64) -> Result<f64, Failure> {
        let timing = Timing {
            first_ns: 1_700_000_000_000_000_000,
            start_ns: 1_700_000_000_000_000_000,
            interval_ns: 1e9 / rate,
        };
        let mut load = Load::new(self.seed, 0, timing);
        let mut serializer =
            NativeSerializer::new(self.compression).map_err(Failure::cannot("compress"))?;
        let header = ChunkHeader::new(ChunkIdentity {
            producer: ProducerId::new(1),
            epoch: Epoch {
                start_unix_ns: 1,
                random: 1,
            },
            lane: 0,
            sequence: 1,
        });
        // Enough chunks for a mean, whatever their size.
        let records = u64::from(records.max(1));
        let chunks = (4_096 / records).clamp(2, 256);
        let (mut builder, mut bytes, mut position) = (BatchBuilder::new(), 0_usize, 1);
        for _ in 0..chunks {
            for _ in 0..records {
                let pushed = builder.push(load.record(position));
                pushed.map_err(Failure::cannot("make a batch"))?;
                position += 1;
            }
            let mut chunk = Vec::new();
            serializer
                .serialize(&builder.take(), &header, &mut chunk)
                .map_err(Failure::cannot("make a chunk"))?;
            bytes += chunk.len();
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Ok(to_f64(bytes) / to_f64(chunks * records))
    }
}

/// A number of records, rounded, as a size.
pub(super) fn whole(records: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1 and at most a u32"
    )]
    let whole = records.round().max(1.0) as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_chunks_have_fewer_bytes_a_record() {
        let payloads = Payloads::new("none", 1).unwrap();
        let bytes = [1, 16, 256].map(|size| payloads.per_record(size, 10_000.0).unwrap());
        assert!(
            bytes[0] > 2.0 * bytes[1] && bytes[1] > 1.2 * bytes[2],
            "{bytes:?}"
        );
    }
}
