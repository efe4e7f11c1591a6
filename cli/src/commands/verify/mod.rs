//! `baler verify`: numbered records through an endpoint, faults on the way, and an oracle that knows
//! what must arrive.
//!
//! ```text
//! run -> fleet -> [producer process] ~~ endpoint, with faults ~~ [consumer process]
//!                        |  offered, acknowledged      processed  |
//!                        +-----------> oracle <-------------------+
//! ```

mod bits;
mod consumer;
mod event;
mod faults;
mod findings;
mod fleet;
mod numbered;
mod oracle;
mod orders;
mod poison;
mod process;
mod producer;
mod random;
mod recording;
mod report;
mod run;
mod stand;

pub(super) use consumer::run as consume;
pub(super) use producer::run as produce;

use crate::args::VerifyArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// Runs, judges, and tells.
pub(super) fn run(args: &VerifyArgs, verbose: u8, shutdown: &Shutdown) -> Result<Code, Failure> {
    let document = run::Run::new(args, verbose, shutdown)?.run()?;
    output::result(args.format, &document, || document.text())?;
    Ok(if document.held {
        Code::Done
    } else {
        Code::Broken
    })
}
