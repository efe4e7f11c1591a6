//! The flags that all programs have, and what follows from them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use baler_rig::harness::{Format, Results, Rounds, Runs, in_rounds, on_terminal};
use baler_rig::machine::Provenance;
use baler_rig::process::{CHILD, Child};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// The flags that all programs have.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Decides all that is random: the order of the measurements, the load, and samples of results
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write rows, tables and charts, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

impl OutputArgs {
    /// Measures each case this often, each time in a process of its own with this time limit. A case
    /// that fails has the reason in its runs.
    ///
    /// # Errors
    ///
    /// Never: the progress on the terminal does not request a stop.
    pub(crate) fn measured<C: Serialize, S: DeserializeOwned>(
        &self,
        cases: &[C],
        repetitions: usize,
        patience: Duration,
    ) -> Result<Vec<Runs<S>>, Failure> {
        let rounds = Rounds {
            repetitions,
            seed: self.seed,
            finished: BTreeMap::new(),
        };
        in_rounds(cases, rounds, &mut on_terminal(), |_, case, go_on| {
            Child::answer_to(&[CHILD], case, patience, go_on)
        })
    }

    /// Writes the rows of a measurement, and beside them the table and files with these extensions,
    /// into the folder, if there is one. Returns the text to print.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub(crate) fn write<R: Serialize>(
        &self,
        name: &str,
        provenance: &Provenance,
        rows: &[R],
        table: String,
        others: &[(&str, &str)],
    ) -> Result<String, Failure> {
        let results = Results {
            name,
            provenance,
            rows,
        };
        results.write(self.format, table, self.results.as_deref(), others)
    }
}
