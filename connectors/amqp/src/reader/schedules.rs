//! Random histories of a channel and of a stream: settled in any order, given back, cut off.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use baler_common::transport::{Settled, Token, Verdict};
use baler_connector_testkit::{Dice, each_schedule};
use bytes::Bytes;

use super::book::Arrived;
use super::queue::{Acknowledgement, Ledger};
use super::stream::{Arrival, StreamLedger};
use crate::config::Start;

const MESSAGES: u64 = 30;

/// A queue, and what its broker knows of one channel.
struct Queue {
    ready: VecDeque<u64>,
    /// Delivered and not acknowledged, by tag.
    outstanding: BTreeMap<u64, u64>,
    next_tag: u64,
    /// Messages that were processed, or put aside.
    settled: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    ledger: Ledger,
    /// Delivered and not handed out: tag and message.
    waiting: VecDeque<(u64, u64)>,
    held: Vec<(Token, u64)>,
}

impl Queue {
    fn new() -> Self {
        Self {
            ready: (0..MESSAGES).collect(),
            outstanding: BTreeMap::new(),
            next_tag: 1,
            settled: BTreeSet::new(),
            gone: BTreeSet::new(),
            ledger: Ledger::default(),
            waiting: VecDeque::new(),
            held: Vec::new(),
        }
    }

    fn deliver(&mut self) {
        if self.outstanding.len() >= 8 {
            return;
        }
        if let Some(message) = self.ready.pop_front() {
            let tag = self.next_tag;
            self.next_tag += 1;
            self.outstanding.insert(tag, message);
            assert!(self.ledger.arrive(tag));
            self.waiting.push_back((tag, message));
        }
    }

    fn hand_out(&mut self) {
        if let Some((tag, message)) = self.waiting.pop_front() {
            self.held.push((self.ledger.hand_out(tag), message));
        }
    }

    fn settle(&mut self, (token, message): (Token, u64), verdict: Verdict) {
        let (settled, alone) = self.ledger.settle(token, verdict);
        if settled == Settled::Stale {
            assert_eq!(
                alone, None,
                "the broker is told of another channel's delivery"
            );
            return;
        }
        if verdict != Verdict::Retry {
            self.settled.insert(message);
        }
        if let Some(tag) = alone {
            let returned = self.outstanding.remove(&tag).expect("told twice");
            assert_eq!(returned, message);
            if verdict == Verdict::Retry {
                self.ready.push_front(message);
            } else {
                self.gone.insert(message);
            }
        }
    }

    fn acknowledge(&mut self, behind: usize) {
        for Acknowledgement { tag, multiple } in self.ledger.acknowledge(behind) {
            assert!(self.outstanding.contains_key(&tag), "{tag} was told before");
            let low = if multiple { 0 } else { tag };
            let told: Vec<u64> = self.outstanding.range(low..=tag).map(|it| *it.0).collect();
            for tag in told {
                let message = self.outstanding.remove(&tag).unwrap();
                assert!(
                    self.settled.contains(&message),
                    "{message} is acknowledged and not settled"
                );
                self.gone.insert(message);
            }
        }
    }

    /// The channel is lost: what was not acknowledged is ready again.
    fn cut(&mut self) {
        self.ledger.reset();
        for (_, message) in std::mem::take(&mut self.outstanding).into_iter().rev() {
            self.ready.push_front(message);
        }
        self.waiting.clear();
        self.next_tag = 1;
    }
}

fn verdict(dice: &mut Dice) -> Verdict {
    match dice.below(8) {
        0 => Verdict::Reject,
        1 => Verdict::Retry,
        _ => Verdict::Ack,
    }
}

#[test]
fn no_schedule_acknowledges_past_an_unsettled_chunk() {
    each_schedule(20_000, |dice| {
        let mut queue = Queue::new();
        let steps = 40 + dice.below(120);
        for _ in 0..steps {
            match dice.below(24) {
                0..8 => queue.deliver(),
                8..14 => queue.hand_out(),
                14..20 => {
                    let verdict = verdict(dice);
                    if let Some(held) = dice.draw(&mut queue.held) {
                        queue.settle(held, verdict);
                    }
                }
                20..23 => {
                    let behind = dice.below(9);
                    queue.acknowledge(behind);
                }
                _ => {
                    if dice.once_in(3) {
                        queue.cut();
                    } else if dice.once_in(6) {
                        // The process is killed: the owner's memory goes, too.
                        queue.cut();
                        queue.ledger = Ledger::default();
                        queue.held.clear();
                    }
                }
            }
        }
        for _ in 0..MESSAGES * 4 {
            queue.deliver();
            queue.hand_out();
            if let Some(held) = dice.draw(&mut queue.held) {
                queue.settle(held, Verdict::Ack);
            }
            queue.acknowledge(4);
        }
        assert_eq!(queue.gone.len(), usize::try_from(MESSAGES).unwrap());
        assert_eq!(queue.ledger.handed(), 0);
    });
}

fn arrived(position: u64) -> Arrived {
    Arrived {
        tag: position + 1,
        position,
        bytes: Bytes::new(),
        meta: None,
        redelivered: false,
        attempts: 0,
    }
}

#[test]
fn no_schedule_moves_a_streams_position_past_an_unsettled_chunk() {
    each_schedule(5_000, |dice| {
        let mut ledger = StreamLedger::from(Start::First);
        let mut settled = BTreeSet::new();
        let mut held: Vec<(Token, u64)> = Vec::new();
        let mut again: VecDeque<u64> = VecDeque::new();
        let (mut saved, mut checked) = (0, 0);
        let mut next = 0;
        let mut steps = 40 + dice.below(120);
        let drain = 160;
        let mut left = steps + drain;
        while left > 0 {
            left -= 1;
            steps = steps.saturating_sub(1);
            let calm = steps == 0;
            match dice.below(if calm { 18 } else { 24 }) {
                0..8 => {
                    if let Some(offset) = again.pop_front() {
                        held.push((ledger.hand_out(arrived(offset)), offset));
                    } else if next < MESSAGES && held.len() < 8 {
                        if let Arrival::New { gone, .. } = ledger.arrive(next) {
                            assert_eq!(gone, 0);
                            held.push((ledger.hand_out(arrived(next)), next));
                        }
                        next += 1;
                    }
                }
                8..18 => {
                    let verdict = if calm { Verdict::Ack } else { verdict(dice) };
                    if let Some((token, offset)) = dice.draw(&mut held) {
                        let (done, back) = ledger.settle(token, verdict);
                        if done == Settled::Done && verdict != Verdict::Retry {
                            settled.insert(offset);
                        }
                        again.extend(back.map(|back| back.position));
                    }
                }
                18..22 => saved = ledger.position().unwrap_or(0).max(saved),
                // Cut off, and repeated from the watermark in whole batches.
                22 => {
                    ledger.reset();
                    again.clear();
                    next = ledger.position().unwrap_or(0).saturating_sub(3);
                }
                _ => {
                    if dice.once_in(4) {
                        ledger = StreamLedger::from(Start::Offset(saved));
                        (held, again, next) = (Vec::new(), VecDeque::new(), saved);
                    }
                }
            }
            let position = ledger.position().unwrap_or(0);
            for below in std::mem::replace(&mut checked, position)..position {
                assert!(
                    settled.contains(&below),
                    "the position is past {below}, which is not settled"
                );
            }
        }
        assert_eq!(ledger.position(), Some(MESSAGES), "the watermark is stuck");
    });
}
