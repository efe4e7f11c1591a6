//! The flags of a measurement, and its cases.

use std::num::NonZeroUsize;

use clap::Args;

use super::case::Case;
use super::variant::{Variant, find};
use crate::harness::{Failure, Output};

/// `MooBench`'s number of calls from outside.
const CALLS: u64 = 2_000_000;

/// The number of instrumented calls in a repetition at the default depth; deeper calls are fewer.
const INSTRUMENTED_CALLS: u64 = 20_000_000;

/// With `--quick`.
const QUICK_CALLS: u64 = 400;

/// Flags of a measurement of overhead.
#[derive(Debug, Clone, Args)]
pub struct OverheadArgs {
    #[command(flatten)]
    pub(super) output: Output,

    /// Measure these variants only, several separated by commas; `--list` names all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Tell which variants there are, and measure nothing
    #[arg(long)]
    pub list: bool,

    /// How often each thread calls the application in a repetition [default: 2000000, fewer where
    /// calls nest deeper than 10, with --quick 400]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub calls: Option<u64>,

    /// How deep calls nest, several separated by commas: the number of instrumented calls in one
    /// call of the application
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub depth: Vec<u32>,

    /// How many threads call, several separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Vec<u16>,

    /// How often to measure each row, each time in a process of its own [default: 5, with --quick 1]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// In which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also count instructions a call with callgrind, where valgrind is installed
    #[arg(long)]
    pub instructions: bool,

    /// Make too few calls for meaningful figures, only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

impl OverheadArgs {
    /// Every combination of what was asked for, of these variants, in the order of the table.
    ///
    /// # Errors
    ///
    /// A requested variant does not exist.
    pub fn cases(&self, variants: &[Variant]) -> Result<Vec<Case>, Failure> {
        for name in &self.only {
            find(variants, name)?;
        }
        let names: Vec<&str> = match self.only.as_slice() {
            [] => variants.iter().map(|variant| variant.name).collect(),
            only => only.iter().map(String::as_str).collect(),
        };
        let mut cases = Vec::new();
        for threads in &self.threads {
            for depth in &self.depth {
                cases.extend(names.iter().map(|name| Case {
                    variant: (*name).to_owned(),
                    threads: usize::from(*threads),
                    depth: *depth,
                    calls: self.calls_at(*depth),
                }));
            }
        }
        Ok(cases)
    }

    pub(super) fn repetitions(&self) -> usize {
        let default = if self.quick { 1 } else { 5 };
        self.repetitions.map_or(default, NonZeroUsize::get)
    }

    fn calls_at(&self, depth: u32) -> u64 {
        let default = match self.quick {
            true => QUICK_CALLS,
            false => (INSTRUMENTED_CALLS / u64::from(depth.max(1))).clamp(1, CALLS),
        };
        self.calls.unwrap_or(default)
    }
}

#[cfg(test)]
mod tests;
