//! The command line: flags and their environment variables, before they are interpreted.

mod analyze;
mod check;
mod commands;
mod help;
#[cfg(feature = "instrument")]
mod instrument;
mod irl;
mod media;
mod probes;
mod receive;
mod relay;
mod shared;
mod shipping;
pub(crate) mod values;
mod verify;

use std::path::PathBuf;

use baler_rig::overhead::OverheadArgs;
use baler_rig::sweep::SweepArgs;
use clap::{FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use analyze::AnalyzeArgs;
pub(crate) use commands::{
    DemoArgs, GenerateArgs, InspectArgs, ReplayArgs, SendArgs, TapArgs, TopArgs, ValidateArgs,
};
#[cfg(feature = "instrument")]
pub(crate) use instrument::{FunctionsArgs, InstrumentArgs, InstrumentCommand};
pub(crate) use irl::{FromRustArgs, IrlArgs, IrlCommand, IrlFiles, IrlReading};
#[cfg(feature = "kieker")]
pub(crate) use probes::AdaptiveArgs;
pub(crate) use probes::{ProbesArgs, ProbesCommand, SwitchArgs, ViaArgs};
pub(crate) use receive::{ReceiveArgs, RecordFormat};
pub(crate) use relay::RelayArgs;
pub(crate) use shared::{
    AttemptsArgs, DecodingArgs, DocumentFormat, FieldsArgs, FormatArgs, GiveUpArgs, GlobalArgs,
    ObserveArgs, QuarantineArgs, SchemasArgs, SpoolArgs, SpoolSyncChoice, WhereArgs,
};
pub(crate) use shipping::{ChunkRecords, ContainerChoice, OverflowChoice, ShippingArgs};
pub(crate) use verify::{
    FaultChoice, Sabotage, VerifyArgs, VerifyConsumerArgs, VerifyProducerArgs,
};

use crate::config::{self, ConfigFile};
use crate::exit::{self, Failure};

/// Ships typed records in self-contained chunks, and takes them apart again.
#[derive(Debug, Parser)]
#[command(
    name = "baler",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The end of `baler overhead --help`.
const OVERHEAD: &str = "\
A method calls itself, ten deep by default, and each call has a probe: the benchmark MooBench. Every \
repetition of every row is a process of its own, in a random order. Figures are nanoseconds per \
instrumented call. `x clock` and `mean x` compare median and mean with two reads of the processor's \
cycle counter and nothing else, in the same run. `lost` is the share of calls without a record at the \
end. `bg CPU` is the time of all other threads, mostly the collector's. The variants do nothing but \
call, so a queue fills faster than in any application. Measure on a machine that does nothing else.";

/// The end of `baler sweep --help`.
const SWEEP: &str = "\
A writer makes records at a constant rate and sends them to the medium in chunks of each size. The \
records are synthetic calls, or the records of --records-from. A reader decodes them and counts \
them. Both are processes of their own, and so is the embedded cluster. For comparison, records are \
also sent with the client library alone, one record per message: `pipelined` is the library at its \
best, `awaiting` waits for each confirmation. Runs are in a random order, and each result is kept: \
after an interruption the same command goes on. CPU time is that of the writing process. Bytes are \
those of its connections, counted by the kernel. Latency is from the time when a record was due to \
the time when it is decoded. Intervals are 95 % confidence intervals of the means of runs. Measure \
on a machine that does nothing else.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a small shop with probes, ship its records, and analyse them
    Demo(DemoArgs),
    /// Make synthetic records and ship them
    Generate(GenerateArgs),
    /// Ship the records of a log or a medium to another medium
    Send(SendArgs),
    /// Receive records and print, store or measure them
    Receive(ReceiveArgs),
    /// Show response times, call trees and dependencies of traces
    Analyze(AnalyzeArgs),
    /// Pass chunks of a medium on to another one without decoding them
    Relay(RelayArgs),
    /// Send quarantined or stored chunks on, or some of their records
    ///
    /// Chunks are sent byte for byte.
    /// With --where or --fields, chunks are decoded, and the records that pass are sent in new chunks.
    /// Those have a producer and sequence of their own: consumers process them even if they processed
    /// the original chunks, and a second such replay sends every record once more.
    Replay(ReplayArgs),
    /// Show what is in chunks: headers, schemas, strings and records
    Inspect(InspectArgs),
    /// Show records as they pass; their consumers lose none
    Tap(TapArgs),
    /// List and switch the probes of connected programs
    Probes(ProbesArgs),
    /// Watch the figures of a running process in the terminal
    Top(TopArgs),
    /// Measure what a probe costs an application on this machine
    #[command(after_long_help = OVERHEAD)]
    Overhead(Box<OverheadArgs>),
    /// A process of `overhead` that measures
    #[command(hide = true)]
    OverheadOrder {
        /// What to measure
        order: String,
    },
    /// Measure what each chunk size costs on a medium, and recommend one
    #[command(after_long_help = SWEEP)]
    Sweep(Box<SweepArgs>),
    /// A process of `sweep`
    #[command(hide = true)]
    SweepOrder {
        /// What to do
        order: String,
    },
    /// Check files of Kieker's record language (.irl), and generate code
    Irl(IrlArgs),
    /// Put probes on the functions of a source tree, and remove them
    #[cfg(feature = "instrument")]
    Instrument(InstrumentArgs),
    /// Check a configuration and its endpoints before anything is sent
    Validate(Box<ValidateArgs>),
    /// Inject faults into an endpoint, and prove that nothing is lost
    Verify(VerifyArgs),
    /// A consumer of `verify`
    #[command(hide = true)]
    VerifyConsumer(VerifyConsumerArgs),
    /// A producer of `verify`
    #[command(hide = true)]
    VerifyProducer(VerifyProducerArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a manual page for the program and for each command
    Man {
        /// The folder; it is made if it is missing
        folder: PathBuf,
    },
}

impl Cli {
    /// Reads the command line and the environment. Ends the program as clap does if they are wrong
    /// and have no secret.
    ///
    /// # Errors
    ///
    /// A setting was given twice, as a flag and in the environment, or the configuration file is
    /// wrong.
    pub(crate) fn read() -> Result<Self, Failure> {
        // A first, lenient pass finds only the name of the configuration file.
        let typed = Self::command()
            .ignore_errors(true)
            .disable_help_flag(true)
            .disable_version_flag(true)
            .try_get_matches()
            .unwrap_or_default();
        let path = typed.try_get_one::<PathBuf>("config").ok().flatten();
        let file = path.map(|path| ConfigFile::load(path)).transpose()?;
        let command = match &file {
            Some(file) => config::apply(&Self::command(), &typed, file)?,
            None => Self::command(),
        };
        let matches = command.clone().try_get_matches();
        let matches = matches.map_err(|error| check::wrong_command_line(&error))?;
        check::flags(&command, &matches)?;
        config::refuse_contradictions(&command, &matches, file.as_ref())?;
        Self::from_arg_matches(&matches).map_err(|error| check::wrong_command_line(&error))
    }

    /// Returns the complete definition of the command line.
    pub(crate) fn command() -> clap::Command {
        let command = <Self as clap::CommandFactory>::command()
            .after_long_help(exit::help())
            .mut_subcommand("sweep", |sweep| {
                let help = format!("The medium:\n\n{}", media::swept());
                sweep.mut_arg("to", |to| to.help("The medium").long_help(help))
            });
        help::complete(command)
    }
}

#[cfg(test)]
mod tests;
