#![doc = include_str!("../README.md")]

mod error;
pub mod filters;
pub mod kieker_log;
pub mod lanes;
mod parcel;
mod pipe;
pub mod quarantine;
pub mod sinks;
mod source;
mod stage;
pub mod trace;

pub use error::AnalysisError;
pub use parcel::{Held, Parcel};
pub use pipe::Pipe;
pub use source::{Source, SourceReport, Step, Stop};
pub use stage::Stage;
