//! What was offered and is not yet confirmed.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroUsize};

use super::capability::Capability;
use super::chunk::Chunk;
#[cfg(feature = "uri")]
use super::uri::{Uri, UriError, set};

/// How much may be offered and not yet confirmed: the settings that a medium's [`Window`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// In chunks.
    pub chunks: NonZeroU32,
    /// In bytes; one chunk is always taken.
    pub bytes: NonZeroU32,
}

impl WindowLimits {
    /// So many chunks and 64 MiB.
    pub const fn new(chunks: NonZeroU32) -> Self {
        let bytes = NonZeroU32::MIN.saturating_add((64 << 20) - 1);
        Self { chunks, bytes }
    }

    /// Takes the settings `window_chunks` and `window` out of a URI, where they are given.
    ///
    /// # Errors
    ///
    /// One is no number above 0, or no size.
    #[cfg(feature = "uri")]
    pub fn take(&mut self, uri: &mut Uri) -> Result<(), UriError> {
        set(&mut self.chunks, uri.take_number("window_chunks")?);
        set(&mut self.bytes, uri.take_bytes_in("window")?);
        Ok(())
    }

    /// Puts them into what a writer says of itself.
    pub fn apply(self, capability: &mut Capability) {
        let wide = |value: NonZeroU32| NonZeroUsize::try_from(value).unwrap_or(NonZeroUsize::MAX);
        capability.window_chunks = wide(self.chunks);
        capability.window_bytes = wide(self.bytes);
    }
}

/// Tickets and bytes of what a writer took and has not confirmed, in the order of the offers.
#[derive(Debug, Default)]
pub struct Window {
    unconfirmed: VecDeque<(u64, usize)>,
    bytes: usize,
    /// A chunk was taken after one with a higher ticket, as one is that is offered again while others
    /// are in flight. Until then tickets ascend.
    unordered: bool,
}

impl Window {
    /// Counts a chunk as taken, if the capability's window has room for it; whether it has. An
    /// empty window has room for every chunk.
    pub fn take(&mut self, chunk: &Chunk, capability: &Capability) -> bool {
        let bytes = chunk.bytes.len();
        let full = self.unconfirmed.len() >= capability.window_chunks.get()
            || (!self.is_empty()
                && self.bytes.saturating_add(bytes) > capability.window_bytes.get());
        if !full {
            let last = self.unconfirmed.back();
            self.unordered = last.is_some_and(|(last, _)| self.unordered || *last >= chunk.ticket);
            self.unconfirmed.push_back((chunk.ticket, bytes));
            self.bytes = self.bytes.saturating_add(bytes);
        }
        !full
    }

    /// Takes out the chunk that was offered first; yields its ticket.
    pub fn remove_oldest(&mut self) -> Option<u64> {
        let (ticket, bytes) = self.unconfirmed.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(ticket)
    }

    /// Where the chunk with a ticket is: a binary search, unless a chunk was offered again among
    /// others.
    fn place(&self, ticket: u64) -> Option<usize> {
        if self.unordered {
            return self.unconfirmed.iter().position(|(it, _)| *it == ticket);
        }
        self.unconfirmed
            .binary_search_by_key(&ticket, |(it, _)| *it)
            .ok()
    }

    /// Takes out the chunk with a ticket; whether it was there. The nearer it is to the oldest or the
    /// newest one, the less it costs.
    pub fn remove(&mut self, ticket: u64) -> bool {
        let place = self.place(ticket);
        let removed = place.and_then(|place| self.unconfirmed.remove(place));
        self.bytes = self
            .bytes
            .saturating_sub(removed.map_or(0, |(_, bytes)| bytes));
        removed.is_some()
    }

    /// The bytes of the chunk with a ticket.
    pub fn bytes_of(&self, ticket: u64) -> Option<usize> {
        let place = self.place(ticket)?;
        self.unconfirmed.get(place).map(|(_, bytes)| *bytes)
    }

    /// Tickets, in the order of the offers.
    pub fn tickets(&self) -> impl Iterator<Item = u64> + '_ {
        self.unconfirmed.iter().map(|(ticket, _)| *ticket)
    }

    /// How many chunks.
    pub fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Whether everything that was taken is confirmed.
    pub fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.unconfirmed.clear();
        self.bytes = 0;
        self.unordered = false;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use bytes::Bytes;

    use super::*;
    use crate::transport::{
        ChunkIdentity, ChunkMeta, ContainerKind, Durability, Epoch, Order, ProducerId,
    };

    fn chunk(ticket: u64, bytes: usize) -> Chunk {
        let identity = ChunkIdentity {
            producer: ProducerId::new(1),
            epoch: Epoch {
                start_unix_ns: 1,
                random: 1,
            },
            lane: 0,
            sequence: ticket,
        };
        Chunk {
            ticket,
            meta: ChunkMeta {
                container: ContainerKind::Native,
                records: 1,
                identity,
            },
            bytes: Bytes::from(vec![0; bytes]),
        }
    }

    fn capability(chunks: usize, bytes: usize) -> Capability {
        let mut capability = Capability::new("test", Order::PerLane, Durability::None);
        capability.window_chunks = NonZeroUsize::new(chunks).unwrap();
        capability.window_bytes = NonZeroUsize::new(bytes).unwrap();
        capability
    }

    #[test]
    fn window_is_full_by_chunks_or_by_bytes_but_one_chunk_always_fits() {
        let mut window = Window::default();
        let three = capability(3, 100);
        assert!(window.take(&chunk(1, 500), &three), "alone it always fits");
        assert!(!window.take(&chunk(2, 1), &three));
        assert_eq!(window.remove_oldest(), Some(1));
        assert!(window.take(&chunk(2, 60), &three) && window.take(&chunk(3, 40), &three));
        assert!(!window.take(&chunk(4, 1), &three), "by bytes");
        assert!(window.take(&chunk(4, 0), &three));
        assert!(!window.take(&chunk(5, 0), &three), "by chunks");
        assert_eq!(window.tickets().collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn what_is_removed_makes_room_whichever_it_is() {
        let mut window = Window::default();
        let capability = capability(8, 100);
        for ticket in 1..=4 {
            assert!(window.take(&chunk(ticket, 25), &capability));
        }
        assert!(!window.take(&chunk(5, 25), &capability));
        assert_eq!(window.bytes_of(3), Some(25));
        assert!(window.remove(3) && !window.remove(3));
        assert!(window.take(&chunk(5, 25), &capability));
        assert_eq!(window.tickets().collect::<Vec<_>>(), [1, 2, 4, 5]);
        // Offered again while others are in flight: behind them.
        assert!(window.remove(2) && window.take(&chunk(2, 25), &capability));
        assert_eq!(window.tickets().collect::<Vec<_>>(), [1, 4, 5, 2]);
        assert_eq!((window.bytes_of(5), window.bytes_of(3)), (Some(25), None));
        assert!(window.remove(1) && window.remove(2) && !window.remove(2) && window.remove(5));
        window.clear();
        assert!(window.is_empty() && window.take(&chunk(6, 100), &capability));
        assert_eq!((window.len(), window.remove_oldest()), (1, Some(6)));
    }
}
