//! The ledger of a channel, the position in a stream and its file, each by itself; and random
//! histories of the first two: settled in any order, given back, cut off.

#![expect(
    unsafe_code,
    reason = "the standard library cannot fork a process without starting a program"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use baler_common::transport::{RetryClass, Settled, Token, Verdict};
use baler_connector_testkit::{Dice, each_schedule};
use bytes::Bytes;
use tempfile::TempDir;

use super::ledger::{Acknowledgement, Arrived, Ledger, Nack};
use super::position::{Arrival, PositionFile, Saved, StreamPosition};
use super::state::ReaderState;
use crate::config::Start;

/// A delivery of a queue, or of a stream as its message of this number.
fn arrived(tag: u64, position: u64) -> Arrived {
    Arrived {
        tag,
        position,
        bytes: Bytes::from_static(b"chunk"),
        meta: None,
        redelivered: false,
        attempts: 0,
    }
}

const NEXT: Arrival = Arrival::New {
    gone: 0,
    again: false,
};

/// A queue's ledger with this number of deliveries, all handed out.
fn queue(deliveries: u64) -> (Ledger, Vec<Token>) {
    let mut ledger = Ledger::default();
    let tokens = (1..=deliveries).map(|tag| {
        assert_eq!(ledger.arrive(&arrived(tag, tag)), NEXT);
        ledger.hand_out(&arrived(tag, tag))
    });
    let tokens = tokens.collect();
    (ledger, tokens)
}

/// A stream's ledger of these messages, all of them handed out.
fn stream(start: Start, positions: std::ops::Range<u64>) -> (Ledger, Vec<Token>) {
    let mut ledger = Ledger::of_stream(StreamPosition::from(start));
    let tokens = (1..).zip(positions).map(|(tag, position)| {
        let arrived = arrived(tag, position);
        assert_eq!(ledger.arrive(&arrived), NEXT);
        ledger.hand_out(&arrived)
    });
    let tokens = tokens.collect();
    (ledger, tokens)
}

fn watermark(ledger: &Ledger) -> Option<u64> {
    ledger.stream.as_ref().unwrap().watermark()
}

/// Settles a delivery of a queue, and returns its nack, if there is one.
fn settle(ledger: &mut Ledger, token: Token, verdict: Verdict) -> (Settled, Option<Nack>) {
    let settled = ledger.settle(token, verdict);
    let again = &ledger.again;
    assert!(again.is_empty(), "a queue gives {again:?} again itself");
    (settled, ledger.nacks.pop())
}

fn up_to(tag: u64) -> [Acknowledgement; 1] {
    [Acknowledgement {
        tag,
        multiple: true,
    }]
}

#[test]
fn watermark_stops_at_what_is_not_settled() {
    let (mut ledger, tokens) = queue(5);
    for at in [4, 2, 0] {
        assert_eq!(
            settle(&mut ledger, tokens[at], Verdict::Ack),
            (Settled::Done, None)
        );
    }
    assert_eq!(ledger.acknowledge(9), up_to(1));
    assert_eq!(ledger.acknowledge(9), []);
    settle(&mut ledger, tokens[1], Verdict::Ack);
    assert_eq!(ledger.acknowledge(9), up_to(3));
    assert_eq!((ledger.handed(), ledger.owed()), (1, 1));
}

#[test]
fn what_the_broker_was_told_alone_is_not_named_again() {
    let (mut ledger, tokens) = queue(3);
    settle(&mut ledger, tokens[0], Verdict::Ack);
    let nack = |tag, requeue| (Settled::Done, Some(Nack { tag, requeue }));
    assert_eq!(
        settle(&mut ledger, tokens[1], Verdict::Retry),
        nack(2, true)
    );
    assert_eq!(
        settle(&mut ledger, tokens[2], Verdict::Reject),
        nack(3, false)
    );
    assert_eq!(ledger.acknowledge(9), up_to(1));
    assert_eq!(ledger.acknowledge(0), []);
}

#[test]
fn acknowledgement_does_not_overtake_the_nack_that_it_includes() {
    let (ledger, tokens) = queue(2);
    let shared = ReaderState::new("there", "queue", 9, ledger);
    assert_eq!(shared.settle(tokens[0], Verdict::Retry), Settled::Done);
    assert_eq!(shared.settle(tokens[1], Verdict::Ack), Settled::Done);
    let orders = shared.lock().take_orders(true);
    let (tag, requeue) = (1, true);
    assert_eq!(orders.nacks, [Nack { tag, requeue }]);
    assert_eq!(orders.acknowledgements.unwrap(), up_to(2));
}

