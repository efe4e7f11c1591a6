#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

#[cfg(feature = "arrow")]
pub mod arrow;
mod error;
pub mod filters;
mod group;
// Texts come from outside.
#[deny(clippy::indexing_slicing)]
pub mod json_text;
pub mod lanes;
mod last_time;
mod parcel;
mod pipe;
mod report;
pub mod sinks;
mod source;
mod stage;
pub mod text;
pub mod traces;
pub mod workers;

pub use baler_connector_file::quarantine;

pub use error::AnalysisError;
pub use parcel::{Held, Parcel};
pub use pipe::{Pipe, Progress};
pub use report::{SourceReport, SourceWatch};
pub use source::{Source, Step, Stop};
pub use stage::Stage;
