//! Filters: stages that select, count or measure records.
//!
//! A handle reads the figures of a filter while the pipeline runs and after it.

// Texts come from outside.
#[deny(clippy::indexing_slicing)]
mod condition;
mod count;
#[deny(clippy::indexing_slicing)]
mod fields;
mod first;
mod response_time;
mod select;
mod shared_stage;

pub use condition::{Condition, Undecided, UndecidedKind, Where};
pub use count::{Count, Counts, TypeCount};
pub use fields::{Fields, FieldsStage, SelectionError};
pub use first::{First, Taken};
pub(crate) use response_time::Durations;
pub use response_time::{OperationTimes, ResponseTimes, Times};
pub use select::{ByTime, ByType, TypePattern};
pub use shared_stage::{SharedStage, Tee};
