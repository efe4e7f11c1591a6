//! Filters: stages that select, watch or measure what passes.
//!
//! A figure that a filter collects is read through a handle while the pipeline runs and after it.

mod aggregates;
mod by_time;
mod by_type;
mod count;
mod first;
mod response_time;
mod shared;
mod tee;
mod throughput;

pub use aggregates::{AddUp, Aggregates};
pub use by_time::ByTime;
pub use by_type::{ByType, TypePattern};
pub use count::{Count, Counts, TypeCount};
pub use first::{First, Taken};
pub use response_time::{OperationTimes, ResponseTimes, Times};
pub use shared::Shared;
pub use tee::Tee;
pub use throughput::{Interval, Rates, Throughput};
