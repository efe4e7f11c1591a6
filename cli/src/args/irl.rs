//! Flags of `baler irl`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

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
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Lay files out: members on lines of their own, one blank line between declarations
    Fmt {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Change nothing: name the files with another layout; exit code 65 if there is one
        #[arg(long)]
        check: bool,
    },
    /// Show the fields of each record type, in the order of their bytes
    Dump {
        #[command(flatten)]
        files: IrlFiles,
        /// Print one JSON document
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
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// The files, and how they are read.
#[derive(Debug, Args)]
pub(crate) struct IrlFiles {
    /// The files; they may refer to each other's definitions
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
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
