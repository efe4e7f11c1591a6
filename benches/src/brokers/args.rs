//! What to measure.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::case::{Broker, Way};
use crate::output::Format;

/// Records a second and CPU seconds of writing to a broker, beside the client library alone.
#[derive(Debug, Clone, Parser)]
#[command(name = "brokers", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Write to this broker only; may be given several times [default: all but `kafka`, and that
    /// one where the variable `KAFKA_BOOTSTRAP` names it]
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<Broker>,

    /// Write this way only, as the table names it; may be given several times [default: all]
    #[arg(long, value_name = "NAME", value_parser = Way::NAMES)]
    pub way: Vec<String>,

    /// What `KAFKA_BOOTSTRAP` names, for the results: product and version
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub kafka_is: String,

    /// Records in a chunk, several separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,32,1024",
        value_parser = clap::value_parser!(u32).range(1..=8_192)
    )]
    pub chunk_records: Vec<u32>,

    /// How often to measure each row [default: 7, with --quick 1]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// Records in each repetition of every row [default: what takes about a second, with --quick
    /// 500]
    #[arg(long, value_name = "N")]
    pub records: Option<NonZeroU64>,

    /// The kind of queue
    #[arg(long, value_enum, default_value_t = Queue::Quorum)]
    pub queue_type: Queue,

    /// Which load, and in which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write the rows, with machine, command and commit, to brokers.json in this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// So few records that the figures mean nothing: only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

/// The kind of queue, RabbitMQ's `x-queue-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Queue {
    /// On one node.
    Classic,
    /// Replicated by Raft; of one node here.
    Quorum,
}

impl Queue {
    /// RabbitMQ's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }
}

/// Where a Kafka cluster is that this run may use.
pub(super) fn kafka_bootstrap() -> Option<String> {
    std::env::var("KAFKA_BOOTSTRAP")
        .ok()
        .filter(|servers| !servers.is_empty())
}

impl Args {
    pub(super) fn repetitions(&self) -> usize {
        let default = if self.quick { 1 } else { 7 };
        self.repetitions.map_or(default, NonZeroUsize::get)
    }

    pub(super) fn records(&self, case: super::Case) -> u64 {
        let default = if self.quick { 500 } else { case.records() };
        self.records.map_or(default, NonZeroU64::get)
    }

    pub(super) fn brokers(&self) -> Vec<Broker> {
        if !self.only.is_empty() {
            return self.only.clone();
        }
        let mut brokers = vec![Broker::Amqp, Broker::KafkaMock];
        brokers.extend(kafka_bootstrap().map(|_| Broker::Kafka));
        brokers
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Case;
    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["brokers", "--only", "amqp", "--chunk-records", "8,16"]);
        // Awaiting, plain, and two sizes of chunks.
        assert_eq!(Case::all(&args).len(), 4);
        assert_eq!(args.repetitions(), 7);
        let one = ["brokers", "--only", "amqp", "--way", "baler"];
        assert_eq!(Case::all(&Args::parse_from(one)).len(), 3);
        assert!(Args::try_parse_from(["brokers", "--way", "another"]).is_err());
        assert!(Args::try_parse_from(["brokers", "--chunk-records=0"]).is_err());
    }
}
