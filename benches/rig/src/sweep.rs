//! The cost of each chunk size: a constant load to a broker and back, measured in every setting.
//!
//! ```text
//! args -> plan: (size x rate x compression x wait time) + client library alone, interleaved
//!   +- writing process: load at its rate -> controller | client alone -> connector --+
//!   |                                                                                +-> broker
//!   +- reading process: connector -> decode -> count, latency                      --+
//!   -> a sample for each run, written at once -> cell -> model -> table, JSON, page
//! ```
//!
//! It is the second experiment of Knoche's paper (section 4, table 2). In addition it measures
//! latency, the reader and the broker, and the figures for a recommendation. The load is synthetic
//! calls, or [records of the user](UserRecords). The measuring program owns the client libraries,
//! and passes them to the rig as a [`Program`].

mod advice;
mod args;
mod case;
mod cell;
mod command;
mod load;
mod model;
mod page;
mod plain_row;
mod program;
mod reading;
mod recommend;
mod report;
mod run;
mod run_log;
mod user_records;
mod writing;

pub use args::SweepArgs;
pub use case::{Case, Way};
pub use cell::Cell;
pub use command::{command, run_order};
pub use model::{CostModel, HeldOut};
pub use program::{PlainWriter, Program};
pub use recommend::{Bounds, Recommendation};
pub use user_records::UserRecords;
