//! Switching probes and samplers at run time, by patterns (Kieker's *adaptive monitoring*).
//!
//! ```text
//! Controller::activate, … ─┐
//! file, watched ───────────┴> Switch (the list of patterns) ─> every call site's state, samplers
//! ```
//!
//! The thread that makes a change applies it to each call site once. A call then reads only the
//! state of its own site. [`Upkeep`] watches the file, on the collector's thread.

mod file;
mod upkeep;

pub use file::{FileChange, PatternFile, PatternNews};
pub(crate) use upkeep::{Settings, Switch, Upkeep};
