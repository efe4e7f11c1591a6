//! What a writer and a reader count.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that one thread adds to and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($(#[$doc:meta])* $counters:ident -> $stats:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $field: Counter,)*
        }

        impl $counters {
            pub(crate) fn stats(&self) -> $stats {
                $stats { $($field: self.$field.get(),)* }
            }
        }

        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $stats {
            $($(#[$field_doc])* pub $field: u64,)*
        }
    };
}

counters! {
    /// What a writer counted since it was made, over all its reopenings.
    WriterCounters -> WriterStats {
        /// Chunks written.
        chunks,
        /// Bytes written, frames included.
        bytes,
        /// Segments begun.
        segments,
        /// How often data was forced to stable storage.
        syncs,
        /// Pieces of torn or foreign bytes that recovery moved to `damaged/`.
        damaged_pieces,
        /// How many bytes these had.
        damaged_bytes,
        /// Pieces that could not be moved and stay where they are, for readers to report.
        unmoved_pieces,
        /// Segments that could not be read when the folder was opened.
        unreadable_segments,
        /// Segments removed because the folder was full.
        dropped_segments,
        /// Chunks in them, by their numbers.
        dropped_chunks,
        /// Bytes in them.
        dropped_bytes,
        /// Segments removed because every consumer had settled them.
        consumed_segments,
        /// Bytes in them.
        consumed_bytes,
    }
}

counters! {
    /// What a reader counted since it was opened.
    ReaderCounters -> ReaderStats {
        /// Chunks handed out for the first time.
        chunks,
        /// Bytes of these chunks.
        bytes,
        /// Chunks handed out again.
        redelivered,
        /// Pieces handed out as damaged.
        damaged_pieces,
        /// Bytes skipped as damaged.
        damaged_bytes,
        /// Numbers of chunks that never came: damaged, or in segments that were removed.
        missing_chunks,
        /// How often the consumer's position was written.
        commits,
        /// Segments removed because every consumer had settled them.
        consumed_segments,
        /// Bytes in them.
        consumed_bytes,
    }
}
