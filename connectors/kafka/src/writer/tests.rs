//! Limits and offsets by themselves.

use super::producer::Limits;
use super::state::Offsets;
use crate::config::{LEAST_MESSAGE_MAX_BYTES, chunk_of};

#[test]
fn chunk_that_is_too_large_without_a_known_reason_halves_the_limit() {
    let mut limits = Limits::default();
    let least = chunk_of(LEAST_MESSAGE_MAX_BYTES).get();
    let mut bytes = 1_000_000;
    for _ in 0..20 {
        limits.halve(bytes);
        let next = chunk_of(limits.refusal_limit.unwrap()).get();
        assert!(next < bytes || next == least);
        bytes = next;
    }
    assert_eq!(bytes, least);
    let topic = Some(10_512);
    let mut limits = Limits {
        topic,
        ..Limits::default()
    };
    limits.halve(10_001);
    assert_eq!(limits.refusal_limit, None, "the topic's limit explains it");
    limits.halve(9_000);
    assert_eq!(limits.refusal_limit, Some(5_000));
}

#[test]
fn only_a_chunk_that_was_offered_later_tells_that_a_partition_lost_chunks() {
    let mut offsets = Offsets::default();
    let [first, second] = [(); 2].map(|()| offsets.offer());
    assert_eq!(offsets.confirm(second, 0, 110), None);
    // It was under way at the same time and was written twice.
    assert_eq!(offsets.confirm(first, 0, 100), None);
    let [third, fourth, fifth] = [(); 3].map(|()| offsets.offer());
    assert_eq!(offsets.confirm(third, 1, 3), None, "another partition");
    assert_eq!(offsets.confirm(third, 0, -1), None, "nobody said where");
    assert_eq!(offsets.confirm(fourth, 0, 111), None);
    assert_eq!(offsets.confirm(fifth, 0, 2), None, "under way with it");
    let sixth = offsets.offer();
    assert_eq!(offsets.confirm(sixth, 0, 3), Some(109), "it is late");
    let seventh = offsets.offer();
    assert_eq!(offsets.confirm(seventh, 0, 4), None, "it is said once");
    // Chunks that were offered together count, too.
    let together = [(); 100].map(|()| offsets.offer());
    for (offset, number) in (5..).zip(together) {
        assert_eq!(offsets.confirm(number, 0, offset), None);
    }
    let last = offsets.offer();
    assert_eq!(offsets.confirm(last, 0, 0), Some(105));
}
