//! Flags of `baler receive`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[cfg(feature = "kieker")]
use super::AdaptiveArgs;
use super::{
    AttemptsArgs, DecodingArgs, FieldsArgs, GiveUpArgs, ObserveArgs, QuarantineArgs, WhereArgs,
    values,
};

/// Flags of `baler receive`.
#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// Where the records come from, for instance file:///folder
    #[arg(long, value_name = "URI", env = "BALER_FROM", hide_env_values = true)]
    pub(crate) from: String,
    /// Wait for more at the end of a source
    ///
    /// `?follow` in the URI of lines and logs (jsonl:, text:, kieker-log:) does the same, and saves a
    /// position, where the next run goes on.
    #[arg(long)]
    pub(crate) follow: bool,
    /// How many workers receive and decode at the same time, each on a thread of its own
    ///
    /// With Kafka, each worker is a member of the consumer group; with RabbitMQ, a competing consumer
    /// of the queue. With other media, one reader distributes its lanes among them. Records of
    /// different lanes interleave.
    #[arg(long, value_name = "N", default_value = "1", env = "BALER_WORKERS")]
    pub(crate) workers: NonZeroUsize,
    /// Stop after exactly this many records [default: never]
    ///
    /// The last chunk is acknowledged only if all of its records were taken; otherwise the medium
    /// delivers it again to the next reader.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count: Option<u64>,
    /// Stop when the source was read to its end and nothing more arrives for this long [default: never]
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
    #[command(flatten)]
    pub(crate) condition: WhereArgs,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
    /// How records are written
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RecordFormat,
    /// Where records go instead of standard output: a file, or a folder for csv and parquet
    ///
    /// Records follow those that are there already. A torn record at the end, which a killed run
    /// leaves, is moved to a file of the same name and `.torn`.
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Empty the file of --output, or each CSV file that gets records, before the first record
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write an apostrophe before CSV texts that begin with `=`, `+`, `-` or `@`, so that a
    /// spreadsheet does not take them for formulas
    #[arg(long)]
    pub(crate) csv_escape_formulas: bool,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    #[command(flatten)]
    pub(crate) attempts: AttemptsArgs,
    /// Measure the response times of operations, and show them in the summary
    #[arg(long)]
    pub(crate) operations: bool,
    /// Add its identity to each JSON record or row of Parquet: producer, epoch, lane, sequence, index
    #[arg(long)]
    pub(crate) identity: bool,
    #[cfg(feature = "parquet")]
    #[command(flatten)]
    pub(crate) parquet: parquet::ParquetArgs,
    /// Write the address that a tcp: or kafka+mock: source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    #[cfg(feature = "kieker")]
    #[command(flatten)]
    pub(crate) adaptive: AdaptiveArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// One CSV file per record type, in the folder of --output
    Csv,
    /// One JSON object per line, one line per record
    Json,
    /// The fields of each record as a JSON line; of lines of text, the text as it came in
    Lines,
    /// Write no records, only the summary
    None,
    /// Files of Parquet, in folders by record type, in the folder of --output
    #[cfg_attr(not(feature = "parquet"), value(hide = true))]
    Parquet,
    /// One line per record: cut to the width of a terminal (or to COLUMNS), else whole
    Table,
}

impl RecordFormat {
    /// Whether the format can show the identity of a record.
    pub(crate) fn has_identity(self) -> bool {
        match self {
            Self::Json | Self::Parquet => true,
            Self::Csv | Self::Lines | Self::None | Self::Table => false,
        }
    }
}

/// Flags of `--format parquet`.
#[cfg(feature = "parquet")]
mod parquet {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use baler_analysis::arrow::{ParquetSettings, TimePartition, Times};
    use clap::{Args, ValueEnum};

    use crate::args::values;

    /// Flags of `baler receive --format parquet`.
    #[derive(Debug, Clone, Args)]
    pub(crate) struct ParquetArgs {
        /// Divide the Parquet files of a record type into folders; several names are separated by commas
        #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
        pub(crate) parquet_by: Vec<ParquetBy>,
        /// Close Parquet files when all open ones together have this many records [default: 1048576]
        #[arg(long, value_name = "N")]
        pub(crate) parquet_records: Option<NonZeroUsize>,
        /// Close a Parquet file this long after its first record; its chunks are acknowledged then
        /// [default: 1m]
        #[arg(long, value_name = "DURATION", value_parser = values::duration)]
        pub(crate) parquet_age: Option<Duration>,
        /// The unit of points in time in Parquet files: nanos, or micros for Spark
        #[arg(long, value_name = "UNIT", value_enum, default_value = "nanos")]
        pub(crate) parquet_times: ParquetTimes,
    }

    /// A folder below that of the record type.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub(crate) enum ParquetBy {
        /// The day of logging, in UTC
        Day,
        /// The day and the hour of logging, in UTC
        Hour,
        /// The producer
        Producer,
    }

    /// A unit of points in time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub(crate) enum ParquetTimes {
        /// Microseconds, rounded down
        Micros,
        /// Nanoseconds
        Nanos,
    }

    impl ParquetArgs {
        /// Returns the settings of the sink. `identity` comes from a flag that JSON shares.
        pub(crate) fn settings(&self, identity: bool) -> ParquetSettings {
            let mut settings = ParquetSettings::default();
            settings.identity = identity;
            for by in &self.parquet_by {
                match by {
                    // A partition by hour has the day, too.
                    ParquetBy::Day => {
                        settings.by_time.get_or_insert(TimePartition::Day);
                    }
                    ParquetBy::Hour => settings.by_time = Some(TimePartition::Hour),
                    ParquetBy::Producer => settings.by_producer = true,
                }
            }
            settings.times = match self.parquet_times {
                ParquetTimes::Micros => Times::Micros,
                ParquetTimes::Nanos => Times::Nanos,
            };
            if let Some(records) = self.parquet_records {
                settings.records = records.get();
            }
            if let Some(age) = self.parquet_age {
                settings.age = age;
            }
            settings
        }

        /// Whether one of the flags was given.
        pub(crate) fn is_given(&self) -> bool {
            !self.parquet_by.is_empty()
                || self.parquet_records.is_some()
                || self.parquet_age.is_some()
                || self.parquet_times != ParquetTimes::Nanos
        }
    }
}
