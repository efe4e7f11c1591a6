//! What Baler's measurements share, the program's and those beside rivals.
//!
//! ```text
//! workload -> what is measured, in a schedule -> cost, checksum -> statistics -> report
//! ```
//!
//! - [`workload`]: synthetic calls of operations and their records, the same for every rival and every
//!   machine.
//! - [`schedule`]: in which order to measure.
//! - [`cpu`]: wall-clock and CPU time.
//! - [`checksum`]: whether what came out is what went in.
//! - [`statistics`]: what repetitions say together.
//! - [`machine`]: what a result depends on.
//! - [`report`]: tables and JSON.

pub mod checksum;
pub mod cpu;
pub mod machine;
mod random;
pub mod report;
pub mod schedule;
pub mod statistics;
pub mod workload;
