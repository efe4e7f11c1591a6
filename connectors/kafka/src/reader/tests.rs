//! The watermark of a partition, and random histories of the group's state: settled in any order,
//! retried, revoked, killed.

use std::collections::BTreeSet;
use std::time::Instant;

use baler_common::transport::{
    ChunkIdentity, Epoch, ProducerId, Received, Settled, Token, Verdict,
};
use baler_connector_testkit::{Dice, each_schedule};
use bytes::Bytes;
use proptest::prelude::*;

use super::lane::{Arrival, Lane, Position, Removal, Reset, Skipped};
use super::last_chunks::LastChunks;
use super::state::{Arrived, ReaderState};

#[test]
fn lag_counts_from_the_first_offset_that_is_not_settled() {
    let mut lane = Lane::default();
    assert_eq!(lane.lag(), None);
    lane.update_watermarks(None, 15);
    assert_eq!(lane.lag(), None, "nobody said where the group stands");
    lane.update_watermarks(Some(3), 15);
    lane.update_watermarks(Some(10), 15);
    lane.update_watermarks(None, 15);
    assert_eq!(lane.lag(), Some(5));
    for offset in 10..20 {
        lane.arrive(offset);
    }
    assert_eq!(lane.lag(), Some(10), "brokers have not spoken since");
    lane.settled(11, None);
    assert_eq!(lane.lag(), Some(10), "the watermark has not moved");
    lane.settled(10, None);
    lane.update_watermarks(Some(3), 30);
    assert_eq!(lane.lag(), Some(18));
    for offset in 12..20 {
        lane.settled(offset, None);
    }
    assert_eq!(lane.lag(), Some(10));
}

fn at(offset: Option<i64>) -> Position {
    Position {
        offset,
        ..Position::default()
    }
}

#[test]
fn skipped_offsets_wait_for_an_answer_and_lower_ones_begin_anew() {
    let mut lane = Lane::default();
    assert_eq!(lane.arrive(5), Arrival::New);
    assert_eq!(lane.skipped, None, "the group had no position");
    let skipped = |from, to| Some(Skipped { from, to });
    let mut late = Lane::at(at(Some(3)));
    assert_eq!(late.skipped, skipped(3, None));
    late.arrive(5);
    assert_eq!(late.skipped, skipped(3, Some(5)));
    let mut known = Lane::at(at(Some(3)));
    known.arrive(3);
    assert_eq!(known.skipped, None);
    let mut beyond = Lane::at(at(Some(500)));
    assert_eq!(beyond.arrive(0), Arrival::Below { expected: 500 });
    assert_eq!(beyond.take_lower(), Some((0, String::new())));
    lane.arrive(6);
    assert_eq!(lane.skipped, None);
    lane.arrive(9);
    lane.arrive(20);
    assert_eq!(lane.skipped.take(), skipped(7, Some(20)));
    lane.settled(5, None);
    assert_eq!(lane.arrive(0), Arrival::Below { expected: 21 });
    assert_eq!(lane.arrive(1), Arrival::New);
    assert!(
        !lane.settled(20, None),
        "a late settlement of the old topic"
    );
    assert!(lane.settled(0, None));
    assert_eq!(lane.stored(), Some((1, String::new())));
    assert_eq!(lane.skipped, None);
}

#[test]
fn brokers_say_what_is_removed_and_where_reading_goes_on() {
    let limits = |from, to, start| Some(Removal::Limits { from, to, start });
    let anew = |expected, goes_on| Some(Removal::Anew { expected, goes_on });
    let ends = (40, 90);
    for (reset, from, to, expected, lower) in [
        (Reset::Start, 40, None, None, None),
        (Reset::Start, 90, None, None, None),
        (Reset::Start, 10, None, limits(10, 40, 40), None),
        (Reset::End, 10, None, limits(10, 90, 40), None),
        (Reset::Error, 10, None, None, None),
        (Reset::Start, 10, Some(40), limits(10, 40, 40), None),
        // A transaction skipped the last ones.
        (Reset::Start, 10, Some(45), limits(10, 40, 40), None),
        (Reset::Start, 41, Some(45), None, None),
        (Reset::End, 10, Some(80), limits(10, 80, 40), None),
        (Reset::Start, 91, None, anew(91, 40), Some(40)),
        (Reset::End, 91, None, anew(91, 90), Some(90)),
        (Reset::Error, 91, None, None, None),
    ] {
        let mut lane = Lane::at(at(Some(from)));
        to.into_iter().for_each(|to| {
            lane.arrive(to);
        });
        let skipped = Skipped { from, to };
        assert_eq!(lane.explain(skipped, ends, reset), expected, "{skipped:?}");
        assert_eq!(lane.take_lower().map(|lower| lower.0), lower, "{skipped:?}");
        if let Some(Removal::Limits { to, .. }) = expected {
            // It is reported once.
            lane.skipped = None;
            lane.arrive(to.max(45));
            assert!(lane.skipped.is_none_or(|again| again.from >= to));
        }
    }
}

