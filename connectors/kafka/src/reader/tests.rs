//! The watermark of a partition, and random histories of the group's state: settled in any order,
//! retried, revoked, killed.

use std::collections::BTreeSet;
use std::time::Instant;

use baler_common::transport::{Received, Settled, Token, Verdict};
use baler_connector_testkit::{Dice, each_schedule};
use bytes::Bytes;
use proptest::prelude::*;

use super::commit::{Arrival, Lane, Skipped};
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
    lane.settled(11);
    assert_eq!(lane.lag(), Some(10), "the watermark has not moved");
    lane.settled(10);
    lane.update_watermarks(Some(3), 30);
    assert_eq!(lane.lag(), Some(18));
    for offset in 12..20 {
        lane.settled(offset);
    }
    assert_eq!(lane.lag(), Some(10));
}

#[test]
fn skipped_offsets_wait_for_an_answer_and_lower_ones_begin_anew() {
    let mut lane = Lane::default();
    assert_eq!(lane.arrive(5), Arrival::New);
    assert_eq!(lane.skipped, None, "the group had no position");
    let skipped = |from, to| Some(Skipped { from, to });
    let mut late = Lane::at(Some(3));
    late.arrive(5);
    assert_eq!(late.skipped, skipped(3, 5));
    let mut beyond = Lane::at(Some(500));
    assert_eq!(beyond.arrive(0), Arrival::Below { expected: 500 });
    lane.arrive(6);
    assert_eq!(lane.skipped, None);
    lane.arrive(9);
    lane.arrive(20);
    assert_eq!(lane.skipped.take(), skipped(7, 20));
    lane.settled(5);
    assert_eq!(lane.arrive(0), Arrival::Below { expected: 21 });
    assert_eq!(lane.arrive(1), Arrival::New);
    assert_eq!(lane.settled(20), None, "a late settlement of the old topic");
    assert_eq!(lane.settled(0), Some(0));
    assert_eq!(lane.skipped, None);
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
            watermark = lane.settled(offset).or(watermark);
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
        let position = Some(state.committed).filter(|it| *it > 0);
        self.reader.assigned(&[(number(partition), position)]);
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
        let settled = self.reader.settle(token, verdict, |partition, offset| {
            noted = Some((partition, offset));
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
