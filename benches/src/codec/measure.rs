//! One case, checked or measured.

use std::hint::black_box;
use std::time::Duration;

use baler_common::container::Compression;
use baler_rig::checksum::CallChecksum;
use baler_rig::cpu::thread_cpu_time;
use baler_rig::statistics::to_f64;

use super::case::{Case, Codec};
use super::formats::{Arrow, Avro, Baler, Calls as _, Format, Json, Otlp, Postcard};
use super::packing::Packing;
use super::piece::{Input, Piece};
use crate::failure::Failure;

/// So many records are measured again and again; the others only count for the size.
///
/// Their chunks fit a core's second cache (0.4 MB in chunks of 32, 0.1 in those of 1,024).
/// Their batches do not: with strings they take some 2 MB in chunks of 32, so that encoding reads
/// from the third cache what a collector has just built. Every format has that cost; fewer batches
/// would be learned by heart by the core's branch predictors instead.
const MEASURED_RECORDS: usize = 16_384;

/// How many chunks are measured at most: those of few records are many.
const MEASURED_CHUNKS: usize = 2_048;

/// One repetition, in nanoseconds a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) encode_ns: f64,
    pub(super) decode_ns: f64,
    /// From records as an application emits them.
    pub(super) encode_records_ns: Option<f64>,
    /// To rows that are looked at.
    pub(super) decode_rows_ns: Option<f64>,
}

/// What is done with a case.
#[derive(Debug, Clone, Copy)]
enum Task {
    Check,
    /// Each part for at least so long.
    Measure(Duration),
}

/// What comes of it.
enum Answer {
    /// Bytes of all chunks.
    Checked(usize),
    Measured(Sample),
}

/// Encodes and decodes all records once, and compares; the bytes of all chunks.
///
/// # Errors
///
/// Something other came out than went in, or nothing.
pub(super) fn check(case: &Case, input: &Input<'_>) -> Result<usize, Failure> {
    match dispatch(case, input, Task::Check)? {
        Answer::Checked(bytes) => Ok(bytes),
        Answer::Measured(_) => Err(Failure::new("nothing was checked")),
    }
}

/// One repetition, each of whose parts takes at least this CPU time.
///
/// # Errors
///
/// What [`check`] found right is wrong now.
pub(super) fn measure(
    case: &Case,
    input: &Input<'_>,
    at_least: Duration,
) -> Result<Sample, Failure> {
    match dispatch(case, input, Task::Measure(at_least))? {
        Answer::Measured(sample) => Ok(sample),
        Answer::Checked(_) => Err(Failure::new("nothing was measured")),
    }
}

fn dispatch(case: &Case, input: &Input<'_>, task: Task) -> Result<Answer, Failure> {
    let pieces = input.pieces.get(&case.chunk_records);
    let pieces = pieces.ok_or_else(|| Failure::new("there is no load"))?;
    let string_table = case.string_table;
    let own = case.codec == Codec::Columnar;
    // These compress their own body.
    let packed = Packing::new(if own {
        Compression::None
    } else {
        case.compression
    })?;
    match case.codec {
        Codec::Columnar => {
            let executions = input.executions.clone();
            let format = Baler::columnar(case.compression, executions)?;
            Work::new(format, packed).does(pieces, task)
        }
        Codec::Kieker => {
            Work::new(Baler::kieker(input.executions.clone()), packed).does(pieces, task)
        }
        Codec::Arrow => Work::new(Arrow::new(string_table), packed).does(pieces, task),
        Codec::Avro => Work::new(Avro::new()?, packed).does(pieces, task),
        Codec::Otlp => Work::new(Otlp, packed).does(pieces, task),
        Codec::Postcard => Work::new(Postcard { string_table }, packed).does(pieces, task),
        Codec::Json => Work::new(Json, packed).does(pieces, task),
    }
}

