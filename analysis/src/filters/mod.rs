//! Filters: stages that select, watch or measure what passes.
//!
//! A figure that a filter collects is read through a handle while the pipeline runs and after it.

mod count;
mod first;
mod response_time;
mod select;
mod shared_stage;
mod tee;

pub use count::{Count, Counts, TypeCount};
pub use first::{First, Taken};
pub use response_time::{OperationTimes, ResponseTimes, Times};
pub use select::{ByTime, ByType, TypePattern};
pub use shared_stage::SharedStage;
pub use tee::Tee;
