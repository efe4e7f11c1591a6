//! The memory of chunks, used again once nobody holds them any more.

use std::collections::VecDeque;

use bytes::Bytes;

/// So many bytes of memory are kept at most, that of chunks on their way included: about what a
/// processor's second cache holds.
pub(super) const KEEP_BYTES: usize = 2 << 20;

/// The last chunks, oldest first.
///
/// A chunk's memory is asked for by the collector and given back by whichever thread learns of its
/// fate. An allocator then makes each wait for the other, and one that gives memory back to the
/// system takes fresh pages for every chunk (a part of the collector's time that shows
/// in a profile of chunks of 1,024 to Kafka).
#[derive(Debug)]
pub(super) struct Buffers {
    kept: VecDeque<Kept>,
    bytes: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    chunk: Bytes,
    /// How much memory it has, which may be more than it needs.
    capacity: usize,
}

impl Buffers {
    /// Keeps so many bytes at most.
    pub(super) const fn new(most_bytes: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            most_bytes,
        }
    }

    /// Empty memory for so many bytes: that of the oldest chunk, if nobody else holds it.
    pub(super) fn take(&mut self, capacity: usize) -> Vec<u8> {
        let is_free = |oldest: &Kept| oldest.chunk.is_unique();
        if self.kept.front().is_some_and(is_free)
            && let Some(Kept { mut chunk, .. }) = self.forget_oldest()
        {
            // What is in it need not be copied to where it is; of no bytes the memory is not kept.
            chunk.truncate(1);
            let mut memory = Vec::from(chunk);
            memory.clear();
            // Chunks may have become much larger, or much smaller.
            if memory.capacity() >= capacity && memory.capacity() / 4 <= capacity {
                return memory;
            }
        }
        Vec::with_capacity(capacity)
    }

    /// A chunk of these bytes, whose memory may be used again.
    pub(super) fn chunk(&mut self, bytes: Vec<u8>) -> Bytes {
        let capacity = bytes.capacity();
        let chunk = Bytes::from(bytes);
        if capacity <= self.most_bytes {
            self.bytes = self.bytes.saturating_add(capacity);
            self.kept.push_back(Kept {
                chunk: chunk.clone(),
                capacity,
            });
            while self.bytes > self.most_bytes {
                self.forget_oldest();
            }
        }
        chunk
    }

    fn forget_oldest(&mut self) -> Option<Kept> {
        let oldest = self.kept.pop_front()?;
        self.bytes = self.bytes.saturating_sub(oldest.capacity);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of so many bytes in the memory that is there, and where that is.
    fn chunk(buffers: &mut Buffers, bytes: usize) -> (Bytes, *const u8) {
        let mut memory = buffers.take(bytes);
        assert!(memory.is_empty() && memory.capacity() >= bytes);
        memory.resize(bytes, 7);
        let chunk = buffers.chunk(memory);
        let place = chunk.as_ptr();
        (chunk, place)
    }

    #[test]
    fn memory_is_used_again_once_nobody_holds_it() {
        let mut buffers = Buffers::new(10_000);
        let (first, at) = chunk(&mut buffers, 1_000);
        let shared = first.slice(10..20);
        let (second, elsewhere) = chunk(&mut buffers, 1_000);
        assert_ne!(at, elsewhere);
        drop((first, second));
        // A part of it is still held, and it is the oldest.
        let (third, other) = chunk(&mut buffers, 1_000);
        assert_ne!(at, other);
        assert_eq!(shared, [7; 10].as_slice());
        drop((shared, third));
        assert_eq!(chunk(&mut buffers, 900).1, at);
    }

    #[test]
    fn memory_of_another_size_is_given_back() {
        let mut buffers = Buffers::new(10_000);
        for (bytes, capacity) in [(4_000, 5_000), (1_000, 100), (90, 1_000)] {
            drop(chunk(&mut buffers, bytes));
            let memory = buffers.take(capacity);
            assert_eq!(memory.capacity(), capacity, "{bytes}");
            assert!(buffers.kept.is_empty() && buffers.bytes == 0);
        }
    }

    #[test]
    fn no_more_is_kept_than_was_agreed() {
        let mut buffers = Buffers::new(2_500);
        let chunks = [(); 5].map(|()| chunk(&mut buffers, 1_000).0);
        assert_eq!((buffers.kept.len(), buffers.bytes), (2, 2_000));
        let (large, _) = chunk(&mut buffers, 3_000);
        assert_eq!((buffers.kept.len(), buffers.bytes), (2, 2_000));
        assert!(chunks.iter().take(3).all(Bytes::is_unique) && large.is_unique());
        let mut nothing = Buffers::new(0);
        assert!(chunk(&mut nothing, 1).0.is_unique());
    }
}