/// A format with its compression, and memory that is kept between chunks, as both ends keep it.
struct Work<F> {
    format: F,
    packing: Packing,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl<F: Format> Work<F> {
    fn new(format: F, packing: Packing) -> Self {
        Self {
            format,
            packing,
            plain: Vec::new(),
            packed: Vec::new(),
        }
    }

    fn does(mut self, pieces: &[Piece<'_>], task: Task) -> Result<Answer, Failure> {
        match task {
            Task::Check => self.check(pieces).map(Answer::Checked),
            Task::Measure(at_least) => {
                let mut records = 0;
                let few = pieces.iter().take(MEASURED_CHUNKS).take_while(|piece| {
                    let more = records < MEASURED_RECORDS;
                    records += piece.calls.len();
                    more
                });
                let few: Vec<_> = few.collect();
                self.measure(&few, at_least).map(Answer::Measured)
            }
        }
    }

    fn encode(&mut self, piece: &Piece<'_>) -> Result<&[u8], Failure> {
        self.plain.clear();
        self.format.encode(piece, &mut self.plain)?;
        self.packing.pack(&self.plain, &mut self.packed)
    }

    fn check(&mut self, pieces: &[Piece<'_>]) -> Result<usize, Failure> {
        let mut expected = CallChecksum::default();
        let mut found = CallChecksum::default();
        let mut bytes = 0;
        for piece in pieces {
            for call in piece.plain().flatten() {
                expected.add(&call);
            }
            let sent = self.encode(piece)?.to_vec();
            bytes += sent.len();
            let chunk = self.packing.unpack(&sent, &mut self.packed)?;
            let decoded = self.format.decode(chunk)?;
            decoded.each(&mut |call| found.add(&call))?;
            drop(decoded);
            if found != expected {
                return Err(Failure::new("other records came out than went in"));
            }
            if let Some(rows) = self.format.decode_rows(chunk)?
                && rows != piece.calls.len()
            {
                return Err(Failure::new("other rows came out than went in"));
            }
        }
        Ok(bytes)
    }

    fn measure(&mut self, pieces: &[&Piece<'_>], at_least: Duration) -> Result<Sample, Failure> {
        let mut sent = Vec::with_capacity(pieces.len());
        for piece in pieces {
            sent.push(self.encode(piece)?.to_vec());
        }
        let records: usize = pieces.iter().map(|piece| piece.calls.len()).sum();
        let repeat = Repeat { records, at_least };
        let encode_ns = repeat.ns(&mut || {
            for piece in pieces {
                black_box(self.encode(piece)?);
            }
            Ok(())
        })?;
        let decode_ns = repeat.ns(&mut || {
            let mut count = 0;
            for sent in &sent {
                let chunk = self.packing.unpack(sent, &mut self.packed)?;
                count += black_box(self.format.decode(chunk)?).count();
            }
            match count == records {
                true => Ok(()),
                false => Err(Failure::new("decoding again yields other records")),
            }
        })?;
        let mut measured = true;
        let from_records = repeat.ns(&mut || {
            for piece in pieces {
                self.plain.clear();
                measured &= self.format.encode_records(piece, &mut self.plain)?;
                black_box(self.packing.pack(&self.plain, &mut self.packed)?);
                if !measured {
                    break;
                }
            }
            Ok(())
        })?;
        let mut looked_at = true;
        let to_rows = repeat.ns(&mut || {
            for sent in &sent {
                let chunk = self.packing.unpack(sent, &mut self.packed)?;
                looked_at &= self.format.decode_rows(chunk)?.is_some();
                if !looked_at {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(Sample {
            encode_ns,
            decode_ns,
            encode_records_ns: measured.then_some(from_records),
            decode_rows_ns: looked_at.then_some(to_rows),
        })
    }
}

/// How a part is measured.
struct Repeat {
    records: usize,
    at_least: Duration,
}

impl Repeat {
    /// Does it until it took long enough; nanoseconds of CPU time a record.
    ///
    /// The thread's CPU time, so that other programs take none of it but what they push out of the
    /// caches.
    fn ns(&self, pass: &mut dyn FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
        let begun = thread_cpu_time();
        let mut passes = 0_u64;
        loop {
            pass()?;
            passes += 1;
            let taken = thread_cpu_time().saturating_sub(begun);
            if taken >= self.at_least {
                let records = u64::try_from(self.records).unwrap_or(u64::MAX);
                return Ok(taken.as_secs_f64() * 1e9 / to_f64(passes.saturating_mul(records)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use baler_rig::recording::Recording;
    use clap::Parser as _;

    use super::super::args::Args;
    use super::*;

    /// Each case once, on records of its own.
    #[test]
    fn what_is_encoded_comes_out_of_every_format() {
        let recording = Recording::generated(1, 300, 1);
        let args = Args::parse_from(["codec", "--chunk-records=1,7,300"]);
        let pieces = [1, 7, 300].map(|size| (size, Piece::all(&recording, size).unwrap()));
        let input = Input {
            pieces: HashMap::from(pieces),
            executions: recording.executions(),
        };
        for case in Case::all(&args) {
            let bytes = check(&case, &input);
            assert!(bytes.is_ok_and(|bytes| bytes > 0), "{case:?}");
        }
    }

    /// A decoder that yields something else is found out.
    #[test]
    fn other_records_are_noticed() {
        struct Wrong(Json);

        impl Format for Wrong {
            type Decoded<'a> = <Json as Format>::Decoded<'a>;

            fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
                self.0.encode(piece, out)
            }

            fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Self::Decoded<'a>, Failure> {
                let mut rows = self.0.decode(chunk)?;
                if let Some(row) = rows.last_mut() {
                    row.ess += 1;
                }
                Ok(rows)
            }
        }
        let recording = Recording::generated(1, 100, 1);
        let pieces = Piece::all(&recording, 10).unwrap();
        let work = Work::new(Wrong(Json), Packing::None);
        assert!(work.does(&pieces, Task::Check).is_err());
    }
}