#[test]
fn tokens_of_an_earlier_channel_are_stale_and_counted_until_settled() {
    let (mut ledger, tokens) = queue(2);
    ledger.reset();
    assert_eq!(ledger.handed(), 2);
    assert_eq!(ledger.arrive(&arrived(1, 1)), NEXT);
    let token = ledger.hand_out(&arrived(1, 1));
    assert!(!tokens.contains(&token));
    assert_eq!(ledger.handed(), 3);
    for token in tokens {
        let settled = settle(&mut ledger, token, Verdict::Ack);
        assert_eq!(settled, (Settled::Stale, None));
    }
    assert_eq!(ledger.handed(), 1);
    let settled = settle(&mut ledger, token, Verdict::Ack);
    assert_eq!(settled, (Settled::Done, None));
}

#[test]
fn gap_in_the_tags_is_noticed() {
    let (mut ledger, _) = queue(2);
    assert_eq!(ledger.arrive(&arrived(4, 4)), Arrival::Gap);
    assert_eq!(ledger.arrive(&arrived(2, 2)), Arrival::Gap);
    assert_eq!(ledger.arrive(&arrived(3, 3)), NEXT);
}

#[test]
fn stream_sends_more_when_chunks_are_handed_out_not_when_they_are_settled() {
    let (mut ledger, _) = stream(Start::First, 100..102);
    for tag in 3..=5 {
        ledger.arrive(&arrived(tag, tag + 99));
    }
    assert_eq!(ledger.arrive(&arrived(7, 106)), Arrival::Gap);
    assert_eq!(ledger.owed(), 2);
    assert_eq!(ledger.acknowledge(9), up_to(2));
    assert_eq!(ledger.owed(), 0);
    for tag in 3..=5 {
        ledger.hand_out(&arrived(tag, tag + 99));
    }
    assert_eq!((ledger.owed(), ledger.handed()), (3, 5));
    ledger.reset();
    assert_eq!(ledger.owed(), 0);
    assert!(ledger.acknowledge(9).is_empty());
    // What was not settled comes again, and what is known counts at once.
    assert_eq!(ledger.arrive(&arrived(1, 99)), Arrival::Known);
    assert_eq!(ledger.owed(), 1);
}

#[test]
fn position_stops_at_what_is_not_settled() {
    let (mut ledger, tokens) = stream(Start::First, 7..12);
    assert_eq!(watermark(&ledger), Some(7));
    for at in [4, 1, 0] {
        ledger.settle(tokens[at], Verdict::Ack);
    }
    assert_eq!(watermark(&ledger), Some(9));
    ledger.settle(tokens[2], Verdict::Reject);
    ledger.settle(tokens[3], Verdict::Ack);
    assert_eq!((watermark(&ledger), ledger.handed()), (Some(12), 0));
}

#[test]
fn what_is_retried_comes_again_by_another_name_and_holds_the_position() {
    let (mut ledger, tokens) = stream(Start::Offset(3), 3..4);
    let first = tokens[0];
    let settled = ledger.settle(first, Verdict::Retry);
    let again = ledger.again.pop_front().expect("it is not given again");
    assert!(settled == Settled::Done && again.redelivered);
    assert_eq!(&*again.bytes, b"chunk");
    assert_eq!(watermark(&ledger), Some(3));
    let second = ledger.hand_out(&again);
    assert_eq!(ledger.owed(), 1, "it is acknowledged once");
    assert_eq!(ledger.settle(first, Verdict::Ack), Settled::Stale);
    assert_eq!(watermark(&ledger), Some(3));
    assert_eq!(ledger.settle(second, Verdict::Ack), Settled::Done);
    assert_eq!(watermark(&ledger), Some(4));
}

#[test]
fn after_a_lost_connection_it_begins_at_the_watermark() {
    let (mut ledger, tokens) = stream(Start::First, 0..3);
    ledger.settle(tokens[0], Verdict::Ack);
    ledger.settle(tokens[2], Verdict::Ack);
    ledger.reset();
    assert_eq!((watermark(&ledger), ledger.handed()), (Some(1), 1));
    // The broker begins with the batch that holds it.
    assert_eq!(ledger.arrive(&arrived(1, 0)), Arrival::Known);
    let again = true;
    let second = Arrival::New { gone: 0, again };
    assert_eq!(ledger.arrive(&arrived(2, 1)), second);
    assert_eq!(ledger.settle(tokens[1], Verdict::Ack), Settled::Stale);
    assert_eq!(watermark(&ledger), Some(1));
    assert_eq!(ledger.handed(), 0);
}

