//! Flags of `baler analyze`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DecodingArgs, DocumentFormat, GiveUpArgs, WhereArgs, values};

/// Flags of `baler analyze`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// Where the records come from, for instance file:///folder
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_FROM",
        hide_env_values = true,
        required_unless_present = "merge"
    )]
    pub(crate) from: Option<String>,
    /// Keep the results in this file, go on with those that it has, and acknowledge chunks when their
    /// records are in it
    ///
    /// A consumer that is killed and started again with the same file loses nothing and counts
    /// nothing twice. --merge adds the files of several consumers up.
    #[arg(long, value_name = "FILE")]
    pub(crate) partial: Option<PathBuf>,
    /// How often the file of --partial is written while records come
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) partial_interval: Duration,
    /// Add up files of --partial instead of reading a medium
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["from", "follow", "partial"])]
    pub(crate) merge: Vec<PathBuf>,
    /// Receive like `receive --follow`, until a signal or --idle-timeout
    ///
    /// Chunks are acknowledged when they are read, or with --partial when their records are in its
    /// file. Other consumers of the same queue or group do not get them. Without this flag, the
    /// records that a folder or topic has now are read, and nothing is taken.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop when the source was read to its end and nothing more arrives for this long [default: never]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    /// Only records of these types: full names, last parts, or either with `*`
    #[arg(long = "type", value_name = "PATTERN", num_args = 1..)]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) condition: WhereArgs,
    /// Only records logged at this time or later: RFC 3339, or nanoseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub(crate) since: Option<i64>,
    /// Only records logged before this time
    #[arg(long, value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub(crate) until: Option<i64>,
    /// Only traces with these ids
    #[arg(long = "trace", value_name = "ID", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) traces: Vec<i64>,
    /// A trace that lasts longer is invalid
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    pub(crate) max_trace_duration: Duration,
    /// How many records may wait for the rest of their traces; 1 million take some 50 MiB
    ///
    /// Beyond it, complete traces are closed first, and then those that have been idle longest. A
    /// trace that further records could have made valid counts as incomplete, with the reason
    /// `evicted`.
    #[arg(long, value_name = "N", default_value = "4M", value_parser = values::count)]
    pub(crate) max_waiting: u64,
    /// Add the ends of calls that are missing among before and after events
    #[arg(long)]
    pub(crate) repair: bool,
    /// Count calls within a node as dependencies, too: recursion
    #[arg(long)]
    pub(crate) self_loops: bool,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Write graphs, call trees, sequence diagrams, lists and a flame graph to files in this folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Write a page for a browser to this file; it needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the calls of every valid trace as Kieker's executions to this medium, for instance
    /// kieker-log:DIR
    ///
    /// Kieker's own tools then read traces of spans and of events. Each call becomes an
    /// OperationExecutionRecord; the signature of an asynchronous one begins with `async`. The command
    /// ends as `send` does when the medium does not take them: with code 69 if it is given up.
    #[arg(long, value_name = "URI", conflicts_with_all = ["merge", "partial"])]
    pub(crate) executions: Option<String>,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// Write the address that a tcp: or kafka+mock: source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}
