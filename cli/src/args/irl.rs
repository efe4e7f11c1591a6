//! Flags of `baler irl`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{DecodingArgs, FormatArgs, GiveUpArgs, values};

/// Flags of `baler irl`.
#[derive(Debug, Args)]
pub(crate) struct IrlArgs {
    #[command(subcommand)]
    pub(crate) command: IrlCommand,
}

/// What to do with the files.
#[derive(Debug, Subcommand)]
pub(crate) enum IrlCommand {
    /// Find mistakes: prints each with its line and how to correct it; exit code 65 if one is an error
    Check {
        #[command(flatten)]
        files: IrlFiles,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Lay files out: members on lines of their own, one blank line between declarations
    Fmt {
        /// The files, or folders with files *.irl below them
        #[arg(value_name = "PATH", required = true)]
        files: Vec<PathBuf>,
        /// Change nothing: name the files with another layout; exit code 65 if there is one
        #[arg(long)]
        check: bool,
    },
    /// Compare two versions: which changes break readers, and why; exit code 65 if one does
    ///
    /// A change breaks new readers that read records of old writers, old readers that read records of
    /// new writers, or both. Changes without an effect are listed behind the others.
    Compat {
        /// The file of the old version, or a folder with files *.irl below it
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// That of the new version
        #[arg(value_name = "NEW")]
        new: PathBuf,
        #[command(flatten)]
        reading: IrlReading,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Write the record types that chunks have, such as those of Rust applications, as .irl files
    ///
    /// Kieker's own types are left out. So is each type that the language cannot represent: one with
    /// unsigned numbers, bytes, optional values or records in records. It is named with the reason,
    /// and the exit code is 65.
    FromRust(FromRustArgs),
    /// Show the fields of each record type, in the order of their bytes
    Dump {
        #[command(flatten)]
        files: IrlFiles,
        #[command(flatten)]
        format: FormatArgs,
        /// The same as --format json
        #[arg(long)]
        json: bool,
    },
    /// Write source code: the record types, with functions that encode and decode their fields
    Generate {
        #[command(flatten)]
        files: IrlFiles,
        /// The language of the source code
        #[arg(long, value_parser = PossibleValuesParser::new(baler_irl::LANGUAGES))]
        language: String,
        /// The folder of the source code; files in it with the same names are replaced
        #[arg(long, value_name = "DIR", alias = "out")]
        output: PathBuf,
    },
}

/// Flags of `baler irl from-rust`.
#[derive(Debug, Args)]
pub(crate) struct FromRustArgs {
    /// A chunk, a segment, a folder of them, or a URI
    #[arg(value_name = "PATH|URI")]
    pub(crate) what: String,
    /// Write a file for each package into this folder, and print their names [default: standard
    /// output, if there is one package]
    #[arg(long, value_name = "DIR", alias = "to")]
    pub(crate) output: Option<PathBuf>,
    /// The package of types whose names have none
    #[arg(long, value_name = "NAME", default_value = "records")]
    pub(crate) package: String,
    /// Look at no more than this many chunks
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) count: usize,
    /// Stop when a live endpoint was read to its end and nothing more arrives for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
}

/// The files, and how they are read.
#[derive(Debug, Args)]
pub(crate) struct IrlFiles {
    /// The files, or folders with files *.irl below them; they may refer to each other's definitions
    #[arg(value_name = "PATH", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: IrlReading,
}

/// How files are read.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct IrlReading {
    /// The edition of the language
    #[arg(long, value_enum, default_value = "current")]
    pub(crate) edition: EditionChoice,
    /// Take the only definition with a name if its import is missing
    #[arg(long)]
    pub(crate) lenient: bool,
}

/// The edition of the language.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum EditionChoice {
    /// That of Kieker's own files
    Current,
    /// That of 2013, too: `struct`, `pattern`, `tag`, `use`, `default` and payloads are warnings
    Legacy,
}

impl From<EditionChoice> for baler_irl::Edition {
    fn from(choice: EditionChoice) -> Self {
        match choice {
            EditionChoice::Current => Self::Current,
            EditionChoice::Legacy => Self::Legacy,
        }
    }
}
