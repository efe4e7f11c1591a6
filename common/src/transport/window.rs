//! Chunks that were offered and are not yet confirmed.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroUsize};

use super::chunk::Chunk;
#[cfg(feature = "uri")]
use super::uri::{Uri, UriError, set};
use super::writer::Capability;
use crate::non_zero;

/// The limits of a medium's [`Window`]: the chunks that may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// The most chunks.
    pub chunks: NonZeroU32,
    /// The most bytes; one chunk is always accepted.
    pub bytes: NonZeroU32,
}

impl WindowLimits {
    /// This number of chunks and 64 MiB.
    pub const fn new(chunks: NonZeroU32) -> Self {
        let bytes = non_zero!(64 << 20);
        Self { chunks, bytes }
    }

    /// Takes the settings `window_chunks` and `window` from a URI, if they are given.
    ///
    /// # Errors
    ///
    /// One is not a number above 0, or not a size.
    #[cfg(feature = "uri")]
    pub fn take(&mut self, uri: &mut Uri) -> Result<(), UriError> {
        set(&mut self.chunks, uri.take_number("window_chunks")?);
        set(&mut self.bytes, uri.take_bytes_in("window")?);
        Ok(())
    }

    /// Applies them to a writer's capability.
    pub fn apply(self, capability: &mut Capability) {
        let wide = |value: NonZeroU32| NonZeroUsize::try_from(value).unwrap_or(NonZeroUsize::MAX);
        capability.window_chunks = wide(self.chunks);
        capability.window_bytes = wide(self.bytes);
    }
}

/// The number and the bytes of the chunks in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InFlight {
    pub(super) chunks: usize,
    pub(super) bytes: usize,
}

impl InFlight {
    /// Whether the window of a capability has room for a chunk of this size. Alone in flight, every
    /// chunk has room.
    pub(super) fn has_room(self, bytes: usize, capability: &Capability) -> bool {
        self.chunks < capability.window_chunks.get()
            && (self.chunks == 0 || self.bytes + bytes <= capability.window_bytes.get())
    }

    /// Counts a chunk that was taken.
    pub(super) fn add(&mut self, bytes: usize) {
        self.chunks += 1;
        self.bytes += bytes;
    }

    /// Counts a chunk that left.
    pub(super) fn remove(&mut self, bytes: usize) {
        self.chunks -= 1;
        self.bytes -= bytes;
    }
}

/// Tickets and bytes of the chunks in flight, in the order of the offers.
#[derive(Debug, Default)]
pub struct Window {
    unconfirmed: VecDeque<(u64, usize)>,
    in_flight: InFlight,
    /// Whether a chunk was taken after one with a higher ticket. This happens when it is offered
    /// again while others are in flight. Until then tickets ascend.
    unordered: bool,
}

impl Window {
    /// Counts a chunk as taken, if the capability's window has room for it; returns whether it has.
    /// An empty window has room for every chunk.
    pub fn take(&mut self, chunk: &Chunk, capability: &Capability) -> bool {
        let bytes = chunk.bytes.len();
        let has_room = self.in_flight.has_room(bytes, capability);
        if has_room {
            let last = self.unconfirmed.back();
            self.unordered = last.is_some_and(|(last, _)| self.unordered || *last >= chunk.ticket);
            self.unconfirmed.push_back((chunk.ticket, bytes));
            self.in_flight.add(bytes);
        }
        has_room
    }

    /// Removes the chunk that was offered first; returns its ticket.
    pub fn remove_oldest(&mut self) -> Option<u64> {
        let (ticket, bytes) = self.unconfirmed.pop_front()?;
        self.in_flight.remove(bytes);
        Some(ticket)
    }

    /// Returns the position of the chunk with a ticket. This is a binary search, unless a chunk was
    /// offered again while others were in flight.
    fn place(&self, ticket: u64) -> Option<usize> {
        if self.unordered {
            return self.unconfirmed.iter().position(|(it, _)| *it == ticket);
        }
        self.unconfirmed
            .binary_search_by_key(&ticket, |(it, _)| *it)
            .ok()
    }

    /// Removes the chunk with a ticket; returns whether it was there. Near the oldest or the newest
    /// chunk this is cheap.
    pub fn remove(&mut self, ticket: u64) -> bool {
        let place = self.place(ticket);
        let Some((_, bytes)) = place.and_then(|place| self.unconfirmed.remove(place)) else {
            return false;
        };
        self.in_flight.remove(bytes);
        true
    }

    /// Returns the bytes of the chunk with a ticket.
    pub fn bytes_of(&self, ticket: u64) -> Option<usize> {
        let place = self.place(ticket)?;
        self.unconfirmed.get(place).map(|(_, bytes)| *bytes)
    }

    /// Returns the tickets, in the order of the offers.
    pub fn tickets(&self) -> impl Iterator<Item = u64> + '_ {
        self.unconfirmed.iter().map(|(ticket, _)| *ticket)
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Whether everything that was taken is confirmed.
    pub fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
pub(super) mod tests;
