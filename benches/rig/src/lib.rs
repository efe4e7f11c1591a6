//! The common parts of Baler's measurements: of the program, and of the comparison with rivals.
//!
//! ```text
//! workload -> cases in rounds -> CPU time, bytes, checksum -> statistics -> table, JSON, page
//! ```
//!
//! - [`harness`]: cases in interleaved rounds, output, failures.
//! - [`workload`]: synthetic calls of operations and their records, the same on every machine.
//! - [`clock`], [`usage`], [`wire`]: times, and CPU time and bytes of processes.
//! - [`statistics`]: means, quantiles, intervals.
//! - [`process`]: child processes, and the lines of JSON in which they talk.
//! - [`machine`]: the provenance of a result.
//! - [`instructions`]: instructions of a thread, counted by callgrind.
//! - [`overhead`]: the cost of a probe for the application.
//! - [`sweep`]: the cost of each chunk size.
//! - [`report`], [`chart`]: tables, charts and pages.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

pub mod chart;
pub mod clock;
pub mod harness;
pub mod instructions;
pub mod machine;
mod numbers;
pub mod overhead;
pub mod process;
pub mod report;
pub mod statistics;
pub mod sweep;
pub mod usage;
pub mod wire;
pub mod workload;

pub use harness::{Failure, Outcome, exit_code};
