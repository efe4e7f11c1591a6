//! The settings of `receive`, from all its flags together.

use crate::args::{ReceiveArgs, RecordFormat};
use crate::exit::Failure;
use crate::filters::Filters;
use baler_analysis::filters::Fields;

/// The settings of one run of `receive`.
pub(super) struct Settings {
    pub(super) args: ReceiveArgs,
    pub(super) filters: Filters,
    pub(super) fields: Option<Fields>,
}

impl Settings {
    /// Returns the maximum number of chunks in work, or `None` for the default.
    pub(super) fn demand(&self) -> Option<usize> {
        #[cfg(feature = "parquet")]
        if self.args.format == RecordFormat::Parquet {
            return Some(self.args.parquet.settings(self.args.identity).chunks);
        }
        None
    }

    /// Checks the flags against each other.
    ///
    /// # Errors
    ///
    /// Two flags exclude each other, or a flag needs another one.
    pub(super) fn new(args: ReceiveArgs) -> Result<Self, Failure> {
        match (args.format, &args.output) {
            (RecordFormat::Csv, None) => {
                return Err(Failure::configuration(
                    "--format csv writes one file a record type: name their folder by --output DIR",
                ));
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
            _ => {}
        }
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
        if args.overwrite && (args.output.is_none() || args.format == RecordFormat::Parquet) {
            return Err(Failure::configuration(
                "--overwrite empties the files of --output with --format json, lines, table or csv; \
                 Parquet files are never replaced: remove their folder, or name another",
            ));
        }
        #[cfg(feature = "parquet")]
        if args.parquet.is_given() && args.format != RecordFormat::Parquet {
            return Err(Failure::configuration(
                "flags that begin with --parquet go with --format parquet",
            ));
        }
        let condition = args.condition.expression()?;
        Ok(Self {
            filters: Filters::new(&args.types, args.since, args.until, condition)?,
            fields: args.fields.chosen()?,
            args,
        })
    }
}
