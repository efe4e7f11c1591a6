//! What to measure.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use baler_common::container::Compression;
use baler_rig::recording::Origin;
use clap::Parser;

use super::case::Codec;
use crate::output::Format;

/// The largest chunk to measure: the dictionaries of Arrow have positions of 16 bits.
const MAX_CHUNK_RECORDS: i64 = 65_536;

/// Bytes and nanoseconds a record, beside other formats.
#[derive(Debug, Clone, Parser)]
#[command(name = "codec", version, max_term_width = 100)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Which records: generated, kieker-log:DIR, or file:PATH with chunks of one's own, of which
    /// the operation executions are taken
    #[arg(long, value_name = "WORKLOAD", default_value = "generated")]
    pub workload: Origin,

    /// How many records at most [default: 65536, with --quick 2100]
    #[arg(long, value_name = "N")]
    pub records: Option<NonZeroUsize>,

    /// The step of the clock whose times are generated, in nanoseconds
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub clock_step: u32,

    /// How often to measure each row [default: 7, with --quick 1]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// Measure these formats only; may be given several times
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<Codec>,

    /// Records in a chunk, several separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,16,32,128,1024,8192",
        value_parser = clap::value_parser!(u32).range(1..=MAX_CHUNK_RECORDS)
    )]
    pub chunk_records: Vec<u32>,

    /// How to compress chunks, several separated by commas
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "none,lz4,zstd:1,zstd:3"
    )]
    pub compression: Vec<Compression>,

    /// Which load, and in which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write the rows, with machine, command and commit, to codec.json in this folder, and
    /// the table and charts beside them
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// So few records that the figures mean nothing: only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

impl Args {
    pub(super) fn records(&self) -> usize {
        let default = if self.quick { 2_100 } else { 65_536 };
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
        let args = Args::parse_from(["codec", "--only=postcard", "--compression=lz4,zstd:19"]);
        assert_eq!(args.only, [Codec::Postcard]);
        let zstd = Compression::Zstd { level: 19 };
        assert_eq!(args.compression, [Compression::Lz4, zstd]);
        for wrong in ["--chunk-records=0", "--compression=gzip", "--workload=log"] {
            assert!(Args::try_parse_from(["codec", wrong]).is_err(), "{wrong}");
        }
    }
}
