//! Groups of flags that several commands take. A configuration file has a section for each.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use baler_analysis::filters::{Condition, Fields};
use clap::{ArgAction, Args, ValueEnum};

use super::values::{duration, listen_address, size};
use crate::exit::Failure;
use crate::patience::GIVE_UP;

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Log more on standard error: -v what happens, -vv details, -vvv everything
    ///
    /// BALER_LOG takes directives of tracing instead, for instance `baler_monitoring=debug`; with -v
    /// they are added to it. NO_COLOR switches colours off.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print nothing but errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// A TOML file with defaults for flags; the command line and the environment come first
    ///
    /// Each command has a section, such as `[send]`. `[global]`, `[observe]` and `[shipping]` are for
    /// flags that several commands have. A key is a flag's name with underscores: wait_time = "1s".
    #[arg(long, global = true, value_name = "FILE", env = "BALER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// How long the program may take to finish after SIGINT, SIGTERM or the last record
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        default_value = "10s",
        env = "BALER_SHUTDOWN_TIMEOUT",
        value_parser = duration
    )]
    pub(crate) shutdown_timeout: Duration,
}

/// How a command shows its result on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// JSON and nothing else
    Json,
    /// Text and tables, as wide as the terminal or as COLUMNS says
    Table,
}

/// Which records pass.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct WhereArgs {
    /// Only records for which this is true: an expression in CEL over the record's fields
    ///
    /// `traceId > 10 && operationSignature.contains("book")`; besides the fields there are type,
    /// timestamp (nanoseconds), producer, epoch, lane and sequence, and `fields["a name"]`. A
    /// record that lacks a field does not match; has(name) says that records may lack it. A name
    /// that the first chunk lacks, and values that cannot be judged, end the command with code 65.
    #[arg(id = "where", long = "where", value_name = "EXPRESSION")]
    condition: Option<String>,
}

impl WhereArgs {
    /// Parses the condition, if there is one.
    ///
    /// # Errors
    ///
    /// The expression is invalid.
    pub(crate) fn expression(&self) -> Result<Option<Condition>, Failure> {
        let condition = self.condition.as_deref();
        let parsed = condition.map(|text| Condition::new("--where", text));
        Ok(parsed.transpose()?)
    }
}

/// Which fields of each record are passed on.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct FieldsArgs {
    /// Only these fields of each record, separated by commas: `name`, or `Type.name` for one type
    ///
    /// Records keep their type and timestamp. Fields keep the order of the type, and a field that a
    /// type lacks is not there. A name that the first chunk lacks ends the command with code 65;
    /// `Type.name` may come later.
    #[arg(
        id = "fields",
        long = "fields",
        value_name = "LIST",
        value_delimiter = ','
    )]
    names: Vec<String>,
}

impl FieldsArgs {
    /// Returns the chosen fields, if any.
    ///
    /// # Errors
    ///
    /// A name is empty.
    pub(crate) fn chosen(&self) -> Result<Option<Fields>, Failure> {
        let chosen = (!self.names.is_empty()).then(|| Fields::new("--fields", &self.names));
        Ok(chosen.transpose()?)
    }
}

/// How chunks are decoded.
#[derive(Debug, Clone, Default, Args)]
// clap leaves a group empty whose struct has a flattened field.
#[group(args = ["dictionaries", "decoded_limit"])]
#[cfg_attr(feature = "kieker", group(arg = "schemas"))]
pub(crate) struct DecodingArgs {
    /// A dictionary that chunks were compressed with, or a folder with files `*.zdict`; may be given
    /// several times
    ///
    /// This is for chunks that are read. --dictionary, of commands that send, is for new chunks.
    #[arg(long, value_name = "PATH")]
    pub(crate) dictionaries: Vec<PathBuf>,
    /// The most memory that one decoded chunk may take; the workers of `receive` share it in equal
    /// parts [default: 1GiB]
    ///
    /// A chunk that would take more is treated as one that does not decode: it goes to the
    /// quarantine. A few chunks of each worker can be in work at the same time.
    #[arg(long, value_name = "SIZE", env = "BALER_DECODED_LIMIT", value_parser = size)]
    pub(crate) decoded_limit: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) schemas: SchemasArgs,
}

/// Record types beside Kieker's own.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct SchemasArgs {
    /// Record types beside Kieker's own: an .irl file, or a folder with files *.irl below it
    ///
    /// They are for chunks in Kieker's container, streams, logs and messages of Kieker, which do not
    /// describe their records. A setting `schema` in a URI comes first.
    #[cfg(feature = "kieker")]
    #[arg(id = "schemas", long = "schemas", value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
}

