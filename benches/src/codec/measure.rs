//! One case, checked or measured.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use baler_common::container::Compression;
use baler_rig::clock::thread_cpu_time;
use baler_rig::statistics::to_f64;

use super::case::{Case, Codec};
use super::formats::{Arrow, Avro, Baler, Format, Json, Otlp, Postcard};
use super::packing::Packing;
use super::piece::Piece;
use crate::Failure;

/// The number of records that are measured again and again; the others only count for the size.
///
/// Their chunks fit a core's second cache (0.4 MB in chunks of 32, 0.1 in chunks of 1,024). Their batches
/// do not, so that encoding reads from the third cache, as a collector does. With fewer batches the
/// processor's branch predictors would learn them by heart.
const MEASURED_RECORDS: usize = 16_384;

/// The number of chunks that are measured at most.
const MEASURED_CHUNKS: usize = 2_048;

/// One repetition, in nanoseconds a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) encode_ns: f64,
    pub(super) decode_ns: f64,
}

/// The load by number of records a chunk.
pub(super) type Pieces = HashMap<usize, Vec<Piece>>;

/// Encodes and decodes all records once, and compares; yields the bytes of all chunks.
///
/// # Errors
///
/// The decoded records are not those that were encoded.
pub(super) fn check(case: &Case, pieces: &Pieces) -> Result<usize, Failure> {
    Work::new(case)?.check(load(case, pieces)?)
}

/// One repetition, each of whose parts takes at least this CPU time.
///
/// # Errors
///
/// A chunk cannot be encoded or decoded.
pub(super) fn measure(case: &Case, pieces: &Pieces, at_least: Duration) -> Result<Sample, Failure> {
    let mut records = 0;
    let few = load(case, pieces)?.iter().take(MEASURED_CHUNKS);
    let few = few.take_while(|piece| {
        let more = records < MEASURED_RECORDS;
        records += piece.batch.len();
        more
    });
    Work::new(case)?.measure(&few.collect::<Vec<_>>(), at_least)
}

fn load<'a>(case: &Case, pieces: &'a Pieces) -> Result<&'a [Piece], Failure> {
    let found = pieces.get(&case.chunk_records);
    Ok(found.ok_or_else(|| Failure::new("there is no load"))?)
}

/// A format with its compression, and memory that is used again for the next chunk, as both ends do.
struct Work {
    format: Box<dyn Format>,
    packing: Packing,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Work {
    fn new(case: &Case) -> Result<Self, Failure> {
        let format: Box<dyn Format> = match case.codec {
            Codec::Columnar => Box::new(Baler::columnar(case.compression)?),
            Codec::Kieker => Box::new(Baler::kieker()),
            Codec::Arrow => Box::new(Arrow::new()),
            Codec::Avro => Box::new(Avro::new()?),
            Codec::Otlp => Box::new(Otlp),
            Codec::Postcard => Box::new(Postcard),
            Codec::Json => Box::new(Json),
        };
        // Baler's container compresses its own body.
        let packing = match case.codec {
            Codec::Columnar => Compression::None,
            _ => case.compression,
        };
        Ok(Self::of(format, Packing::new(packing)?))
    }

    fn of(format: Box<dyn Format>, packing: Packing) -> Self {
        Self {
            format,
            packing,
            plain: Vec::new(),
            packed: Vec::new(),
        }
    }

    fn encode(&mut self, piece: &Piece) -> Result<&[u8], Failure> {
        self.plain.clear();
        self.format.encode(piece, &mut self.plain)?;
        self.packing.pack(&self.plain, &mut self.packed)
    }

    fn check(&mut self, pieces: &[Piece]) -> Result<usize, Failure> {
        let mut bytes = 0;
        for piece in pieces {
            let sent = self.encode(piece)?.to_vec();
            bytes += sent.len();
            let chunk = self.packing.unpack(&sent, &mut self.packed)?;
            let mut expected = piece.plain().flatten();
            let mut same = true;
            self.format
                .each(chunk, &mut |call| same &= expected.next() == Some(call))?;
            if !same || expected.next().is_some() {
                return Err(Failure::new("other records came out than went in"));
            }
        }
        Ok(bytes)
    }

    fn measure(&mut self, pieces: &[&Piece], at_least: Duration) -> Result<Sample, Failure> {
        let mut sent = Vec::with_capacity(pieces.len());
        for piece in pieces {
            sent.push(self.encode(piece)?.to_vec());
        }
        let records: usize = pieces.iter().map(|piece| piece.batch.len()).sum();
        let encode_ns = ns(records, at_least, &mut || {
            for piece in pieces {
                black_box(self.encode(piece)?);
            }
            Ok(())
        })?;
        let decode_ns = ns(records, at_least, &mut || {
            let mut count = 0;
            for sent in &sent {
                let chunk = self.packing.unpack(sent, &mut self.packed)?;
                count += self.format.decode(chunk)?;
            }
            match count == records {
                true => Ok(()),
                false => Err(Failure::new("decoding again yields other records")),
            }
        })?;
        Ok(Sample {
            encode_ns,
            decode_ns,
        })
    }
}

/// Repeats `pass` until it took long enough; nanoseconds of the thread's CPU time a record.
fn ns(
    records: usize,
    at_least: Duration,
    pass: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let begun = thread_cpu_time();
    let mut passes = 0_u64;
    loop {
        pass()?;
        passes += 1;
        let taken = thread_cpu_time().saturating_sub(begun);
        if taken >= at_least {
            let records = u64::try_from(records).unwrap_or(u64::MAX);
            return Ok(taken.as_secs_f64() * 1e9 / to_f64(passes.saturating_mul(records)));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Args;
    use super::super::recording::{PlainCall, Recording};
    use super::*;

    /// Each case once, on records of its own.
    #[test]
    fn what_is_encoded_comes_out_of_every_format() {
        let recording = Recording::generated(1, 300);
        let args = Args::parse_from(["codec", "--chunk-records=1,7,300"]);
        let pieces = [1, 7, 300].map(|size| (size, Piece::all(&recording, size).unwrap()));
        let pieces = HashMap::from(pieces);
        for case in Case::all(&args) {
            let bytes = check(&case, &pieces);
            assert!(bytes.is_ok_and(|bytes| bytes > 0), "{case:?}");
        }
    }

    /// A decoder that yields something else is found out.
    #[test]
    fn other_records_are_noticed() {
        struct Wrong(Json);

        impl Format for Wrong {
            fn encode(&mut self, piece: &Piece, out: &mut Vec<u8>) -> Result<(), Failure> {
                self.0.encode(piece, out)
            }

            fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
                self.0.decode(chunk)
            }

            fn each(
                &mut self,
                chunk: &[u8],
                see: &mut dyn FnMut(PlainCall<'_>),
            ) -> Result<(), Failure> {
                let mut number = 0;
                self.0.each(chunk, &mut |call| {
                    number += 1;
                    let ess = call.ess + i32::from(number == 9);
                    see(PlainCall { ess, ..call });
                })
            }
        }
        let recording = Recording::generated(1, 100);
        let pieces = Piece::all(&recording, 10).unwrap();
        let check = |format: Box<dyn Format>| Work::of(format, Packing::None).check(&pieces);
        assert!(check(Box::new(Wrong(Json))).is_err());
        assert!(check(Box::new(Json)).is_ok());
    }
}
