//! What chunks cost whose size the collector chooses itself, beside fixed sizes, over a day's load.
//!
//! ```text
//! parent: rounds of all settings, each in a random order
//!   |-- reading process: one for all runs, counts and times what arrives
//!   `-- writing process: one a run, the phases of the day one after another
//! ```
//!
//! The load is open: each record is due at a time fixed beforehand, which is its time stamp, so that
//! what waits anywhere shows in the latency.
//! All settings of a round meet the same day within some two minutes, and what is compared are
//! pairs: auto by each fixed size in the same round.
//! What the load itself costs by waiting is most of the process's CPU time at low rates, is not the
//! same from run to run, and is told apart.

mod args;
mod cost;
mod day;
mod reading;
mod row;
mod run;
mod writing;

pub use args::AutotuneArgs;
pub use run::{obey, run};

/// The first word of a process of its own.
pub(crate) const CHILD: &str = "--child";
