//! One case, checked or measured.

use std::hint::black_box;
use std::time::Duration;

use baler_common::container::Compression;
use baler_monitoring::usage::thread_cpu_time;
use baler_rig::statistics::to_f64;

use super::args::Codec;
use super::case::Case;
use super::formats::{Avro, Baler, Format, Otlp, Postcard};
use super::packing::Packing;
use super::piece::Piece;
use crate::Failure;

/// The number of records that are measured repeatedly; the others count only for the size.
///
/// Their chunks fit into a core's second-level cache (0.4 MB in chunks of 32, 0.1 in chunks of
/// 1,024). Their batches do not, so encoding reads from the third-level cache, like a collector.
/// With fewer batches the processor's branch predictors would learn them.
const MEASURED_RECORDS: usize = 16_384;

/// The most measured chunks.
const MEASURED_CHUNKS: usize = 2_048;

/// One repetition, in nanoseconds a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) encode_ns: f64,
    pub(super) decode_ns: f64,
    /// From a chunk to rows, for formats that decode to columns.
    pub(super) rows_ns: Option<f64>,
}

/// A format with its compression, and memory that is reused for the next chunk, as on both ends.
pub(super) struct Work {
    format: Box<dyn Format>,
    packing: Packing,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Work {
    pub(super) fn new(case: &Case) -> Result<Self, Failure> {
        let format: Box<dyn Format> = match case.codec {
            Codec::Columnar => Box::new(Baler::columnar(case.compression)?),
            Codec::Kieker => Box::new(Baler::kieker()),
            Codec::Avro => Box::new(Avro::new()?),
            Codec::Otlp => Box::new(Otlp),
            Codec::Postcard => Box::new(Postcard),
        };
        // Baler's container compresses its own body.
        let packing = match case.codec {
            Codec::Columnar => Compression::None,
            _ => case.compression,
        };
        Ok(Self {
            format,
            packing: Packing::new(packing)?,
            plain: Vec::new(),
            packed: Vec::new(),
        })
    }

    fn encode(&mut self, piece: &Piece<'_>) -> Result<&[u8], Failure> {
        self.plain.clear();
        self.format.encode(piece, &mut self.plain)?;
        self.packing.pack(&self.plain, &mut self.packed)
    }

    /// Encodes and decodes all records once, and compares; returns the bytes of all chunks.
    ///
    /// # Errors
    ///
    /// The decoded records differ from the encoded ones.
    pub(super) fn check(&mut self, pieces: &[Piece<'_>]) -> Result<usize, Failure> {
        let mut bytes = 0;
        for piece in pieces {
            let sent = self.encode(piece)?.to_vec();
            bytes += sent.len();
            if !self.has(&sent, piece)? {
                return Err(Failure::new("other records came out than went in"));
            }
        }
        Ok(bytes)
    }

    fn has(&mut self, sent: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        let chunk = self.packing.unpack(sent, &mut self.packed)?;
        self.format.has(chunk, piece)
    }

    /// One repetition, each of whose parts takes at least this CPU time.
    ///
    /// # Errors
    ///
    /// A chunk cannot be encoded or decoded.
    pub(super) fn measure(
        &mut self,
        pieces: &[Piece<'_>],
        at_least: Duration,
    ) -> Result<Sample, Failure> {
        let (mut sent, mut records) = (Vec::new(), 0);
        for piece in pieces.iter().take(MEASURED_CHUNKS) {
            if records < MEASURED_RECORDS {
                sent.push(self.encode(piece)?.to_vec());
                records += piece.batch.len();
            }
        }
        let pieces = &pieces[..sent.len()];
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
        let mut are_rows_made = true;
        let rows_ns = ns(records, at_least, &mut || {
            for sent in &sent {
                let chunk = self.packing.unpack(sent, &mut self.packed)?;
                are_rows_made &= self.format.rows(chunk)?.is_some();
                if !are_rows_made {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(Sample {
            encode_ns,
            decode_ns,
            rows_ns: are_rows_made.then_some(rows_ns),
        })
    }
}

/// Repeats `pass` until it took long enough. Returns nanoseconds of the thread's CPU time a record.
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
        let taken = thread_cpu_time() - begun;
        if taken >= at_least {
            return Ok(taken.as_secs_f64() * 1e9 / to_f64(passes * records as u64));
        }
    }
}

#[cfg(test)]
mod tests;
