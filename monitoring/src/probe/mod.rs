//! Probes: what records the calls of functions and blocks.
//!
//! [`Site`] (one a call site) -> [`Guard`] or [`AsyncCall`] (one a call) -> an operation execution record
//! in the queue.

mod aggregate;
mod busy;
mod call;
mod events;
mod path;
mod record;
mod registry;
mod site;
mod turns;

pub use aggregate::{AggregatedGuard, CellSlot};
pub(crate) use aggregate::{CallTotals, take_all};
#[cfg(unix)]
pub(crate) use aggregate::{CellsHold, hold_cells};
pub use call::{AsyncCall, DurationGuard, Guard, never_called, run};
pub use events::{EventGuard, run_events};
pub(crate) use record::{no_session, signature, tell_parent};
#[cfg(unix)]
pub(crate) use registry::RegistryHold;
pub(crate) use registry::{hold_registry, set_recording};
pub(crate) use site::KIND_BITS;
pub use site::Site;
pub use turns::Turns;
