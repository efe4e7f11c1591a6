//! What a probe costs the application, beside rival libraries on the same work.
//!
//! Everything but the rivals is [`baler_rig::overhead`].

mod peers;

use std::io::{self, IsTerminal as _, Write};

use baler_rig::harness::Standing;
use baler_rig::machine::Provenance;
use baler_rig::overhead::{self, Origin, OverheadArgs, Variant};
use clap::Parser;

use crate::Failure;

/// What a probe costs the application, beside rival libraries.
#[derive(Debug, Clone, Parser)]
#[command(name = "overhead", version, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    overhead: OverheadArgs,
}

/// The word by which a process of its own is told its order.
const CHILD: &str = "child";

fn variants() -> Vec<Variant> {
    [overhead::variants(), peers::variants()].concat()
}

/// Measures what was asked for and prints it to `out`; whether every row has its figures.
///
/// # Errors
///
/// A variant was asked for that there is not, or the rows cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let variants = variants();
    let origin = Origin {
        variants: &variants,
        words: &[CHILD],
    };
    // A terminal is told how far it is; a file or a pipe is not.
    let mut terminal = Some(io::stderr()).filter(io::Stderr::is_terminal);
    let mut progress = |Standing { done, of, .. }: Standing| {
        if let Some(terminal) = &mut terminal {
            // Only decoration.
            write!(terminal, "\r{done} of {of} ").ok();
        }
        true
    };
    overhead::command(&args.overhead, &origin, &provenance, &mut progress, out)
}

/// Does what the parent process wants and prints it to `out`, if this process has one that measures;
/// else `None`.
pub fn obeyed(out: &mut dyn Write) -> Option<Result<bool, Failure>> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(CHILD) {
        return None;
    }
    let order = words.next().unwrap_or_default();
    let answer = overhead::obey(&order, &variants());
    Some(answer.and_then(|answer| {
        let said = writeln!(out, "{answer}").and_then(|()| out.flush());
        said.map(|()| true).map_err(Failure::cannot("answer"))
    }))
}
