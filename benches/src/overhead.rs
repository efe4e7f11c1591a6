//! The cost of a probe for the application, compared with rival libraries on the same work.
//!
//! Everything except the rivals is in [`baler_rig::overhead`].

mod peers;
mod queues;
mod tcp;

use baler_rig::harness::on_terminal;
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
    [
        overhead::variants(),
        queues::VARIANTS.to_vec(),
        tcp::VARIANTS.to_vec(),
        peers::variants(),
    ]
    .concat()
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
    overhead::command(&args.overhead, &origin, &mut on_terminal())
}

/// Carries out the parent's order, if this is a child process of `overhead`: to measure, or to
/// consume what a measuring process sends. Otherwise returns `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    let order = process::order()?;
    let answered = match process::parse_line(&order) {
        Ok(consumer) => tcp::consume(consumer),
        Err(_) => overhead::run_order(&order, &variants()),
    };
    Some(answered.map(|()| Outcome::silent()))
}
