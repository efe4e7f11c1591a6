//! Counts instructions and compares them with the committed figures: `scripts/guard` runs it.
//!
//! ```text
//! case -> this program under callgrind -> figure -> table with the committed figures -> failure?
//! ```

mod cases;
mod figures;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use baler_rig::overhead::{self, Origin};
use baler_rig::statistics::to_f64;
use baler_rig::{Failure, Outcome, exit_code, instructions, process};
use clap::Parser;

use cases::{BY_FACADE, BY_MONITORING, CASES, Case, OFF_BY_BRIDGE, OFF_BY_PATTERN, PROBES};
use figures::Figure;

/// Calls of a pair of cases may take this many instructions more or less than each other. One
/// instruction more in each call would be at least twice as many.
const PAIR_TOLERANCE: u64 = 1_000;

/// Calls that take the same instructions in two ways, with the names of both.
const PAIRS: &[[(&str, Case); 2]] = &[
    [
        ("through the facade", BY_FACADE),
        ("through monitoring", BY_MONITORING),
    ],
    [
        ("deactivated by a bridge", OFF_BY_BRIDGE),
        ("deactivated by a pattern", OFF_BY_PATTERN),
    ],
];

/// Counts instructions and compares them with committed figures.
#[derive(Debug, Parser)]
struct Args {
    /// Rewrite the file with the new figures
    #[arg(long)]
    accept: bool,

    /// The file with the committed figures
    #[arg(long)]
    figures: PathBuf,

    /// The versions on which figures depend: compiler, valgrind, C library
    #[arg(long)]
    tools: String,
}

fn main() -> ExitCode {
    exit_code("guard", run())
}

fn run() -> Result<Outcome, Failure> {
    let variants = overhead::variants();
    if let Some(order) = process::order() {
        match cases::find(&order) {
            Some(case) => (case.run)()?,
            None => overhead::run_order(&order, &variants)?,
        }
        return Ok(Outcome::silent());
    }
    let args = Args::parse();
    let origin = Origin {
        variants: &variants,
        words: &[process::CHILD],
    };
    let mut counted = Vec::new();
    for name in PROBES {
        let case = overhead::Case {
            variant: (*name).to_owned(),
            threads: 1,
            depth: 10,
            calls: 0,
        };
        let count = overhead::instructions_per_call(&case, &origin)?;
        counted.push(Figure::new(name, count, "a call"));
    }
    for case in CASES {
        let count = to_f64(count(case)?) / to_f64(case.times);
        counted.push(Figure::new(case.name, count, case.unit));
    }
    let mut pairs = Outcome::silent();
    for [(here, case), (there, other)] in PAIRS {
        let (count_here, count_there) = (count(case)?, count(other)?);
        let is_right = count_here.abs_diff(count_there) < PAIR_TOLERANCE;
        pairs.is_right &= is_right;
        pairs.text.push_str(&format!(
            "\n{}: {} calls take {count_here} instructions {here}, and {count_there} {there}; less \
             than {PAIR_TOLERANCE} may lie between\n",
            if is_right { "ok" } else { "FAIL" },
            case.times,
        ));
    }

    let mut outcome = if args.accept {
        let text = figures::file(&args.tools, &counted);
        fs::write(&args.figures, &text).map_err(Failure::cannot("write the figures"))?;
        Outcome {
            text,
            is_right: true,
        }
    } else {
        let committed = fs::read_to_string(&args.figures);
        let committed = committed.map_err(Failure::cannot("read the committed figures"))?;
        figures::compare(&committed, &args.tools, &counted)?
    };
    outcome.text.push_str(&pairs.text);
    outcome.is_right &= pairs.is_right;
    Ok(outcome)
}

fn count(case: &Case) -> Result<u64, Failure> {
    instructions::count(&[process::CHILD, case.name])
}