#[test]
fn what_the_stream_no_longer_holds_is_counted() {
    let mut position = StreamPosition::from(Start::Offset(10));
    let again = false;
    assert_eq!(position.arrive(25, 0), Arrival::New { gone: 15, again });
    position.settle(25);
    assert_eq!(position.watermark(), Some(26));
    assert_eq!(position.lag(40), Some(39));
}

#[test]
fn lag_is_what_follows_the_watermark() {
    let mut position = StreamPosition::from(Start::First);
    assert_eq!(position.lag(9), Some(9));
    // The first ones were removed before anybody read them.
    position.arrive(100, 0);
    position.settle(100);
    assert_eq!(position.lag(9), Some(8));
    assert_eq!(StreamPosition::from(Start::Next).lag(9), None);
}

fn saved(next: u64) -> Saved {
    let checksum = Some(7);
    Saved { next, checksum }
}

fn in_folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p");
    (folder, path)
}

#[test]
fn position_outlives_its_reader_and_is_that_of_one_stream() {
    let (_folder, path) = in_folder();
    let mut file = PositionFile::open(&path, "/ q").unwrap();
    assert_eq!(file.saved(), None);
    file.save(saved(17)).unwrap();
    file.save(saved(4)).unwrap();
    drop(file);
    assert_eq!(
        PositionFile::open(&path, "/ q").unwrap().saved(),
        Some(saved(4))
    );
    let other = PositionFile::open(&path, "/ other").unwrap_err();
    assert_eq!(other.class, RetryClass::Final);
    assert!(other.message.contains("/ q"), "{other:?}");
    fs::write(&path, "something else").unwrap();
    let damaged = PositionFile::open(&path, "/ q").unwrap_err();
    assert_eq!(damaged.class, RetryClass::Final);
}

#[test]
fn two_readers_do_not_share_a_position() {
    let (folder, path) = in_folder();
    let first = PositionFile::open(&path, "/ q").unwrap();
    let second = PositionFile::open(&path, "/ q").unwrap_err();
    assert_eq!(second.class, RetryClass::Retry);
    // By another name of the folder, too.
    let alias = folder.path().join(".").join("p");
    let second = PositionFile::open(&alias, "/ q").unwrap_err();
    assert!(second.message.contains("another reader"), "{second:?}");
    drop(first);
    PositionFile::open(&path, "/ q").unwrap();
}

/// Forks a process that waits for its end.
struct Fork(i32);

impl Fork {
    fn now() -> Self {
        unsafe extern "C" {
            safe fn fork() -> i32;
            safe fn pause() -> i32;
        }
        match fork() {
            0 => loop {
                pause();
            },
            child => Self(child),
        }
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        unsafe extern "C" {
            safe fn kill(process: i32, signal: i32) -> i32;
            fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        }
        kill(self.0, 9);
        // SAFETY: the status is not asked for.
        unsafe { waitpid(self.0, std::ptr::null_mut(), 0) };
    }
}

#[test]
fn child_of_a_fork_does_not_keep_the_position_of_its_parent() {
    let (_folder, path) = in_folder();
    let file = PositionFile::open(&path, "/ q").unwrap();
    let child = Fork::now();
    assert!(child.0 > 0);
    drop(file);
    PositionFile::open(&path, "/ q").unwrap();
}

/// Opens and saves a position where something was planted; yields why it cannot be.
fn refused(path: &Path) -> String {
    let opened = PositionFile::open(path, "/ q");
    let failure = opened
        .and_then(|mut file| file.save(saved(17)))
        .unwrap_err();
    assert_eq!(failure.class, RetryClass::Final, "{failure:?}");
    failure.message.into()
}

#[test]
fn planted_symlink_is_neither_followed_nor_replaced() {
    const TEXT: &str = "baler-stream-position 1\nstream / q\nnext 5\n";
    for planted in ["p", "p.lock"] {
        let (folder, path) = in_folder();
        let victim = folder.path().join("victim");
        fs::write(&victim, TEXT).unwrap();
        let link = folder.path().join(planted);
        symlink(&victim, &link).unwrap();
        let message = refused(&path);
        assert!(message.contains("is a symlink"), "{message}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), TEXT);
        assert!(link.is_symlink());
    }
    // The name under which a new position is written first.
    let (folder, path) = in_folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, TEXT).unwrap();
    symlink(&victim, folder.path().join("p.new")).unwrap();
    let mut file = PositionFile::open(&path, "/ q").unwrap();
    file.save(saved(17)).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), TEXT);
    assert!(fs::read_to_string(&path).unwrap().contains("next 17\n"));
}

