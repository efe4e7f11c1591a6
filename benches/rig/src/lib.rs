//! The parts that Baler's measurements share: the program's and those beside rivals.
//!
//! ```text
//! workload -> cases in a schedule -> CPU time, bytes, checksum -> statistics -> table, JSON, page
//! ```
//!
//! - [`workload`]: synthetic calls of operations and their records, the same on every machine.
//! - [`schedule`]: in which order to measure.
//! - [`cpu`], [`footprint`], [`wire`]: CPU time, memory and bytes of processes.
//! - [`checksum`]: whether the records that came out are those that went in.
//! - [`statistics`], [`regression`]: means, quantiles, intervals, slopes.
//! - [`child`], [`lines`]: child processes, and the lines of JSON in which they talk.
//! - [`time`]: times as nanoseconds.
//! - [`machine`]: what a result depends on.
//! - [`overhead`]: what a probe costs the application.
//! - [`sweep`]: what each chunk size costs.
//! - [`plain_row`]: a record as a message of its own, as a client library alone sends it.
//! - [`report`], [`chart`], [`page`], [`output`], [`failure`]: tables, charts, pages and JSON, or why
//!   there are none.

pub mod chart;
pub mod checksum;
pub mod child;
pub mod cpu;
pub mod failure;
pub mod footprint;
pub mod lines;
pub mod machine;
pub mod output;
pub mod overhead;
pub mod page;
pub mod plain_row;
mod random;
pub mod regression;
pub mod report;
pub mod schedule;
pub mod statistics;
pub mod sweep;
pub mod time;
pub mod wire;
pub mod workload;
