//! Probes: what records the calls of functions and blocks.
//!
//! [`Site`] (one a call site) -> [`Guard`] or [`Call`] (one a call) -> an operation execution record
//! in the queue.

mod aggregate;
mod call;
mod duration;
mod path;
mod record;
mod registry;
mod site;
mod turns;

pub use aggregate::{AggregatedCall, AggregatedGuard, CellSlot};
pub(crate) use aggregate::{Content, take_all};
pub use call::{Call, Guard};
pub use duration::DurationGuard;
pub(crate) use record::{signature, tell_parent};
pub(crate) use registry::set_recording;
pub use site::Site;
pub use turns::Turns;
