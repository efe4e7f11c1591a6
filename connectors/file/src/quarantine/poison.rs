//! The seam: a chunk that cannot be processed, and who keeps it.

use std::io;
use std::net::IpAddr;

use baler_common::transport::{ChunkMeta, Damaged, Origin};

/// A poison message: a chunk that cannot be processed or delivered.
#[derive(Debug, Clone, Copy)]
pub struct Poison<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Their origin.
    pub origin: &'a Origin,
    /// The identity and the contents of the chunk, as far as the medium or the chunk contains them.
    pub meta: Option<ChunkMeta>,
    /// The reason.
    pub reason: &'a str,
    /// Whether it may be a sound chunk: it crashed its consumer, was refused, or has the identity
    /// of another one. Such a chunk must not be discarded.
    pub is_sound: bool,
    /// The peer whose connection was closed because of these bytes; see [`Damaged::peer`].
    pub peer: Option<IpAddr>,
}

impl<'a> Poison<'a> {
    /// Returns the poison message of bytes that the medium itself recognised.
    pub fn damaged(damaged: &'a Damaged) -> Self {
        Self {
            bytes: &damaged.bytes,
            origin: &damaged.origin,
            meta: None,
            reason: &damaged.reason,
            is_sound: false,
            peer: damaged.peer,
        }
    }

    /// Returns the reason without its figures, which differ from message to message.
    pub fn kind(&self) -> String {
        const MAX_WORDS: usize = 50;
        let words = self.reason.split_whitespace();
        let words = words.filter(|word| !word.contains(|char: char| char.is_ascii_digit()));
        words.take(MAX_WORDS).collect::<Vec<_>>().join(" ")
    }
}

/// What a quarantine did with a poison message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutAside {
    /// It is safe, byte for byte.
    Kept,
    /// Only a count of it is left.
    Counted(NotKept),
}

/// The reason why only a count is left of a poison message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotKept {
    /// The quarantine is full.
    Full,
    /// There is no quarantine.
    NoQuarantine,
    /// An example of its kind, from a connection of the same peer, is kept already. Beyond the
    /// limit of examples it is any peer and any kind.
    Repeated,
    /// It came in a flood, and the medium only counted it ([`ReaderStats::unreported`](baler_common::transport::ReaderStats::unreported)).
    Unreported,
}

impl NotKept {
    /// All reasons.
    pub const ALL: [Self; 4] = [
        Self::Full,
        Self::NoQuarantine,
        Self::Repeated,
        Self::Unreported,
    ];

    /// Returns the name of the reason, as figures have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoQuarantine => "no_quarantine",
            Self::Repeated => "repeated",
            Self::Unreported => "unreported",
        }
    }
}

/// Keeps poison messages.
///
/// Calls may block for as long as the disk or the medium takes.
pub trait Quarantine: Send {
    /// Keeps a chunk. It must be safe when this returns [`PutAside::Kept`], because it is then
    /// rejected at the medium. Only bytes that are not sound may be counted instead.
    ///
    /// # Errors
    ///
    /// The chunk could not be kept; it is given back to the medium.
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside>;

    /// Keeps several chunks, oldest first, and returns the result for each.
    ///
    /// By default it keeps them one by one. A flush of a disk or a confirmation of a broker costs
    /// little more for a group than for one chunk, so a quarantine may do better.
    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        group.iter().map(|poison| self.put_aside(*poison)).collect()
    }
}

impl<Q: Quarantine + ?Sized> Quarantine for Box<Q> {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        (**self).put_aside(poison)
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        (**self).put_group_aside(group)
    }
}

/// Keeps nothing. The source counts its rejected chunks, but their bytes are gone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Quarantine for Discard {
    fn put_aside(&mut self, _poison: Poison<'_>) -> io::Result<PutAside> {
        Ok(PutAside::Counted(NotKept::NoQuarantine))
    }
}
