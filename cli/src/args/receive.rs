//! Flags of `baler receive`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{DictionariesArgs, GiveUpArgs, ObserveArgs, QuarantineArgs, values};

/// Flags of `baler receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// Where the records come from: tcp://host:port listens there, kafka://host:port/topic joins a
    /// group, file:///folder reads
    #[arg(long, value_name = "URI", env = "BALER_FROM")]
    pub(crate) from: String,
    /// Wait for more at the end of a file source
    #[arg(long)]
    pub(crate) follow: bool,
    /// How many workers receive and decode at the same time, each on a thread of its own
    ///
    /// Of a Kafka topic each is a member of the group, of a queue a competing consumer; of other
    /// media one reader hands them its lanes. Records of different lanes interleave.
    #[arg(long, value_name = "N", default_value = "1", env = "BALER_WORKERS")]
    pub(crate) workers: NonZeroUsize,
    /// Stop after exactly so many records
    ///
    /// The chunk in which the last one lies is acknowledged only if nothing of it is left;
    /// otherwise the medium delivers it again, to whoever reads next.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count: Option<u64>,
    /// Stop when nothing came for so long, from when the source was at its end
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    /// Only records of these types: full names, last parts, or either with `*`
    #[arg(long = "type", value_name = "PATTERN", num_args = 1..)]
    pub(crate) types: Vec<String>,
    /// Only records logged at this time or later: RFC 3339, or nanoseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub(crate) since: Option<i64>,
    /// Only records logged before this time
    #[arg(long, value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub(crate) until: Option<i64>,
    /// How records are written
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RecordFormat,
    /// Where records go instead of standard output: a file, or a folder for csv and parquet
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) dictionaries: DictionariesArgs,
    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    /// Measure the response times of operations, and show them in the summary
    #[arg(long)]
    pub(crate) operations: bool,
    /// Add to each JSON record, or row of Parquet, who it is: producer, epoch, lane, sequence, index
    #[arg(long)]
    pub(crate) identity: bool,
    #[cfg(feature = "parquet")]
    #[command(flatten)]
    pub(crate) parquet: super::ParquetArgs,
    /// Write the address that a tcp source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// One CSV file a record type, in the folder of --output
    Csv,
    /// One JSON object a record, one record a line
    Json,
    /// Not at all: only the summary
    None,
    /// Files of Parquet, in folders by record type, in the folder of --output
    #[cfg(feature = "parquet")]
    Parquet,
    /// One line a record, cut to 100 columns
    Table,
}

impl RecordFormat {
    /// Whether a record can be written with who it is.
    pub(crate) fn has_identity(self) -> bool {
        match self {
            Self::Json => true,
            #[cfg(feature = "parquet")]
            Self::Parquet => true,
            Self::Csv | Self::None | Self::Table => false,
        }
    }
}
