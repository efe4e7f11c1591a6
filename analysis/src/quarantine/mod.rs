//! What does not decode is put aside with its bytes, its coordinates and the reason.
//!
//! [`Folder`] keeps it on disk, [`MediumQuarantine`] in a topic, a queue or whatever else has a
//! writer.

mod folder;
mod medium;
mod record;

use std::io;

use baler_common::transport::{ChunkIdentity, Origin};

pub use folder::Folder;
pub use medium::MediumQuarantine;
pub use record::Quarantined;

/// A chunk that cannot be processed.
#[derive(Debug, Clone, Copy)]
pub struct Poison<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Where they were.
    pub origin: &'a Origin,
    /// Who the chunk is, if the medium said so.
    pub identity: Option<ChunkIdentity>,
    /// What is wrong with it.
    pub reason: &'a str,
}

/// Keeps what cannot be processed.
pub trait Quarantine: Send {
    /// Puts a chunk aside. It must be safe when this returns: it is then rejected at the medium.
    ///
    /// # Errors
    ///
    /// It could not be kept; the chunk is given back to the medium and the source ends.
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()>;
}

/// Keeps nothing: the source counts what it rejects, the bytes are gone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Quarantine for Discard {
    fn put_aside(&mut self, _poison: Poison<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl<Q: Quarantine + ?Sized> Quarantine for Box<Q> {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        (**self).put_aside(poison)
    }
}
