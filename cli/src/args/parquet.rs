//! Flags of `baler receive --format parquet`.

use std::num::NonZeroUsize;
use std::time::Duration;

use baler_arrow::{ParquetSettings, TimePartition, Times};
use clap::{Args, ValueEnum};

use super::values;

/// Flags of `baler receive --format parquet`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ParquetArgs {
    /// Divide the Parquet files of a record type into folders; several names are separated by commas
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    pub(crate) parquet_by: Vec<ParquetBy>,
    /// Close Parquet files when all open ones together have this many records
    #[arg(long, value_name = "N")]
    pub(crate) parquet_records: Option<NonZeroUsize>,
    /// Close Parquet files when all open ones together have this size
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) parquet_bytes: Option<NonZeroUsize>,
    /// Close a Parquet file this long after its first record; its chunks are acknowledged then
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) parquet_age: Option<Duration>,
    /// Close Parquet files when nothing has arrived for this long
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) parquet_idle: Option<Duration>,
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
    /// What the sink is to do; `identity` comes from a flag that JSON shares.
    pub(crate) fn settings(&self, identity: bool) -> ParquetSettings {
        let mut settings = ParquetSettings::default();
        settings.identity = identity;
        for by in &self.parquet_by {
            match by {
                // Hours are in days.
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
        if let Some(bytes) = self.parquet_bytes {
            settings.bytes = bytes.get();
        }
        if let Some(age) = self.parquet_age {
            settings.age = age;
        }
        if let Some(idle) = self.parquet_idle {
            settings.idle = idle;
        }
        settings
    }

    /// Whether one of the flags was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.parquet_by.is_empty()
            || self.parquet_records.is_some()
            || self.parquet_bytes.is_some()
            || self.parquet_age.is_some()
            || self.parquet_idle.is_some()
            || self.parquet_times != ParquetTimes::Nanos
    }
}
