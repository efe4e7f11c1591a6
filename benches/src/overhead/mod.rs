//! The cost of a probe for the application, compared with rival libraries on the same work.
//!
//! Everything except the rivals is in [`baler_rig::overhead`].

mod peers;

use std::io::{self, IsTerminal as _, Write as _};

use baler_rig::harness::Standing;
use baler_rig::overhead::{self, Origin, OverheadArgs, Variant};
use baler_rig::process;
use clap::Parser;

use crate::{Failure, Outcome};

/// What a probe costs the application, beside rival libraries.
#[derive(Debug, Clone, Parser)]
#[command(name = "overhead", version, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    overhead: OverheadArgs,
}

fn variants() -> Vec<Variant> {
    [overhead::variants(), peers::variants()].concat()
}

/// Measures the requested cases.
///
/// # Errors
///
/// A requested variant does not exist, or the rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let variants = variants();
    let origin = Origin {
        variants: &variants,
        words: &[process::CHILD],
    };
    // Progress is shown on a terminal, but not in a file or a pipe.
    let mut terminal = Some(io::stderr()).filter(io::Stderr::is_terminal);
    let mut progress = |Standing { done, of, .. }: Standing| {
        if let Some(terminal) = &mut terminal {
            // Only decoration.
            write!(terminal, "\r{done} of {of} ").ok();
        }
        true
    };
    overhead::command(&args.overhead, &origin, &mut progress)
}

/// Carries out the parent's order, if this is a child process of `overhead`; otherwise returns
/// `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    let order = process::order()?;
    Some(overhead::obey(&order, &variants()).map(|()| Outcome::silent()))
}
