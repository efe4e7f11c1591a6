//! Flags of single commands.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{
    AttemptsArgs, DecodingArgs, DocumentFormat, FieldsArgs, GiveUpArgs, ObserveArgs,
    QuarantineArgs, ShippingArgs, SpoolArgs, WhereArgs, media, values,
};

/// Flags of `baler demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How long customers visit the shop, in seconds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub(crate) seconds: u64,
    /// How many threads serve customers
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) threads: NonZeroUsize,
    /// Write what the traces show as a page for a browser to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Flags of `baler generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Where the records go, for instance file:///folder
    #[arg(long, value_name = "URI", env = "BALER_TO", hide_env_values = true)]
    pub(crate) to: String,
    /// How many records
    #[arg(long, value_name = "N", default_value = "100000", value_parser = values::count)]
    pub(crate) records: u64,
    /// Records per second over all threads, at times fixed in advance [default: as fast as possible]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// How many threads emit
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// The same seed makes the same records, thread by thread
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}

/// Flags of `baler inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A chunk, a segment, a folder of them, or a URI
    #[arg(value_name = "PATH|URI")]
    pub(crate) what: String,
    /// Show this many records of each chunk, the first ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) records: usize,
    /// Look at no more than this many chunks
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) count: usize,
    /// Show at most this many strings of each chunk
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) strings: usize,
    /// Stop when a live endpoint was read to its end and nothing more arrives for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Write the address that a tcp: or kafka+mock: endpoint listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}

/// Flags of `baler replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// What to send on: the folder of a quarantine, or the URI of a medium with chunks or with a
    /// quarantine
    #[arg(value_name = "DIR|URI")]
    pub(crate) what: String,
    /// Where the chunks go, for instance file:///folder
    #[arg(long, value_name = "URI", required_unless_present = "check")]
    pub(crate) to: Option<String>,
    /// Send nothing: only report which chunks decode now
    #[arg(long, conflicts_with_all = ["to", "remove", "where", "fields"])]
    pub(crate) check: bool,
    /// Remove from the folder what the target has confirmed; not with --where and --fields, which
    /// leave something out
    #[arg(long, conflicts_with_all = ["where", "fields"])]
    pub(crate) remove: bool,
    /// Stop when a medium was read to its end and nothing more arrives for this long
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = values::duration)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) condition: WhereArgs,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Flags of `baler send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_FROM", hide_env_values = true,
        help = "Where the records come from, for instance file:///folder",
        long_help = format!(
            "Where the records come from:\n\n{}\n\n\
             With jsonl:FILE?follow, a file is read while it is written, also when it is rotated. \
             FILE.position says up to where its lines are confirmed, and the next run goes on \
             there; position=FILE names another file. Of names with *, it lies in the last folder \
             without *, and has _ for each *: jsonl:/var/log/*.log has \
             /var/log/_.log.position. Lines that are not JSON objects go to the quarantine. A \
             line's field `type` names the type of its record; type=NAME chooses another field. \
             origin adds the file and the offset of each line.\n\n\
             With kieker-log:DIR?follow, a log of Kieker is read while it is written, and \
             DIR.position says up to where its records are settled. Records that cannot be read go \
             to the quarantine; with kieker-log:DIR?on_bad_line=stop, the first one ends the \
             command. The exit code is 65 either way.",
            media::sources()
        )
    )]
    pub(crate) from: String,
    /// Where the records go, for instance file:///folder
    #[arg(long, value_name = "URI", env = "BALER_TO", hide_env_values = true)]
    pub(crate) to: String,
    /// Wait for more at the end of a source
    ///
    /// `?follow` in the URI of lines and logs (jsonl:, text:, kieker-log:) does the same, and saves a
    /// position, where the next run goes on.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop when the source was read to its end and nothing more arrives for this long [default: never]
    ///
    /// With this flag, --give-up limits the wait for the source as well as the wait for the target.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) condition: WhereArgs,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    #[command(flatten)]
    pub(crate) attempts: AttemptsArgs,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}

/// Flags of `baler tap`.
#[derive(Debug, Args)]
pub(crate) struct TapArgs {
    #[arg(
        value_name = "URI",
        env = "BALER_TAP",
        hide_env_values = true,
        help = "What to look at, for instance http://127.0.0.1:9464 or file:///folder",
        long_help = format!("What to look at:\n\n{}", media::tapped())
    )]
    pub(crate) from: String,
    /// Only records of these types: full names, last parts, or either with `*`
    #[arg(long = "type", value_name = "PATTERN", num_args = 1..)]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) condition: WhereArgs,
    /// Begin with the oldest chunk that the medium has, not with the next one that arrives
    #[arg(long)]
    pub(crate) from_start: bool,
    /// Stop after this many records [default: never]
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count: Option<u64>,
    /// Show at most this many records per second, and count the others [default: all]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// Stop when the medium was read to its end and nothing more arrives for this long [default: never]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// A file with the token that a running command asks for (--metrics-tap)
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How records are shown: one line each, or one JSON object each
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Add its identity to each JSON record: producer, epoch, lane, sequence, index
    #[arg(long)]
    pub(crate) identity: bool,
}

/// Flags of `baler top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the process shows its metrics: the address of its --metrics, as a URL or host:port
    #[arg(
        value_name = "URL",
        default_value = "http://127.0.0.1:9464",
        env = "BALER_TOP_ADDRESS",
        hide_env_values = true
    )]
    pub(crate) address: String,
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    pub(crate) interval: Duration,
    /// Look twice, an interval apart, print what was seen, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// How --once prints it
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: DocumentFormat,
}

/// Flags of `baler validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[arg(
        long,
        value_name = "URI",
        help = "Check this source; without --from and --to, all sections of the configuration file",
        long_help = format!(
            "Check this source. Without --from and --to, all sections of the configuration file are \
             checked.\n\n{}",
            media::sources()
        )
    )]
    pub(crate) from: Option<String>,
    #[arg(
        long,
        value_name = "URI",
        help = "Check this target",
        long_help = format!("Check this target:\n\n{}", media::targets())
    )]
    pub(crate) to: Option<String>,
    /// Connect to the endpoints as well: reach, credentials, topic or queue, the broker's limits
    ///
    /// No chunk is sent or taken. A queue or exchange is declared as its URI says, a folder is made,
    /// a Kafka broker may make a topic of its own accord; a reader of a topic joins its group for a
    /// moment.
    #[arg(long)]
    pub(crate) connect: bool,
    /// How long connecting to one endpoint may take
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    pub(crate) timeout: Duration,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}
