//! Arrivals, verdicts and gaps.

use std::collections::BTreeSet;

use baler_common::container::{LossReason, LostChunks};
use proptest::prelude::*;

use super::*;

fn identity(lane: u32, sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 2,
            random: 3,
        },
        lane,
        sequence,
    }
}

fn settle(tracker: &mut LaneTracker, sequence: u64) {
    assert_eq!(
        tracker.arrived(identity(0, sequence), 7, Token(sequence)),
        Arrival::New
    );
    assert!(
        tracker
            .settled(identity(0, sequence), Verdict::Ack)
            .is_empty()
    );
}

#[test]
fn a_chunk_that_failed_is_new_again() {
    let mut tracker = LaneTracker::new();
    assert_eq!(tracker.arrived(identity(0, 5), 7, Token(1)), Arrival::New);
    tracker.settled(identity(0, 5), Verdict::Retry);
    assert_eq!(tracker.arrived(identity(0, 5), 7, Token(2)), Arrival::New);
    tracker.settled(identity(0, 5), Verdict::Ack);
    assert_eq!(
        tracker.arrived(identity(0, 5), 7, Token(3)),
        Arrival::Duplicate
    );
    assert_eq!(tracker.duplicates(), 1);
}

#[test]
fn a_copy_waits_for_the_verdict_on_the_first() {
    for (verdict, theirs, duplicates) in [
        (Verdict::Ack, Verdict::Ack, 1),
        (Verdict::Retry, Verdict::Retry, 0),
    ] {
        let mut tracker = LaneTracker::new();
        assert_eq!(tracker.arrived(identity(0, 0), 7, Token(1)), Arrival::New);
        assert_eq!(
            tracker.arrived(identity(0, 0), 7, Token(2)),
            Arrival::Waiting
        );
        assert_eq!(
            tracker.settled(identity(0, 0), verdict),
            vec![(Token(2), theirs)]
        );
        assert_eq!(tracker.duplicates(), duplicates);
    }
}

#[test]
fn a_whole_copy_of_a_broken_chunk_is_new_and_leaves_no_gap() {
    let mut tracker = LaneTracker::new();
    settle(&mut tracker, 0);
    assert_eq!(tracker.arrived(identity(0, 1), 7, Token(1)), Arrival::New);
    assert_eq!(
        tracker.arrived(identity(0, 1), 7, Token(2)),
        Arrival::Waiting
    );
    let theirs = tracker.settled(identity(0, 1), Verdict::Reject);
    assert_eq!(theirs, vec![(Token(2), Verdict::Retry)]);
    settle(&mut tracker, 2);
    assert!(tracker.gaps().is_empty());
    settle(&mut tracker, 1);
    assert_eq!(
        tracker.arrived(identity(0, 1), 7, Token(3)),
        Arrival::Duplicate
    );
}

#[test]
fn gaps_are_claimed_between_settled_chunks_only() {
    let mut tracker = LaneTracker::new();
    for sequence in [3, 4, 7, 8, 12] {
        settle(&mut tracker, sequence);
    }
    let mut header = ChunkHeader::new(identity(0, 12));
    header.lost_chunks = vec![LostChunks {
        first_sequence: 10,
        chunks: 2,
    }];
    tracker.note_header(&header);
    let gaps: Vec<_> = tracker
        .gaps()
        .into_iter()
        .map(|gap| (gap.first_sequence, gap.chunks, gap.explained))
        .collect();
    assert_eq!(gaps, [(5, 2, false), (9, 1, false), (10, 2, true)]);
}

/// Another reader had the lane meanwhile.
#[test]
fn chunks_of_other_readers_are_no_gap_and_hide_none() {
    let mut tracker = LaneTracker::new();
    [0, 1, 4]
        .into_iter()
        .for_each(|it| settle(&mut tracker, it));
    tracker.note_settled_before(identity(0, 9));
    assert_eq!(tracker.arrived(identity(0, 3), 7, Token(3)), Arrival::New);
    [10, 12].into_iter().for_each(|it| settle(&mut tracker, it));
    let gaps = tracker.gaps().into_iter();
    let gaps: Vec<_> = gaps.map(|gap| (gap.first_sequence, gap.chunks)).collect();
    assert_eq!(gaps, [(2, 2), (11, 1)]);
    assert!(tracker.starts().is_empty());
}

