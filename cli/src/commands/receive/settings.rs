//! What the flags of `receive` mean together.

use std::ops::Range;
use std::path::PathBuf;

use baler_analysis::filters::TypePattern;

use crate::args::{ReceiveArgs, RecordFormat};
use crate::exit::Failure;

/// What to receive, how, and where to.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) args: ReceiveArgs,
    pub(super) types: Vec<TypePattern>,
    /// Nanoseconds since the Unix epoch; records without a timestamp are in no span.
    pub(super) span: Option<Range<i64>>,
    pub(super) target: Target,
}

/// Where records go.
#[derive(Debug)]
pub(super) enum Target {
    File(PathBuf),
    Folder(PathBuf),
    #[cfg(feature = "parquet")]
    Parquet(PathBuf, baler_arrow::ParquetSettings),
    Stdout,
}

impl Settings {
    /// How many chunks may be in work, if not as many as is usual.
    pub(super) fn demand(&self) -> Option<usize> {
        #[cfg(feature = "parquet")]
        if let Target::Parquet(_, settings) = &self.target {
            return Some(settings.chunks);
        }
        None
    }

    /// Checks the flags against each other.
    ///
    /// # Errors
    ///
    /// Two flags do not go together, or one needs another.
    pub(super) fn new(args: ReceiveArgs) -> Result<Self, Failure> {
        let target = match (args.format, args.output.clone()) {
            (RecordFormat::Csv, Some(folder)) => Target::Folder(folder),
            (RecordFormat::Csv, None) => {
                return Err(Failure::configuration(
                    "--format csv writes one file a record type: name their folder by --output DIR",
                ));
            }
            #[cfg(feature = "parquet")]
            (RecordFormat::Parquet, Some(folder)) => {
                Target::Parquet(folder, args.parquet.settings(args.identity))
            }
            #[cfg(feature = "parquet")]
            (RecordFormat::Parquet, None) => {
                return Err(Failure::configuration(
                    "--format parquet writes files into folders: name the outermost by --output DIR",
                ));
            }
            #[cfg(not(feature = "parquet"))]
            (RecordFormat::Parquet, _) => {
                return Err(Failure::configuration(
                    "--format parquet needs the feature parquet, which this build lacks; build the \
                     program with it: cargo build --release --package baler-cli --features parquet",
                ));
            }
            (RecordFormat::None, Some(path)) => {
                return Err(Failure::configuration(format!(
                    "--format none writes no records, so --output {} would stay empty; use json, \
                     table or csv",
                    path.display()
                )));
            }
            (_, Some(path)) => Target::File(path),
            (_, None) => Target::Stdout,
        };
        if args.identity && !args.format.has_identity() {
            return Err(Failure::configuration(
                "--identity adds to JSON records and rows of Parquet: use it with --format json or \
                 parquet",
            ));
        }
        if args.csv_escape_formulas && args.format != RecordFormat::Csv {
            return Err(Failure::configuration(
                "--csv-escape-formulas goes with --format csv",
            ));
        }
        if args.overwrite && !matches!(target, Target::File(_) | Target::Folder(_)) {
            return Err(Failure::configuration(
                "--overwrite empties the files of --output with --format json, table or csv; \
                 Parquet files are never replaced: remove their folder, or name another",
            ));
        }
        #[cfg(feature = "parquet")]
        if args.parquet.is_given() && args.format != RecordFormat::Parquet {
            return Err(Failure::configuration(
                "flags that begin with --parquet go with --format parquet",
            ));
        }
        let span = match (args.since, args.until) {
            (None, None) => None,
            (since, until) => Some(since.unwrap_or(i64::MIN)..until.unwrap_or(i64::MAX)),
        };
        if let Some(span) = &span
            && span.is_empty()
        {
            return Err(Failure::configuration(format!(
                "--since {} is not before --until {}: no record can be between",
                span.start, span.end
            )));
        }
        let types = args.types.iter();
        Ok(Self {
            types: types.map(|it| TypePattern::new(it.as_str())).collect(),
            span,
            target,
            args,
        })
    }
}
