//! What to measure.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Parser;

use crate::medium::Medium;
use crate::output::Format;

/// Records a second of 1, 2 and 4 consumers of 1, 4 and 16 partitions, or of one queue.
#[derive(Debug, Clone, Parser)]
#[command(name = "scaling", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Read from this broker only, `amqp` or `kafka-mock`; may be given several times
    #[arg(long, value_name = "NAME", value_parser = crate::medium::brokers())]
    pub only: Vec<Medium>,

    /// Consumers, several separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    pub consumers: Vec<NonZeroUsize>,

    /// Partitions of the topic, several separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,4,16"
    )]
    pub partitions: Vec<u16>,

    /// Records in a chunk, several separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "32,1024"
    )]
    pub chunk_records: Vec<usize>,

    /// Chunks in each repetition [default: 20000 of up to 100 records, 6000 larger ones]
    #[arg(long, value_name = "N")]
    pub chunks: Option<NonZeroU64>,

    /// How often to measure each row
    #[arg(long, value_name = "R", default_value_t = NonZeroUsize::MIN.saturating_add(2))]
    pub repetitions: NonZeroUsize,

    /// Which load, and in which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write the rows, with machine, command and commit, to scaling.json in this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) medium: Medium,
    pub(super) consumers: usize,
    /// 1 for a queue.
    pub(super) partitions: u16,
    pub(super) chunk_records: usize,
}

impl Args {
    pub(super) fn cases(&self) -> Vec<Case> {
        let media = match self.only.is_empty() {
            true => vec![Medium::Amqp, Medium::KafkaMock],
            false => self.only.clone(),
        };
        let mut cases = Vec::new();
        for medium in media {
            for chunk_records in self.chunk_records.iter().copied() {
                let partitions: &[u16] = match medium {
                    Medium::KafkaMock => &self.partitions,
                    _ => &[1],
                };
                for partitions in partitions.iter().copied() {
                    cases.extend(self.consumers.iter().map(|consumers| Case {
                        medium,
                        consumers: consumers.get(),
                        partitions,
                        chunk_records,
                    }));
                }
            }
        }
        cases
    }

    pub(super) fn chunks(&self, case: Case) -> u64 {
        let default = match case.chunk_records {
            ..=100 => 20_000,
            _ => 6_000,
        };
        self.chunks.map_or(default, NonZeroU64::get)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
        // A queue has three rows for each size of chunk, a topic nine.
        assert_eq!(Args::parse_from(["scaling"]).cases().len(), 24);
        assert!(Args::try_parse_from(["scaling", "--only", "tcp"]).is_err());
    }
}
