//! What does not decode is put aside with its bytes, its coordinates and the reason.
//!
//! [`MediumQuarantine`] keeps it in a topic, a queue or whatever else has a writer; the file connector
//! has a quarantine that is a folder.
//! [`Attempts`] finds the chunks that crash their consumer.

mod attempts;
mod medium;
mod record;

use std::io;

pub use attempts::Attempts;
pub(crate) use attempts::ChunkInWork;
pub use baler_common::transport::{Poison, Quarantine};
pub use medium::MediumQuarantine;
pub use record::Quarantined;

/// Keeps nothing: the source counts what it rejects, the bytes are gone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Quarantine for Discard {
    fn put_aside(&mut self, _poison: Poison<'_>) -> io::Result<()> {
        Ok(())
    }
}
