//! What to measure.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

use super::case::Part;
use crate::output::Format;

/// The largest chunk to measure: with it, a chunk of Kieker's is still below the collector's cap
/// of encoded bytes, so that the number of records is what closes a chunk.
const MAX_CHUNK_RECORDS: i64 = 8_192;

/// Records a second, CPU seconds and bytes of each part of the way.
#[derive(Debug, Clone, Parser)]
#[command(name = "pipeline", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Records in each repetition [default: 200000, with --quick 3000]
    #[arg(long, value_name = "N")]
    pub records: Option<NonZeroUsize>,

    /// How often to measure each row [default: 7, with --quick 1]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// Measure these parts only; may be given several times
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<Part>,

    /// Records in a chunk, several separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "32,128,1024",
        value_parser = clap::value_parser!(u32).range(1..=MAX_CHUNK_RECORDS)
    )]
    pub chunk_records: Vec<u32>,

    /// Where `file` and `file-read` have their folders [default: the system's for temporary
    /// files, which may be no disk]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Which load, and in which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write the rows, with machine, command and commit, to pipeline.json in this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// So few records that the figures mean nothing: only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

impl Args {
    pub(super) fn records(&self) -> usize {
        let default = if self.quick { 3_000 } else { 200_000 };
        self.records.map_or(default, NonZeroUsize::get)
    }

    pub(super) fn repetitions(&self) -> usize {
        let default = if self.quick { 1 } else { 7 };
        self.repetitions.map_or(default, NonZeroUsize::get)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["pipeline", "--only", "file-read", "--chunk-records", "8,16"]);
        assert_eq!(args.only, [Part::FileRead]);
        assert_eq!(args.chunk_records, [8, 16]);
        assert_eq!((args.records(), args.repetitions()), (200_000, 7));
        for wrong in ["--chunk-records=0", "--records=0", "--only=everything"] {
            assert!(
                Args::try_parse_from(["pipeline", wrong]).is_err(),
                "{wrong}"
            );
        }
    }
}
