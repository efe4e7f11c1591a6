//! Probes, queue and collector: the part of Baler that is linked into an application.
//!
//! ```text
//! probe -> queue per thread -> collector: batch -> [chunk] -> writer
//! ```

mod clock;

pub use clock::{Clock, TestClock};