/// A topic that is made anew while no member has its partitions.
#[test]
fn position_that_a_group_has_lost_is_compared_with_the_new_topic() {
    let reader = ReaderState::new("kafka://h:1/t");
    let assign = |offset| {
        reader.assigned(vec![at(offset)]);
        let skipped = reader.take_skipped();
        reader.revoked(&[0], Instant::now());
        skipped
    };
    assert_eq!(assign(None), []);
    let skipped = Skipped { from: 7, to: None };
    assert_eq!(assign(Some(7)), [(0, skipped)]);
    assert_eq!(assign(None), [(0, skipped)]);
}

fn identity(lane: u32, sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(u128::MAX),
        epoch: Epoch {
            start_unix_ns: u64::MAX,
            random: u32::MAX,
        },
        lane,
        sequence,
    }
}

#[test]
fn text_beside_an_offset_has_the_lanes_that_moved_last() {
    let mut last = LastChunks::default();
    for lane in 1..200 {
        last.note(identity(lane, 7));
        last.note(identity(0, u64::from(lane)));
    }
    last.note(identity(0, 3));
    let text = last.text();
    assert!((3_900..=4_096).contains(&text.len()), "{}", text.len());
    let read = LastChunks::parse(&text);
    let mut chunks: Vec<_> = read.identities().collect();
    assert_eq!(chunks.pop(), Some(identity(0, 199)));
    let lanes: Vec<_> = chunks.iter().map(|it| it.lane).collect();
    let expected: Vec<_> = (200 - u32::try_from(lanes.len()).unwrap()..200).collect();
    assert_eq!(lanes, expected);
    assert_eq!(read.text(), text);
    let foreign = LastChunks::parse("host-1:17 {\"a\": 1}  é/1/2");
    assert_eq!(foreign.identities().count(), 0);
}

#[test]
fn text_follows_the_watermark_and_survives_a_new_topic() {
    let mut last = LastChunks::default();
    last.note(identity(0, 4));
    let position = Position {
        last,
        ..at(Some(10))
    };
    let mut lane = Lane::at(position);
    (10..13).for_each(|offset| {
        lane.arrive(offset);
    });
    lane.settled(11, Some(identity(0, 6)));
    assert_eq!(lane.stored(), None);
    assert!(lane.settled(10, Some(identity(0, 5))));
    assert_eq!(lane.stored(), Some((12, identity(0, 6).to_string())));
    lane.arrive(0);
    assert_eq!(lane.take_lower(), Some((0, identity(0, 6).to_string())));
    assert_eq!(lane.stored(), None);
}

proptest! {
    #[test]
    fn watermark_is_the_last_offset_before_the_first_unsettled(
        gaps in prop::collection::vec(1_i64..4, 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..80),
    ) {
        let offsets: Vec<i64> = gaps.iter().scan(10, |at, gap| { *at += gap; Some(*at) }).collect();
        let mut lane = Lane::default();
        for offset in &offsets {
            prop_assert_eq!(lane.arrive(*offset), Arrival::New);
            prop_assert_eq!(lane.arrive(*offset), Arrival::Known);
        }
        let mut open: BTreeSet<i64> = offsets.iter().copied().collect();
        let mut watermark = None;
        for index in order {
            let offset = offsets[index.index(offsets.len())];
            open.remove(&offset);
            if lane.settled(offset, None) {
                watermark = lane.stored().map(|(next, _)| next - 1);
            }
            let first = open.first().copied().unwrap_or(i64::MAX);
            let expected = offsets.iter().copied().take_while(|it| *it < first).last();
            prop_assert_eq!(watermark, expected);
        }
    }
}

/// Offsets of each partition; every fifth is no chunk but a mark of a transaction.
const OFFSETS: i64 = 30;

const PARTITIONS: usize = 2;

fn is_chunk(offset: i64) -> bool {
    offset % 5 != 3
}

/// What the broker and the group's oracle know of a partition.
#[derive(Default)]
struct Partition {
    /// The group starts here after a rebalance or a kill.
    committed: i64,
    /// Noted with the client, not yet with the broker.
    stored: i64,
    /// The client fetches this one next.
    position: i64,
    owned: bool,
    /// What was settled with the reader's consent.
    settled: BTreeSet<i64>,
}

struct Group {
    reader: ReaderState,
    partitions: [Partition; PARTITIONS],
    held: Vec<(Token, usize, i64)>,
}

