//! The body of the fuzz target `sinks`; `main` replays its corpus on stable.

use std::io::{self, Write};

use baler_analysis::sinks::{CsvFolder, JsonLines, TextTable};
use baler_analysis::{Parcel, Stage};
use baler_common::container::{ChunkDecoder, Limits};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;

use crate::counting;

#[path = "../../../common/tests/it/fuzz_bodies.rs"]
#[expect(dead_code, reason = "shared with the targets of common")]
mod fuzz_bodies;

/// The most memory of a chunk's decoded columns.
const BUDGET: usize = 16 << 20;

/// The most memory of a sink beside the budget.
const SLACK: usize = 64 << 20;

/// After this number of bytes the output is full: a chunk of a hundred bytes can be written as
/// gigabytes.
const OUTPUT: usize = 8 << 20;

/// Decodes the bytes as columns and as a chunk, with corrected lengths and checksums, and writes
/// the result to every sink. No sink takes more memory than the budget and 64 MiB.
pub(crate) fn sinks(bytes: &[u8]) {
    let whole = std::iter::once(bytes.to_vec());
    for chunk in whole.chain(fuzz_bodies::chunks(bytes)) {
        for sink in [json, table, csv] {
            let peak = counting::peak_of(|| {
                if let Ok(chunk) = ChunkDecoder::new(limits())
                    .with_well_known_types(&WELL_KNOWN_TYPES)
                    .decode(&chunk)
                {
                    sink(Parcel::new(chunk));
                }
            });
            assert!(peak <= BUDGET + SLACK, "{} MiB", peak >> 20);
        }
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.body_bytes = 1 << 20;
    limits.decoded_bytes = BUDGET;
    limits
}

/// An output with room for this number of bytes.
struct Output(usize);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => {
                self.0 = left;
                Ok(bytes.len())
            }
            None => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the parcel. A sink may fail, since its output may be full.
fn write(mut sink: impl Stage, parcel: Parcel) {
    drop(sink.accept(parcel).and_then(|()| sink.finish()));
}

fn json(parcel: Parcel) {
    write(
        JsonLines::new(Output(OUTPUT), "memory").with_identity(),
        parcel,
    );
}

fn table(parcel: Parcel) {
    write(TextTable::new(Output(OUTPUT), "memory", Some(80)), parcel);
}

/// Files are as long as the records, and are made for small chunks only.
fn csv(parcel: Parcel) {
    if parcel.len() <= 256 {
        let folder = tempfile::tempdir().unwrap();
        write(CsvFolder::new(folder.path()), parcel);
    }
}
