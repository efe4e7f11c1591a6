//! Probes: what records the calls of functions and blocks.
//!
//! [`Site`] (one a call site) -> [`Guard`] or [`Call`] (one a call) -> an operation execution record
//! in the queue.

mod call;
mod path;
mod record;
mod registry;
mod site;

pub use call::{Call, Guard};
pub(crate) use record::signature;
pub(crate) use registry::set_recording;
pub use site::Site;
