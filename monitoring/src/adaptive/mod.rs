//! Switching probes and samplers at run time, by patterns (Kieker's *adaptive monitoring*).
//!
//! ```text
//! Controller::activate, … ─┐
//! file, watched ───────────┴> Switch (the list of patterns) ─> every call site's state, samplers
//! ```
//!
//! A change is worked out for each call site once, by whoever makes it; the sites then look at
//! nothing but their own state.
//! The collector's thread looks after the file, [`Upkeep`].

mod file;
mod upkeep;

pub use file::PatternNews;
pub(crate) use upkeep::{Settings, Switch, Upkeep};