#[test]
fn a_lane_starts_in_the_middle_unless_its_beginning_is_accounted_for() {
    let starts = |given_up: u64, rejected: u64| {
        let mut tracker = LaneTracker::new();
        let mut header = ChunkHeader::new(identity(0, 5));
        header.lost_chunks = vec![LostChunks {
            first_sequence: 0,
            chunks: given_up,
        }];
        tracker.note_header(&header);
        for sequence in given_up..given_up + rejected {
            tracker.note(identity(0, sequence), 7, Verdict::Reject);
        }
        settle(&mut tracker, 5);
        settle(&mut tracker, 6);
        tracker.starts()
    };
    assert_eq!(starts(2, 2), [identity(0, 5)]);
    assert_eq!(starts(2, 3), []);
    let mut tracker = LaneTracker::new();
    (0..3).for_each(|sequence| settle(&mut tracker, sequence));
    assert!(tracker.starts().is_empty());
}

#[test]
fn a_late_chunk_closes_its_gap() {
    let mut tracker = LaneTracker::new();
    for sequence in [0, 2, 1] {
        settle(&mut tracker, sequence);
    }
    assert!(tracker.gaps().is_empty());
}

#[test]
fn losses_are_those_of_the_latest_header_of_each_life() {
    let mut tracker = LaneTracker::new();
    for (sequence, lost) in [(0, 3), (2, 9), (1, 5)] {
        let mut header = ChunkHeader::new(identity(0, sequence));
        header.losses.add(LossReason::QueueFullNewest, lost);
        tracker.note_header(&header);
    }
    assert_eq!(tracker.losses().get(LossReason::QueueFullNewest), 9);
}

#[test]
fn memory_is_bounded_and_late_chunks_are_still_processed() {
    let mut tracker = LaneTracker::new();
    let holes = u64::try_from(MAX_RANGES).unwrap() + 10;
    (0..holes).for_each(|index| settle(&mut tracker, index * 2));
    // The lowest ranges are forgotten: their holes, and they themselves, count as new.
    assert_eq!(tracker.arrived(identity(0, 1), 7, Token(0)), Arrival::New);
    assert_eq!(tracker.unverifiable(), 1);
    assert_eq!(
        tracker.arrived(identity(0, holes), 7, Token(0)),
        Arrival::Duplicate
    );
}

/// The kinds of numbers that a tracker remembers for a sender, each with holes between them.
#[derive(Debug, Clone, Copy)]
enum Remembered {
    GivenUp,
    Rejected,
    Settled,
}

#[test]
fn all_lanes_together_are_bounded_too() {
    let holes = u64::try_from(MAX_RANGES).unwrap();
    let lanes = u32::try_from(MAX_ALL_RANGES / MAX_RANGES).unwrap() + 20;
    for kind in [
        Remembered::GivenUp,
        Remembered::Rejected,
        Remembered::Settled,
    ] {
        let mut tracker = LaneTracker::new();
        for lane in 0..lanes {
            let numbers = (0..holes).map(|index| index * 2);
            match kind {
                Remembered::GivenUp => {
                    let mut header = ChunkHeader::new(identity(lane, 0));
                    let lost = |first_sequence| LostChunks {
                        first_sequence,
                        chunks: 1,
                    };
                    header.lost_chunks = numbers.map(lost).collect();
                    tracker.note_header(&header);
                }
                Remembered::Rejected => numbers.for_each(|number| {
                    tracker.note(identity(lane, number), 7, Verdict::Reject);
                }),
                Remembered::Settled => numbers.for_each(|number| {
                    tracker.note(identity(lane, number), 7, Verdict::Ack);
                }),
            }
        }
        let ranges: usize = tracker.lanes.values().map(Lane::ranges).sum();
        assert_eq!(ranges, tracker.all_ranges, "{kind:?}");
        let most = MAX_ALL_RANGES + 21 * FEW_RANGES;
        assert!(ranges <= most, "{kind:?}: {ranges}");
    }
}

#[test]
fn silent_lanes_are_forgotten_first() {
    let mut tracker = LaneTracker::new();
    let lanes = u32::try_from(MAX_LANES).unwrap() + 1;
    for lane in 0..lanes {
        assert_eq!(
            tracker.arrived(identity(lane, 0), 7, Token(0)),
            Arrival::New
        );
        tracker.settled(identity(lane, 0), Verdict::Ack);
    }
    assert!(tracker.lanes() <= MAX_LANES);
    assert!(tracker.forgotten_lanes() > 0);
    assert_eq!(
        tracker.arrived(identity(lanes - 1, 0), 7, Token(0)),
        Arrival::Duplicate
    );
    assert_eq!(tracker.arrived(identity(0, 0), 7, Token(0)), Arrival::New);
}

