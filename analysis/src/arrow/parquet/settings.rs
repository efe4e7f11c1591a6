//! The settings of a folder of Parquet files.

use std::time::Duration;

use super::super::schema::Times;

/// The output of a [`ParquetFolder`](super::ParquetFolder), and the conditions that end its files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParquetSettings {
    /// Folders by logging time, in UTC. Default none.
    pub by_time: Option<TimePartition>,
    /// Folders by the producer of the chunk. Default no.
    pub by_producer: bool,
    /// The unit of points in time. Default nanoseconds.
    pub times: Times,
    /// Whether to write the columns of
    /// [`Converter::with_identity`](super::super::Converter::with_identity). Default no.
    pub identity: bool,
    /// Files end when they have this number of records together. Default 1 Mi.
    pub records: usize,
    /// Files end when they have about this number of bytes together. Default 128 MiB.
    pub bytes: usize,
    /// Files end when they have records of this number of chunks together. All these chunks are in
    /// work until then, so the source's demand should not be lower. Default 4,096.
    pub chunks: usize,
    /// Files end this time after their first record. Default one minute.
    pub age: Duration,
    /// Files end when nothing has arrived for this time. Default two seconds.
    pub idle: Duration,
}

impl Default for ParquetSettings {
    fn default() -> Self {
        Self {
            by_time: None,
            by_producer: false,
            times: Times::default(),
            identity: false,
            records: 1 << 20,
            bytes: 128 << 20,
            chunks: 4_096,
            age: Duration::from_secs(60),
            idle: Duration::from_secs(2),
        }
    }
}

/// Folders by time, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePartition {
    /// `logged_day=2026-11-21`.
    Day,
    /// `logged_day=2026-11-21/logged_hour=09`.
    Hour,
}
