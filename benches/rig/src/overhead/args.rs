//! What to measure, as it is typed.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::case::Case;
use super::experiment::Experiment;
use super::run::Plan;
use super::variant::{Variant, find};
use crate::failure::Failure;
use crate::output::Format;

/// `MooBench`'s number of calls from outside.
const CALLS: u64 = 2_000_000;

/// So many instrumented calls as a repetition at the default depth has: deeper calls are fewer.
const INSTRUMENTED_CALLS: u64 = 20_000_000;

/// For how long a paced repetition calls, in seconds.
const PACED_SECONDS: f64 = 10.0;

/// With `--quick`.
const QUICK_CALLS: u64 = 400;

/// Flags of a measurement of overhead.
#[derive(Debug, Clone, Args)]
pub struct OverheadArgs {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// What is varied
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Experiment::All)]
    pub experiment: Experiment,

    /// Measure these variants only, several separated by commas; `--list` tells which there are
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Tell which variants there are, and measure nothing
    #[arg(long)]
    pub list: bool,

    /// How often each thread calls the application in a repetition [default: 2000000, fewer where
    /// calls nest deeper than 10, 10 s where they are paced, with --quick 400]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub calls: Option<u64>,

    /// How deep calls nest, several separated by commas: so many instrumented calls a call of the
    /// application [default: 10]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub depth: Vec<u32>,

    /// For how many nanoseconds the innermost call is busy
    #[arg(long, value_name = "NS", default_value_t = 0)]
    pub method_time: u64,

    /// Which share of the calls, from the first, is not measured
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub warm_up: f64,

    /// How many threads call, several separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Vec<u16>,

    /// How many instrumented calls a second all threads make together [default: back to back]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// How often to measure each row, each time in a process of its own [default: 5, with --quick 1]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// In which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also count instructions a call with callgrind, where valgrind is installed
    #[arg(long)]
    pub instructions: bool,

    /// Also write rows, table and charts, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// So few calls that the figures mean nothing: only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

impl OverheadArgs {
    /// What is to be measured, of these variants.
    ///
    /// # Errors
    ///
    /// A variant was asked for that there is not.
    pub fn plan(&self, variants: &[Variant]) -> Result<Plan, Failure> {
        let names = self.names(variants)?;
        let depths = match self.depth.as_slice() {
            [] => self.experiment.depths(),
            depths => depths,
        };
        let rate = self.rate.or_else(|| self.experiment.rate());
        let mut cases = Vec::new();
        for threads in &self.threads {
            for depth in depths {
                cases.extend(
                    names
                        .iter()
                        .map(|name| self.case(name, *threads, *depth, rate)),
                );
            }
        }
        let default = if self.quick { 1 } else { 5 };
        Ok(Plan {
            cases,
            repetitions: self.repetitions.map_or(default, NonZeroUsize::get),
            seed: self.seed,
            instructions: self.instructions,
        })
    }

    fn case(&self, name: &str, threads: u16, depth: u32, rate: Option<f64>) -> Case {
        Case {
            variant: name.to_owned(),
            threads: usize::from(threads),
            depth,
            method_time_ns: self.method_time,
            calls: self.calls_at(depth, rate),
            warm_up: self.warm_up,
            rate,
        }
    }

    fn names(&self, variants: &[Variant]) -> Result<Vec<String>, Failure> {
        for name in &self.only {
            find(variants, name)?;
        }
        if !self.only.is_empty() {
            return Ok(self.only.clone());
        }
        let all = variants.iter().map(|variant| variant.name);
        Ok(match self.experiment.variants() {
            None => all.map(str::to_owned).collect(),
            Some(names) => {
                let there = |name: &&&str| find(variants, name).is_ok();
                names
                    .iter()
                    .filter(there)
                    .map(ToString::to_string)
                    .collect()
            }
        })
    }

    fn calls_at(&self, depth: u32, rate: Option<f64>) -> u64 {
        let default = match rate {
            _ if self.quick => QUICK_CALLS,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of calls within ten seconds"
            )]
            Some(rate) => (rate * PACED_SECONDS / f64::from(depth)) as u64,
            None => (INSTRUMENTED_CALLS / u64::from(depth.max(1))).min(CALLS),
        };
        self.calls.unwrap_or(default).max(1)
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.0..1.0).contains(&share) {
        Ok(share)
    } else {
        Err("a share of the calls is at least 0 and less than 1".to_owned())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    if rate.is_finite() && rate >= 1.0 {
        Ok(rate)
    } else {
        Err("a rate is at least one call a second".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::overhead::variants;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: OverheadArgs,
    }

    fn plan(words: &[&str]) -> Plan {
        let words = ["overhead"].iter().chain(words);
        let command = Command::try_parse_from(words).unwrap();
        command.args.plan(&variants()).unwrap()
    }

    #[test]
    fn flags_are_consistent() {
        Command::command().debug_assert();
        let all = plan(&[]);
        assert_eq!(all.cases.len(), variants().len());
        assert_eq!((all.repetitions, all.cases[0].calls), (5, 2_000_000));
        for wrong in [
            "--depth=0",
            "--warm-up=1",
            "--rate=0",
            "--threads=0",
            "--calls=0",
        ] {
            assert!(
                Command::try_parse_from(["overhead", wrong]).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn every_combination_is_a_case() {
        let plan = plan(&[
            "--only",
            "none,clock",
            "--threads",
            "1,2",
            "--depth",
            "1,10,100",
        ]);
        assert_eq!(plan.cases.len(), 12);
        let deep = plan.cases.iter().find(|case| case.depth == 100).unwrap();
        assert_eq!(deep.calls, 200_000);
    }

    #[test]
    fn experiments_measure_what_there_is() {
        let depth = plan(&["--experiment", "depth"]);
        assert!(depth.cases.iter().any(|case| case.depth == 128));
        let paced = plan(&["--experiment", "paced"]);
        assert_eq!(paced.cases[0].rate, Some(500_000.0));
        assert_eq!(paced.cases[0].calls, 500_000);
        let names = variants()
            .iter()
            .map(|variant| variant.name)
            .collect::<Vec<_>>();
        for case in depth.cases.iter().chain(&paced.cases) {
            assert!(names.contains(&case.variant.as_str()), "{}", case.variant);
        }
    }

    #[test]
    fn a_variant_that_there_is_not_is_an_error() {
        let command = Command::parse_from(["overhead", "--only", "nonsense"]);
        let error = command.args.plan(&variants()).unwrap_err().to_string();
        assert!(
            error.contains("no variant nonsense") && error.contains("operation"),
            "{error}"
        );
    }
}