/// How long a command waits for a medium that moves nothing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GiveUpArgs {
    /// End with code 69 when no pending chunk has moved for this long, whether the medium can be
    /// reached or not [default: 30s with --idle-timeout, otherwise never]
    #[arg(long, value_name = "DURATION", env = "BALER_GIVE_UP", value_parser = duration)]
    give_up: Option<Duration>,
}

impl GiveUpArgs {
    /// Returns how long to wait before giving up. A command with an idle timeout does not wait for
    /// ever for a medium that cannot report whether something comes.
    pub(crate) fn limit(&self, idle_timeout: Option<Duration>) -> Option<Duration> {
        self.give_up.or_else(|| idle_timeout.map(|_| GIVE_UP))
    }
}

/// Where a running command shows its figures.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Observability")]
pub(crate) struct ObserveArgs {
    /// Serve /metrics (Prometheus), /livez, /readyz and /tap at this port of the loopback, or at
    /// address:port
    #[arg(long, value_name = "ADDR", env = "BALER_METRICS", value_parser = listen_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write the address of --metrics to this file; with port 0 the system chooses a free port
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_port_file: Option<PathBuf>,
    /// Write the last figures to this file at the end, as node_exporter's textfile collector reads
    /// them
    #[arg(long, value_name = "FILE", env = "BALER_METRICS_FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Let /tap show records at an address that is not loopback, to clients that send the token in
    /// this file (`tap --token-file`)
    #[arg(long, value_name = "FILE", env = "BALER_METRICS_TAP")]
    pub(crate) metrics_tap: Option<PathBuf>,
    /// /readyz fails when the oldest chunk has been unconfirmed for this long
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        env = "BALER_READY_AGE",
        value_parser = duration
    )]
    pub(crate) ready_age: Duration,
}

/// How a result is shown.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// How the result is shown
    #[arg(
        id = "format",
        long = "format",
        value_enum,
        default_value = "table",
        env = "BALER_FORMAT"
    )]
    pub(crate) choice: DocumentFormat,
}

/// Where chunks go that cannot be processed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct QuarantineArgs {
    /// Keep chunks that do not decode, or that the target of a relay refuses: in this folder, or in
    /// the topic or queue of this URI
    ///
    /// The origin and the reason are kept beside each chunk. Without a quarantine, chunks that do not
    /// decode are counted and skipped; a chunk that a relay's target refuses stays at the source, and
    /// the relay ends.
    #[arg(
        long,
        value_name = "DIR|URI",
        env = "BALER_QUARANTINE",
        hide_env_values = true
    )]
    pub(crate) quarantine: Option<String>,
    /// The most bytes that the folder of the quarantine may hold; the first chunk that does not fit
    /// stays at the source, and the command ends [default: 1GiB and 10,000 chunks; bytes that
    /// do not fit and do not decode are discarded and counted]
    #[arg(long, value_name = "SIZE", env = "BALER_QUARANTINE_BYTES", value_parser = size)]
    pub(crate) quarantine_bytes: Option<NonZeroUsize>,
}

/// When a chunk counts as one that crashes its consumer.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AttemptsArgs {
    /// Put a chunk into the quarantine after it crashed this command this number of times; 0 is never
    ///
    /// In a quarantine that is a folder, a file counts how often the command died while it processed
    /// a chunk. Otherwise the count is the medium's, which only quorum queues of RabbitMQ have: how
    /// often a chunk was delivered and not settled.
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) max_attempts: u32,
}

/// What happens to chunks while the medium is away.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Spool")]
pub(crate) struct SpoolArgs {
    /// Store chunks in this folder while the medium cannot be reached, and send them when it can, in
    /// this run or the next; each process needs a folder of its own
    #[arg(long, value_name = "DIR", env = "BALER_SPOOL")]
    pub(crate) spool: Option<PathBuf>,
    /// How long the medium may be away before chunks are stored on disk [default: 1s]
    #[arg(long, value_name = "DURATION", env = "BALER_SPOOL_AFTER", value_parser = duration)]
    pub(crate) spool_after: Option<Duration>,
    /// The most bytes of the spool on disk; when it is full, chunks wait in memory as without a spool
    /// [default: 1GiB]
    #[arg(long, value_name = "SIZE", env = "BALER_SPOOL_BYTES", value_parser = size)]
    pub(crate) spool_bytes: Option<NonZeroUsize>,
    /// Whether a chunk is forced to disk before it counts as spooled [default: fsync]
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "fsync",
        env = "BALER_SPOOL_SYNC"
    )]
    pub(crate) spool_sync: Option<SpoolSyncChoice>,
}

/// What a spooled chunk survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpoolSyncChoice {
    /// It is forced to disk, so it survives a crash of the machine; all chunks that wait share one call
    Fsync,
    /// It is left to the operating system, so it survives the end of the process, but not a crash of
    /// the machine
    None,
}
