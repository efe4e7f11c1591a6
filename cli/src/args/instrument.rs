//! Flags of `baler instrument`.

use std::path::PathBuf;

use baler_connector_kieker::pattern::Dialect;
use clap::{Args, Subcommand};

use super::FormatArgs;
use super::values::dialects;

/// Flags of `baler instrument`.
#[derive(Debug, Args)]
pub(crate) struct InstrumentArgs {
    #[command(subcommand)]
    pub(crate) command: InstrumentCommand,
}

/// What to do with the sources.
#[derive(Debug, Subcommand)]
pub(crate) enum InstrumentCommand {
    /// Put a probe on each selected function that has none; nothing else of a file changes
    ///
    /// The reason is counted for each function that cannot have a probe; `list` shows it.
    Insert {
        #[command(flatten)]
        functions: FunctionsArgs,
        /// The attribute: its path and its options, such as `::baler::probe(record = duration)`
        #[arg(long, value_name = "TEXT", default_value = "::baler::probe",
            value_parser = baler_instrument::Attribute::parse)]
        attribute: baler_instrument::Attribute,
        /// Also add the dependency on `baler` to each Cargo.toml that lacks it: a version, or the
        /// folder of the crate
        #[arg(long, value_name = "VERSION|DIR")]
        dependency: Option<String>,
        #[command(flatten)]
        writing: WritingArgs,
    },
    /// Remove inserted probes, and without patterns also inserted dependencies: the files are what
    /// they were before `insert`
    Remove {
        #[command(flatten)]
        functions: FunctionsArgs,
        #[command(flatten)]
        writing: WritingArgs,
    },
    /// Show each function, its signature in records and patterns, and whether it has or gets a probe
    List {
        #[command(flatten)]
        functions: FunctionsArgs,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Change nothing: name the selected functions without a probe, and inserted probes whose names
    /// are outdated; exit code 65 if there is one
    Check {
        #[command(flatten)]
        functions: FunctionsArgs,
    },
}

/// The functions.
#[derive(Debug, Args)]
pub(crate) struct FunctionsArgs {
    /// The folder of a package or of several packages
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Only functions whose signature one of these patterns matches; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// No functions whose signature one of these patterns matches; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// The dialect of the patterns: `rust` is `shop::till::*`, the others are `* shop.till.*(..)`
    #[arg(long, default_value = Dialect::Rust.name(), value_parser = dialects())]
    pub(crate) dialect: Dialect,
}

/// Whether files are written.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WritingArgs {
    /// Change nothing: print the changes as a diff
    #[arg(long)]
    pub(crate) dry_run: bool,
}
