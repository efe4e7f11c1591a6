//! Switching probes and samplers at run time, by patterns (Kieker's *adaptive monitoring*).
//!
//! ```text
//! Controller::activate, … ─┐
//! file, watched ───────────┴> Switch (the list of patterns) ─> every call site's state, samplers
//! other end of the writer ──> Switch (verdicts) ─────────────> every call site's state
//! ```
//!
//! A call site records if the patterns and the verdict on it allow that. So neither side can switch
//! on what the other one has switched off, and the order of their changes does not matter.
//!
//! The thread that makes a change applies it to each call site once. A call then reads only the
//! state of its own site. [`Upkeep`] watches the file, on the collector's thread.

mod file;
mod sites;
mod upkeep;

pub use file::{FileChange, PatternFile, PatternNews};
pub(crate) use sites::Sites;
pub(crate) use upkeep::{Settings, Switch, Upkeep};
