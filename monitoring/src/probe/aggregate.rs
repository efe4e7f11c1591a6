//! Calls that are added up where they are made, so that most of them make no record.
//!
//! ```text
//! call -> [cell of this thread and site] -> collector: one record a cell and interval
//! ```
//!
//! A thread adds its calls to a cell of its own by plain loads and stores ([`cell`]). At each
//! interval, at a flush and at the end, the collector takes the totals since the last time. It does
//! so whether the thread runs, sleeps or has ended. New threads get the cells of ended threads with
//! all their content ([`cells`]). The totals become records:
//! [`AggregatedDurationRecord`](baler_common::record::timing::AggregatedDurationRecord).

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
