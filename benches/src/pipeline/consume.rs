//! The receiving side: a reader whose chunks are decoded, checked and settled.

use std::time::Instant;

use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_rig::checksum::Checksum;

use crate::failure::Failure;

/// What a reader yielded so far.
#[derive(Debug, Default)]
pub(super) struct Consumed {
    pub(super) checksum: Checksum,
    pub(super) chunk_bytes: usize,
    decoder: ChunkDecoder,
}

impl Consumed {
    /// Takes chunks until there are so many records, the reader ends, or time is up.
    pub(super) fn take(
        &mut self,
        reader: &mut dyn ChunkReader,
        records: u64,
        by: Instant,
    ) -> Result<(), Failure> {
        while self.checksum.records < records {
            let received = reader.receive(by).map_err(Failure::cannot("receive"))?;
            let delivery = match received {
                Received::Chunk(delivery) => delivery,
                Received::End => return Ok(()),
                Received::Idle if Instant::now() >= by => return Ok(()),
                Received::Assigned { .. } | Received::Idle | Received::Revoked { .. } => continue,
                Received::Damaged(damaged) => {
                    let reason = format!("damaged: {}", damaged.reason);
                    return Err(Failure::new(reason));
                }
            };
            let decoded = self.decoder.decode(&delivery.bytes);
            let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
            self.checksum.add(&decoded.batch);
            self.chunk_bytes += delivery.bytes.len();
            let settled = reader.settle(delivery.token, Verdict::Ack);
            settled.map_err(Failure::cannot("settle"))?;
        }
        Ok(())
    }
}
