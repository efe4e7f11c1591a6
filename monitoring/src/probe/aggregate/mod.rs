//! Calls that are added up where they are made, so that most of them leave no record.
//!
//! ```text
//! call -> [cell of this thread and site] -> collector: one record a cell and interval
//! ```
//!
//! A thread adds its calls to a cell of its own by plain loads and stores ([`cell`]).
//! The collector takes what was added since the last time, at each interval, at a flush and at the
//! end, whether the thread goes on, sleeps or has ended; the cells of ended threads are given to new
//! ones with all that is in them ([`cells`]).
//! The totals become records: [`AggregatedDurationRecord`](baler_common::record::timing::AggregatedDurationRecord).

mod cell;
mod cells;
mod guard;
#[cfg(test)]
#[cfg(baler_loom)]
mod tests;

pub(crate) use cell::CallTotals;
pub use cells::CellSlot;
pub(crate) use cells::take_all;
#[cfg(unix)]
pub(crate) use cells::{CellsHold, hold_cells};
pub use guard::AggregatedGuard;
