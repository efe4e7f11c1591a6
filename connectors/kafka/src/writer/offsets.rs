//! Finds out that a partition lost chunks that it had confirmed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The offsets of confirmed chunks.
///
/// A chunk that is offered after another one was confirmed gets a higher offset in the same
/// partition. A lower one means that the partition lost what it had: somebody deleted the topic and
/// created it again, or a replica without the confirmed chunks became the leader.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    /// How many chunks were offered.
    offered: AtomicU64,
    /// The last offset of each partition that later chunks are compared with.
    marks: Mutex<HashMap<i32, Mark>>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: i64,
    /// How many chunks had been offered when this one was confirmed.
    offered: u64,
}

impl Offsets {
    /// The number of the next chunk, before it is offered.
    pub(super) fn offer(&self) -> u64 {
        self.offered.fetch_add(1, Ordering::AcqRel)
    }

    /// A chunk was confirmed; says how many offsets its partition lost, if it did.
    pub(super) fn confirm(&self, number: u64, partition: i32, offset: i64) -> Option<u64> {
        // With acks=0 brokers do not tell offsets.
        if offset < 0 {
            return None;
        }
        let offered = self.offered.load(Ordering::Acquire);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Mark { offset, offered };
        let mark = marks.entry(partition).or_insert(now);
        // A chunk that was under way at the same time may have any offset.
        if number < mark.offered {
            return None;
        }
        let before = std::mem::replace(mark, now).offset;
        let lost = before.checked_sub(offset)?.checked_add(1)?;
        u64::try_from(lost).ok().filter(|lost| *lost > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_chunk_that_was_offered_later_tells_that_a_partition_lost_chunks() {
        let offsets = Offsets::default();
        let [first, second] = [(); 2].map(|()| offsets.offer());
        assert_eq!(offsets.confirm(second, 0, 110), None);
        assert_eq!(
            offsets.confirm(first, 0, 100),
            None,
            "it was under way at the same time and was written twice"
        );
        let [third, fourth, fifth] = [(); 3].map(|()| offsets.offer());
        assert_eq!(offsets.confirm(third, 1, 3), None, "another partition");
        assert_eq!(offsets.confirm(third, 0, -1), None, "nobody said where");
        assert_eq!(offsets.confirm(fourth, 0, 111), None);
        assert_eq!(offsets.confirm(fifth, 0, 2), None, "under way with it");
        let sixth = offsets.offer();
        assert_eq!(offsets.confirm(sixth, 0, 3), Some(109), "it was told late");
        let seventh = offsets.offer();
        assert_eq!(offsets.confirm(seventh, 0, 4), None, "it is told once");
    }
}
