//! Filters: stages that select, count or measure records.
//!
//! A handle reads the figures of a filter while the pipeline runs and after it.

mod count;
mod first;
mod response_time;
mod select;
mod shared_stage;

pub use count::{Count, Counts, TypeCount};
pub use first::{First, Taken};
pub(crate) use response_time::Durations;
pub use response_time::{OperationTimes, ResponseTimes, Times};
pub use select::{ByTime, ByType, TypePattern};
pub use shared_stage::{SharedStage, Tee};
