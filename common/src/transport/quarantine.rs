//! The seam to what keeps chunks that cannot be processed or delivered.

use std::io;

use super::chunk::ChunkMeta;
use super::reader::Origin;

/// A chunk that cannot be processed, or not be delivered.
#[derive(Debug, Clone, Copy)]
pub struct Poison<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Where they were.
    pub origin: &'a Origin,
    /// The identity and the contents of the chunk, as far as the medium or the chunk names them.
    pub meta: Option<ChunkMeta>,
    /// What is wrong with it.
    pub reason: &'a str,
    /// Whether it may be a sound chunk: one that crashed its consumer, was refused, or has the
    /// identity of another one. Such a chunk must not be discarded.
    pub is_sound: bool,
}

/// Keeps what cannot be processed.
///
/// Calls may block for as long as the disk or the medium takes.
pub trait Quarantine: Send {
    /// Puts a chunk aside. It must be safe when this returns: it is then rejected at the medium.
    ///
    /// # Errors
    ///
    /// It could not be kept; the chunk is given back to the medium.
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()>;

    /// Puts several chunks aside, oldest first, and says of each whether it is safe.
    ///
    /// One by one unless a quarantine knows better: what makes a chunk safe (a disk's flush, a
    /// broker's confirmation) costs for a group little more than for one.
    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        group.iter().map(|poison| self.put_aside(*poison)).collect()
    }
}

impl<Q: Quarantine + ?Sized> Quarantine for Box<Q> {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        (**self).put_aside(poison)
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        (**self).put_group_aside(group)
    }
}
