//! The consuming side of Baler: chunks in, processed records out.
//!
//! ```text
//! ChunkReader -> Source (decode, drop duplicates, quarantine) -> Parcel -> Stage -> ... -> Stage
//!             <- settled when the last stage has let go of the parcel <-
//! ```
//!
//! - [`Source`] drives any reader, decodes its chunks and settles them after processing.
//! - [`Stage`] is a filter or a sink; [`filters`] and [`sinks`] hold the ready ones.
//! - [`Pipe`] moves the stages behind it to a thread of their own, with a bound.
//! - [`trace`] builds call trees.
//! - [`lanes`] tells duplicates and gaps, [`quarantine`] keeps what does not decode.
//!
//! The architecture is that of the paper (Knoche, section 3): a generic source decodes, the reader
//! only carries bytes. Other than Kieker's, it settles after processing, not on receipt.

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
