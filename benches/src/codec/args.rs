//! The options of the measurement.

use std::num::NonZeroUsize;

use baler_common::container::Compression;
use clap::{Parser, ValueEnum};

use crate::output::OutputArgs;

/// The largest chunk to measure.
const MAX_CHUNK_RECORDS: i64 = 65_536;

/// Bytes and nanoseconds a record, beside other formats.
#[derive(Debug, Clone, Parser)]
#[command(name = "codec", version, max_term_width = 100)]
pub struct Args {
    /// Seed, and output of the rows.
    #[command(flatten)]
    pub output: OutputArgs,

    /// How many records [default: 65536, with --quick 2100]
    #[arg(long, value_name = "N")]
    pub records: Option<NonZeroUsize>,

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

    /// Measure too few records for meaningful figures, only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

/// A format of self-contained chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Codec {
    /// Baler's own container.
    Columnar,
    /// Kieker's container: rows and a string table.
    Kieker,
    /// An object container file of Avro.
    Avro,
    /// Spans of OpenTelemetry's protocol.
    Otlp,
    /// Rows of postcard after a string table; its integers have variable length.
    Postcard,
}

impl Codec {
    /// Its name in tables, JSON and flags.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