fn number(partition: usize) -> i32 {
    i32::try_from(partition).unwrap()
}

impl Group {
    fn new() -> Self {
        let mut group = Self {
            reader: ReaderState::new("kafka://h:1/t"),
            partitions: Default::default(),
            held: Vec::new(),
        };
        group.reader.lock().demand = 8;
        (0..PARTITIONS).for_each(|partition| group.assign(partition));
        group
    }

    fn assign(&mut self, partition: usize) {
        let state = &mut self.partitions[partition];
        if state.owned {
            return;
        }
        state.owned = true;
        state.position = state.committed;
        state.stored = state.committed;
        self.reader.assigned(vec![Position {
            partition: number(partition),
            ..at(Some(state.committed).filter(|it| *it > 0))
        }]);
    }

    fn fetch(&mut self, partition: usize) {
        let state = &mut self.partitions[partition];
        if !state.owned {
            return;
        }
        while !is_chunk(state.position) {
            state.position += 1;
        }
        if state.position >= OFFSETS {
            return;
        }
        self.reader.arrive(Arrived {
            partition: number(partition),
            offset: state.position,
            bytes: Bytes::new(),
            meta: None,
            redelivered: false,
        });
        state.position += 1;
    }

    fn receive(&mut self) {
        if let Ok(Received::Chunk(delivery)) = self.reader.receive(Instant::now()) {
            let partition = delivery.origin.lane.parse().unwrap();
            let offset = i64::try_from(delivery.origin.position).unwrap();
            self.held.push((delivery.token, partition, offset));
        }
    }

    fn settle(&mut self, (token, partition, offset): (Token, usize, i64), verdict: Verdict) {
        let mut noted = None;
        let settled = self.reader.settle(token, verdict, |commit| {
            noted = Some((commit.partition, commit.offset - 1));
            true
        });
        if settled == Settled::Done && verdict != Verdict::Retry {
            self.partitions[partition].settled.insert(offset);
        }
        if let Some((partition, offset)) = noted {
            let state = &mut self.partitions[usize::try_from(partition).unwrap()];
            assert!(state.owned, "stored for a partition of another reader");
            for below in (0..=offset).filter(|it| is_chunk(*it)) {
                assert!(
                    state.settled.contains(&below),
                    "{offset} is stored and {below} is not settled"
                );
            }
            assert!(offset >= state.stored, "the watermark went back");
            state.stored = offset + 1;
        }
    }

    fn commit(&mut self, partition: usize) {
        let state = &mut self.partitions[partition];
        state.committed = state.committed.max(state.stored);
    }

    fn revoke(&mut self, partition: usize, commits: bool) {
        if !self.partitions[partition].owned {
            return;
        }
        // Nobody waits: what is held is late.
        self.reader.revoked(&[number(partition)], Instant::now());
        if commits {
            self.commit(partition);
        }
        self.partitions[partition].owned = false;
    }

    /// The process is gone; the next one starts where the broker says.
    fn kill(&mut self) {
        self.reader = ReaderState::new("kafka://h:1/t");
        self.reader.lock().demand = 8;
        self.held.clear();
        for partition in 0..PARTITIONS {
            self.partitions[partition].owned = false;
            self.assign(partition);
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        let partition = dice.below(PARTITIONS);
        match dice.below(32) {
            0..10 => self.fetch(partition),
            10..18 => self.receive(),
            18..26 => {
                let verdict = match dice.below(8) {
                    0 => Verdict::Retry,
                    1 => Verdict::Reject,
                    _ => Verdict::Ack,
                };
                if let Some(held) = dice.draw(&mut self.held) {
                    self.settle(held, verdict);
                }
            }
            26 | 27 => self.commit(partition),
            28 => {
                let commits = !dice.once_in(3);
                self.revoke(partition, commits);
            }
            29 | 30 => self.assign(partition),
            _ => {
                if dice.once_in(4) {
                    self.kill();
                }
            }
        }
    }
}

#[test]
fn no_schedule_commits_past_an_unsettled_chunk() {
    each_schedule(10_000, |dice| {
        let mut group = Group::new();
        let steps = 40 + dice.below(120);
        for _ in 0..steps {
            group.step(dice);
        }
        // And nothing is stuck: a reader that lives and settles comes to the end.
        for partition in 0..PARTITIONS {
            group.assign(partition);
        }
        for _ in 0..OFFSETS * 12 {
            (0..PARTITIONS).for_each(|partition| group.fetch(partition));
            group.receive();
            if let Some(held) = dice.draw(&mut group.held) {
                group.settle(held, Verdict::Ack);
            }
        }
        for state in &group.partitions {
            assert_eq!(state.stored, OFFSETS, "the watermark is stuck");
        }
    });
}
