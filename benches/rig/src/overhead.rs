//! The cost of a probe for the application: `MooBench`, in Rust.
//!
//! ```text
//! application (recursion) x variant (probe) -> case -> measure, in a process of its own
//!   -> row (statistics, controls beside it) -> table, JSON, chart
//! ```
//!
//! `MooBench` is the benchmark for Kieker by Waller, Ehmke and Hasselbring ("Including Performance
//! Benchmarks into Continuous Integration to Enable DevOps", 2015). A variant is one entry in a
//! list. A program that also measures rival libraries adds its own list to [`variants`].

mod application;
mod args;
mod case;
mod command;
mod controlled;
mod measure;
mod row;
mod run;
mod variant;
mod variants;

pub use application::Outer;
pub use args::OverheadArgs;
pub use case::Case;
pub use command::command;
pub use controlled::{Makes, start};
pub use run::{Origin, instructions_per_call, run_order};
pub use variant::{Alone, Running, Variant, find};
pub use variants::{cycles, variants};