#[test]
fn a_chunk_with_the_identity_of_another_is_no_copy() {
    let arrive = |tracker: &mut LaneTracker, checksum, token| {
        tracker.arrived(identity(0, 0), checksum, Token(token))
    };
    let mut tracker = LaneTracker::new();
    assert_eq!(arrive(&mut tracker, 7, 1), Arrival::New);
    // Only the verdict on the first one shows whether it is a copy.
    assert_eq!(arrive(&mut tracker, 7, 2), Arrival::Waiting);
    assert_eq!(arrive(&mut tracker, 8, 3), Arrival::Waiting);
    let waited = tracker.settled(identity(0, 0), Verdict::Ack);
    assert_eq!(
        waited,
        [(Token(2), Verdict::Ack), (Token(3), Verdict::Retry)]
    );
    assert_eq!(arrive(&mut tracker, 8, 4), Arrival::Conflict);
    assert_eq!(arrive(&mut tracker, 7, 5), Arrival::Duplicate);
    assert_eq!(tracker.duplicates(), 2);
}

#[test]
fn a_chunk_whose_checksum_was_forgotten_is_processed_again() {
    let mut tracker = LaneTracker::new();
    let settled = u64::try_from(MAX_CHECKSUMS).unwrap() + 1;
    (0..settled).for_each(|sequence| settle(&mut tracker, sequence));
    let arrivals = [0, 1].map(|sequence| tracker.arrived(identity(0, sequence), 7, Token(0)));
    assert_eq!(arrivals, [Arrival::New, Arrival::Duplicate]);
    assert_eq!(tracker.unverifiable(), 1);
}

proptest! {
    #[test]
    fn it_is_the_set_of_what_was_inserted(
        inserted in prop::collection::vec((0_u64..60, 0_u64..6), 0..40),
    ) {
        let mut sequences = Sequences::default();
        let mut model = BTreeSet::new();
        for (first, more) in inserted {
            sequences.insert(first, first + more);
            model.extend(first..=first + more);
        }
        for number in 0..80 {
            prop_assert_eq!(sequences.contains(number), model.contains(&number));
        }
        let missing: BTreeSet<u64> =
            sequences.gaps().flat_map(|(first, last)| first..=last).collect();
        let span = model.first().copied().unwrap_or(0)..model.last().copied().unwrap_or(0);
        let expected: BTreeSet<u64> = span.filter(|number| !model.contains(number)).collect();
        prop_assert_eq!(missing, expected);
        let within: BTreeSet<u64> =
            sequences.within(10, 30).flat_map(|(first, last)| first..=last).collect();
        prop_assert_eq!(within, model.range(10..=30).copied().collect::<BTreeSet<u64>>());
    }
}

#[test]
fn order_keeps_it_at_one_range() {
    let mut sequences = Sequences::default();
    (0..1_000).for_each(|number| sequences.insert(number, number));
    assert_eq!(sequences.ranges(), 1);
    sequences.insert(u64::MAX, u64::MAX);
    assert!(sequences.contains(u64::MAX));
}

#[test]
#[should_panic(expected = "overflow")]
fn a_wrong_count_of_ranges_does_not_change_the_limits_silently() {
    let mut tracker = LaneTracker::new();
    settle(&mut tracker, 0);
    tracker.all_ranges = 0;
    settle(&mut tracker, 2);
}

/// The last number is possible in a chunk from outside.
#[test]
fn the_last_sequence_number_is_one_like_all_others() {
    let mut tracker = LaneTracker::new();
    let mut header = ChunkHeader::new(identity(0, 5));
    header.lost_chunks = vec![
        LostChunks {
            first_sequence: u64::MAX - 1,
            chunks: u64::MAX,
        },
        LostChunks {
            first_sequence: 7,
            chunks: 0,
        },
    ];
    tracker.note_header(&header);
    settle(&mut tracker, 0);
    settle(&mut tracker, u64::MAX);
    tracker.note_settled_before(identity(0, u64::MAX));
    let gaps = tracker.gaps().into_iter();
    let gaps: Vec<_> = gaps.map(|gap| (gap.first_sequence, gap.chunks)).collect();
    assert_eq!(gaps, [(1, u64::MAX - 2), (u64::MAX - 1, 1)]);
}