#[test]
fn symlink_that_is_planted_after_the_start_is_not_replaced() {
    let (folder, path) = in_folder();
    let mut file = PositionFile::open(&path, "/ q").unwrap();
    file.save(saved(3)).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(folder.path().join("victim"), &path).unwrap();
    let failure = file.save(saved(4)).unwrap_err();
    assert!(failure.message.contains("is a symlink"), "{failure:?}");
    assert!(path.is_symlink() && !folder.path().join("victim").exists());
}

#[test]
fn device_is_neither_read_nor_replaced() {
    let message = refused(Path::new("/dev/zero"));
    assert!(message.contains("/dev/zero"), "{message}");
    let kind = fs::symlink_metadata("/dev/zero").unwrap().file_type();
    assert!(kind.is_char_device());
}

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
            assert_eq!(self.ledger.arrive(&arrived(tag, tag)), NEXT);
            self.waiting.push_back((tag, message));
        }
    }

    fn hand_out(&mut self) {
        if let Some((tag, message)) = self.waiting.pop_front() {
            let token = self.ledger.hand_out(&arrived(tag, tag));
            self.held.push((token, message));
        }
    }

    fn settle(&mut self, (token, message): (Token, u64), verdict: Verdict) {
        let (settled, nack) = settle(&mut self.ledger, token, verdict);
        if settled == Settled::Stale {
            assert_eq!(
                nack, None,
                "the broker is told of another channel's delivery"
            );
            return;
        }
        if verdict != Verdict::Retry {
            self.settled.insert(message);
        }
        if let Some(Nack { tag, requeue }) = nack {
            assert_eq!(requeue, verdict == Verdict::Retry);
            let returned = self.outstanding.remove(&tag).expect("told twice");
            assert_eq!(returned, message);
            if requeue {
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

#[test]
fn no_schedule_moves_a_streams_position_past_an_unsettled_chunk() {
    each_schedule(5_000, |dice| {
        let mut ledger = Ledger::of_stream(StreamPosition::from(Start::First));
        let mut settled = BTreeSet::new();
        let mut held: Vec<(Token, u64)> = Vec::new();
        let (mut saved, mut checked) = (0, 0);
        let (mut next, mut tag) = (0, 0);
        // What the broker knows to have arrived, by tag.
        let mut credited = 0;
        let mut steps = 40 + dice.below(120);
        let drain = 160;
        let mut left = steps + drain;
        while left > 0 {
            left -= 1;
            steps = steps.saturating_sub(1);
            let calm = steps == 0;
            match dice.below(if calm { 18 } else { 24 }) {
                0..8 => {
                    if let Some(again) = ledger.again.pop_front() {
                        held.push((ledger.hand_out(&again), again.position));
                    } else if next < MESSAGES && held.len() < 8 {
                        tag += 1;
                        let arrived = arrived(tag, next);
                        match ledger.arrive(&arrived) {
                            Arrival::Gap => panic!("{tag} follows the one before"),
                            Arrival::Known => {}
                            Arrival::New { gone, .. } => {
                                assert_eq!(gone, 0);
                                held.push((ledger.hand_out(&arrived), next));
                            }
                        }
                        next += 1;
                    }
                    for told in ledger.acknowledge(0) {
                        assert!(told.tag > credited && told.tag <= tag, "{told:?}");
                        credited = told.tag;
                    }
                    assert_eq!(credited, tag, "the broker would stop to send");
                }
                8..18 => {
                    let verdict = if calm { Verdict::Ack } else { verdict(dice) };
                    if let Some((token, position)) = dice.draw(&mut held) {
                        let done = ledger.settle(token, verdict);
                        if done == Settled::Done && verdict != Verdict::Retry {
                            settled.insert(position);
                        }
                        let nacks = &ledger.nacks;
                        assert!(nacks.is_empty(), "a stream takes no {nacks:?}");
                    }
                }
                18..22 => saved = watermark(&ledger).unwrap_or(0).max(saved),
                // Cut off, and repeated from the watermark in whole batches.
                22 => {
                    ledger.reset();
                    next = watermark(&ledger).unwrap_or(0).saturating_sub(3);
                    (tag, credited) = (0, 0);
                }
                _ => {
                    if dice.once_in(4) {
                        let position = StreamPosition::from(Start::Offset(saved));
                        ledger = Ledger::of_stream(position);
                        (held, next) = (Vec::new(), saved);
                        (tag, credited) = (0, 0);
                    }
                }
            }
            let position = watermark(&ledger).unwrap_or(0);
            for below in std::mem::replace(&mut checked, position)..position {
                assert!(
                    settled.contains(&below),
                    "the position is past {below}, which is not settled"
                );
            }
        }
        let end = watermark(&ledger);
        assert_eq!(end, Some(MESSAGES), "the watermark is stuck");
    });
}
