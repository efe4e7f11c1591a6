//! What Baler's measurements share, the program's and those beside rivals.
//!
//! ```text
//! workload -> what is measured, in a schedule -> cost, checksum -> statistics -> report
//! ```
//!
//! - [`workload`]: synthetic calls of operations and their records, the same for every rival and every
//!   machine.
//! - [`recording`]: calls that exist before they are encoded, generated or real, and how much they say.
//! - [`schedule`]: in which order to measure.
//! - [`cpu`]: CPU time.
//! - [`checksum`]: whether what came out is what went in.
//! - [`statistics`]: what repetitions say together.
//! - [`regression`]: whether something grows.
//! - [`child`], [`lines`], [`footprint`]: processes of one's own, in what they talk, what they hold and
//!   use.
//! - [`lossless`]: the controller that writes.
//! - [`time`]: when something is due.
//! - [`machine`]: what a result depends on.
//! - [`wire`]: what a process sends and receives.
//! - [`overhead`]: what a probe costs the application.
//! - [`sweep`]: what each chunk size costs.
//! - [`plain_row`]: a record as a message of its own, as rivals send it.
//! - [`report`], [`chart`], [`page`], [`output`], [`failure`]: tables, charts, pages and JSON, printed and
//!   kept, or why there are none.

pub mod chart;
pub mod checksum;
pub mod child;
pub mod cpu;
pub mod failure;
pub mod footprint;
pub mod lines;
pub mod lossless;
pub mod machine;
pub mod output;
pub mod overhead;
pub mod page;
pub mod plain_row;
mod random;
pub mod recording;
pub mod regression;
pub mod report;
pub mod schedule;
pub mod statistics;
pub mod sweep;
pub mod time;
pub mod wire;
pub mod workload;
