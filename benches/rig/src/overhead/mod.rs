//! What a probe costs the application: `MooBench`, in Rust.
//!
//! ```text
//! application (recursion) x variant (probe) -> case -> measure, in a process of its own
//!   -> row (statistics, controls beside it) -> table, JSON, chart
//! ```
//!
//! `MooBench` is the benchmark of Waller, Ehmke and Hasselbring ("Including Performance Benchmarks into
//! Continuous Integration to Enable DevOps", 2015) with which Kieker is measured.
//! A variant is one entry in a list: what is measured more than [`variants`] has, rival libraries say, is
//! another list of the program that measures it.

mod application;
mod args;
mod bypass;
mod case;
mod chart;
mod command;
mod controlled;
mod count;
mod ends;
mod experiment;
mod kinds;
mod measure;
mod plain;
mod probed;
mod row;
mod run;
mod variant;

pub use application::{Outer, innermost};
pub use args::OverheadArgs;
pub use case::Case;
pub use chart::{page, svg};
pub use command::command;
pub use count::is_possible as can_count_instructions;
pub use experiment::Experiment;
pub use measure::Measured;
pub use plain::cycles;
pub use row::{Repetition, Row, table};
pub use run::{Origin, Plan, Progress, obey, run};
pub use variant::{Alone, End, Running, Variant, find};

/// The variants without rivals.
pub fn variants() -> Vec<Variant> {
    [
        plain::VARIANTS,
        probed::VARIANTS,
        kinds::VARIANTS,
        bypass::VARIANTS,
    ]
    .concat()
}
