//! Flags of `baler verify`, and of the processes that it starts.

use baler_common::container::Compression;
use clap::{Args, ValueEnum};

use super::{ChunkRecords, DocumentFormat, ObserveArgs, ShippingArgs, SpoolArgs, values};

/// Flags of `baler verify`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Producers and consumers are processes of their own, so that they can be killed. Producers send \
numbered records through the endpoint, and consumers compare every record with what it must be. \
The command ends with 0 only if everything acknowledged was delivered, nothing else was, nothing \
was altered, no reader let a copy through, each thread's records came in order, every producer's \
last line adds up, and a fresh record passes at the end; else with 76. It ends with 69 when the \
endpoint does not answer; nothing was judged then.

Endpoints, of which the second, third and fourth are in builds with the feature `faults`:
  file:                    folders in the temporary folder
  tcp:                     processes on the loopback; with broker faults a `baler relay` in between
  kafka+mock:              three brokers inside this process; they keep 5 MiB a partition
  amqp+private:            a RabbitMQ node of its own; rabbitmq-server must be installed
  amqp://..., kafka://...  yours: the queue or topic is yours to choose, and must be empty
  tcp://..., file:///...   yours: one consumer listens there, or follows the folder

A run with the same seed and flags makes the same records and injects the same faults in the same \
order; how processes and threads interleave is up to the machine.")]
pub(crate) struct VerifyArgs {
    /// The endpoint to verify: the URI of your own, or file:, tcp:, kafka+mock:, amqp+private:
    #[arg(long, value_name = "URI", env = "BALER_TO", hide_env_values = true)]
    pub(crate) to: String,
    /// How many records
    #[arg(long, value_name = "N", default_value = "20000", value_parser = values::count)]
    pub(crate) records: u64,
    /// The same seed makes the same records and the same faults in the same order
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Faults to inject, in an order that the seed decides; `all` for those of the endpoint
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub(crate) faults: Vec<FaultChoice>,
    /// How often each fault is injected
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// How many producers, each a process
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) producers: u16,
    /// How many threads of each producer make records
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) threads: u16,
    /// How many consumers, each a process; `tcp:` and `file:` have one for each producer
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) consumers: u16,
    /// Give each producer a spool, in the temporary folder
    #[arg(long)]
    pub(crate) spool: bool,
    /// How long nothing may arrive at the end, while consumers have their broker, before records
    /// count as missing
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) patience: std::time::Duration,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Falsify the events of one consumer, to test that the oracle notices
    #[arg(long, value_enum, hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
    /// Close a chunk at this many records, or let the collector choose [default: a four-hundredth of
    /// all records, between 16 and 1,024]
    #[arg(long, value_name = "N|auto", value_parser = values::chunk_records)]
    pub(crate) chunk_records: Option<ChunkRecords>,
    /// How chunks are compressed: none, lz4, zstd, or zstd:1 to zstd:22
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(crate) compression: Compression,
}

impl VerifyArgs {
    /// Returns the flags with which its producers ship.
    pub(crate) fn shipping(&self) -> Vec<String> {
        let records = self.chunk_records.map_or_else(
            || (self.records / 400).clamp(16, 1_024).to_string(),
            |records| records.to_string(),
        );
        let flags = [
            ["--chunk-records", &records],
            ["--compression", &self.compression.to_string()],
            ["--wait-time", "20ms"],
            // The oracle gives up, not the producers.
            ["--give-up", "1h"],
        ];
        flags.concat().into_iter().map(str::to_owned).collect()
    }
}

/// Flags of a producer's process.
#[derive(Debug, Args)]
pub(crate) struct VerifyProducerArgs {
    #[arg(long)]
    pub(crate) to: String,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) producer: u16,
    #[arg(long)]
    pub(crate) life: u16,
    #[arg(long)]
    pub(crate) threads: u16,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Flags of a consumer's process.
#[derive(Debug, Args)]
pub(crate) struct VerifyConsumerArgs {
    #[arg(long)]
    pub(crate) from: String,
    #[arg(long)]
    pub(crate) seed: u64,
}

/// How the events of a consumer are falsified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// A record is altered
    Alter,
    /// A chunk is reported twice
    Duplicate,
    /// A record that was never issued is reported
    Invent,
    /// A chunk is not reported
    Lose,
    /// A chunk is reported after the next one
    Reorder,
}

/// A fault by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum FaultChoice {
    /// Every fault that the endpoint can have
    All,
    /// The broker is not there when producers and consumers start
    BrokerDownAtStart,
    /// The broker ends in good order and starts again
    BrokerRestart,
    /// The broker is killed and starts again with what it has on disk
    BrokerKill,
    /// Partitions get another leader
    LeaderMove,
    /// The consumer group gets another coordinator
    CoordinatorMove,
    /// The broker answers requests with errors
    RequestErrors,
    /// The broker answers slowly
    Throttle,
    /// Connections transfer nothing for a while, then go on
    Stall,
    /// Connections transfer nothing any more and stay open; new ones work
    HalfOpen,
    /// Connections are reset in the middle of a chunk
    Reset,
    /// Connections become slow for a while
    SlowLink,
    /// The broker closes all connections
    ConnectionClosed,
    /// The broker blocks publishers for a while, and notifies them
    Blocked,
    /// A producer gets SIGTERM, and another life goes on
    ProducerTerm,
    /// A producer gets SIGKILL, and another life goes on
    ProducerKill,
    /// A consumer gets SIGTERM, and another life goes on
    ConsumerTerm,
    /// A consumer gets SIGKILL after it processed a chunk and before it settled it
    ConsumerKill,
    /// A consumer joins, and leaves again
    Rebalance,
    /// Consumers are slow
    ConsumerSlow,
    /// Producers cannot write to their disk for a while
    DiskFull,
    /// A producer is killed, and its last write is found torn
    TornWrite,
    /// Foreign bytes among the chunks
    Poison,
    /// Producers make more records than their queues hold, with a policy that drops
    Overflow,
}

impl FaultChoice {
    /// Returns the name, as it is typed.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests;
