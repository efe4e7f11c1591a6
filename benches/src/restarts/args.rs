//! What to measure.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Parser;

use crate::medium::Medium;
use crate::output::Format;

/// The time from a broker's return to the first chunk that arrives.
#[derive(Debug, Clone, Parser)]
#[command(name = "restarts", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Restart this broker only, `amqp` or `kafka-mock`; may be given several times
    #[arg(long, value_name = "NAME", value_parser = crate::medium::brokers())]
    pub only: Vec<Medium>,

    /// How often
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN.saturating_add(99))]
    pub rounds: NonZeroU32,

    /// How long the mock cluster's broker is away at most, in milliseconds; RabbitMQ takes its own
    /// time, and as much besides
    #[arg(long, value_name = "N", default_value_t = 6_000)]
    pub away: u32,

    /// How long the broker stays between two restarts, in milliseconds: longer than a member of a
    /// Kafka group takes to its next heartbeat (3 s), or restarts in a row end its session, which
    /// the mock cluster answers with a rebalance of 9 s
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub stays: u32,

    /// How long each outage lasts
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write the rows, with machine, command and commit, and every round, to restarts.json in
    /// this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

impl Args {
    pub(super) fn media(&self) -> Vec<Medium> {
        match self.only.is_empty() {
            true => vec![Medium::Amqp, Medium::KafkaMock],
            false => self.only.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["restarts", "--only", "kafka-mock"]);
        assert_eq!(args.media(), [Medium::KafkaMock]);
        assert!(Args::try_parse_from(["restarts", "--only", "tcp"]).is_err());
    }
}
