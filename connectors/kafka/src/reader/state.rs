//! A reader's membership in its group: its partitions, their chunks, and news for the owner. The
//! owner and the polling thread share it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::native_identity;
use baler_common::transport::{
    ChunkIdentity, ChunkMeta, Damaged, Delivery, Failure, LaneLag, LaneName, Origin, ReaderStats,
    Received, RetryClass, Settled, Token, Verdict,
};
use bytes::Bytes;
use rdkafka::Message;

use super::lane::{Arrival, Commit, Lane, Position, Removal, Reset, Skipped};
use crate::client::time_left;
use crate::headers;

/// How many chunks the reader takes from the client before the owner asks for them.
const AHEAD: usize = 32;

/// How many offsets of a partition may wait for an earlier one that is not settled.
const MAX_PENDING: usize = 1 << 16;

/// The longest message about removed chunks that takes another one. Beyond it they are counted.
const MAX_REMOVAL_BYTES: usize = 1_000;

/// A reader's membership in its group, which the owner's thread and the polling thread share.
pub(super) struct ReaderState {
    endpoint: Box<str>,
    state: Mutex<State>,
    /// Wakes the owner, which waits for chunks and news.
    news: Condvar,
    /// Wakes the polling thread, which waits for room or for settlements.
    room: Condvar,
}

/// The part of the state that the lock protects.
#[derive(Default)]
pub(super) struct State {
    /// The partitions that this reader owns.
    pub(super) lanes: BTreeMap<i32, Lane>,
    /// The positions of the group that this reader knows of.
    pub(super) committed: BTreeMap<i32, i64>,
    /// News for the owner. They come before the next chunk.
    news: VecDeque<Received>,
    /// Taken from the client and not handed out.
    waiting: VecDeque<Arrived>,
    /// To be handed out again, before the waiting ones.
    again: VecDeque<Arrived>,
    /// Handed out and not settled.
    pub(super) held: HashMap<Token, Arrived>,
    next_token: u64,
    pub(super) demand: usize,
    failure: Option<Failure>,
    /// Which chunks were removed, for the owner.
    removal: Option<Failure>,
    /// Whether brokers refuse the text beside a committed offset.
    pub(super) refuses_text: bool,
    /// Why a broker could not be reached, until one is.
    pub(super) unreached: Option<Box<str>>,
    /// Why the commit at the end failed.
    pub(super) uncommitted: Option<Failure>,
    pub(super) paused: bool,
    stop: bool,
    /// Whether the reader has made its last commit and leaves the group.
    pub(super) left: bool,
    /// The deadline for the commits of a reader that ends.
    pub(super) commit_by: Option<Instant>,
    /// Whether the group has assigned partitions to this reader. The assignment may be empty.
    has_joined: bool,
    was_assigned: bool,
    /// The statistics without the lag and the connection, which have fields of their own.
    pub(super) stats: ReaderStats,
    /// Whether the client reaches any broker, as its last statistics say.
    pub(super) connected: Option<bool>,
    /// Whether the client sends statistics.
    pub(super) says_connected: bool,
    /// Whether each thread waits. A thread that does not wait needs no wake-up.
    owner_waits: bool,
    thread_waits: bool,
    /// Whether the polling thread waits for settlements, rather than for room.
    revoking: bool,
}

/// A message with a value, taken from the client library.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) bytes: Bytes,
    pub(super) meta: Option<ChunkMeta>,
    pub(super) redelivered: bool,
}

impl Arrived {
    /// The message, unless it has no value.
    pub(super) fn from_message(message: &impl Message) -> Option<Self> {
        Some(Self {
            partition: message.partition(),
            offset: message.offset(),
            bytes: Bytes::copy_from_slice(message.payload()?),
            meta: headers::read(message),
            redelivered: false,
        })
    }

    /// The identity of the chunk, if the message or the chunk has it.
    fn identity(&self) -> Option<ChunkIdentity> {
        let meta = self.meta.map(|meta| meta.identity);
        meta.or_else(|| native_identity(&self.bytes))
    }

    /// The delivery that the owner gets.
    pub(super) fn delivery(&self, endpoint: &str, token: Token) -> Delivery {
        Delivery {
            token,
            bytes: self.bytes.clone(),
            meta: self.meta,
            origin: origin(endpoint, self.partition, self.offset),
            redelivered: self.redelivered,
            attempts: 0,
        }
    }
}

/// Reports a message without a value, which is no chunk.
pub(super) fn no_value(endpoint: &str, partition: i32, offset: i64) -> Received {
    Received::Damaged(Damaged {
        token: None,
        bytes: Bytes::new(),
        origin: origin(endpoint, partition, offset),
        reason: "a message without a value, as compacted topics have".into(),
        peer: None,
    })
}

/// The next step of the polling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Fetch: there is room for another chunk.
    Fetch,
    /// Keep the membership alive: there is no room.
    Keep,
    Stop,
}

impl ReaderState {
    pub(super) fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.into(),
            state: Mutex::default(),
            news: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Locks the state. Use [`update`](Self::update) for a change that a thread may wait for.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the waiting thread.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        self.wake(&state);
        result
    }

    /// Wakes a waiting thread if there is enough work for it.
    ///
    /// A wake-up costs more than passing on a small chunk, so not every chunk causes one.
    fn wake(&self, state: &State) {
        if state.owner_waits && state.has_news() {
            self.news.notify_one();
        }
        if state.thread_waits && (state.revoking || state.is_worth_waking()) {
            self.room.notify_one();
        }
    }

    /// Stops the polling thread. It may commit until `commit_by` of the first call.
    pub(super) fn stop(&self, commit_by: Instant) {
        self.update(|state| {
            state.stop = true;
            state.commit_by.get_or_insert(commit_by);
        });
    }

    /// Waits for the next chunk or news, until `by` at most.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, Failure> {
        let mut state = self.lock();
        loop {
            if let Some(news) = state.news.pop_front() {
                return Ok(news);
            }
            if let Some(removal) = state.removal.take() {
                return Err(removal);
            }
            if let Some(delivery) = state.hand_out(&self.endpoint) {
                self.wake(&state);
                return Ok(Received::Chunk(delivery));
            }
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            let left = time_left(by);
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            state.owner_waits = true;
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.owner_waits = false;
        }
    }

    /// Settles a delivery. `store` gives the client a position to commit.
    pub(super) fn settle(
        &self,
        token: Token,
        verdict: Verdict,
        store: impl FnOnce(Commit) -> bool,
    ) -> Settled {
        // Stored under the lock: the polling thread may wait for this settlement to give the
        // partition back. It must not do so before the client has the offset.
        self.update(|state| {
            let Some(mut arrived) = state.held.remove(&token) else {
                return Settled::Stale;
            };
            if verdict == Verdict::Retry {
                arrived.redelivered = true;
                state.again.push_back(arrived);
                return Settled::Done;
            }
            let identity = arrived.identity();
            match state.settled(arrived.partition, arrived.offset, identity) {
                Some(commit) => match store(commit) {
                    true => Settled::Done,
                    false => Settled::Stale,
                },
                None => Settled::Done,
            }
        })
    }

    /// The next step of the polling thread.
    pub(super) fn next(&self) -> Next {
        self.lock().next()
    }

    /// Waits for room that is worth a wake-up or for the end, for `time` at most. Returns the next
    /// step.
    pub(super) fn wait_for_room(&self, time: Duration) -> Next {
        let by = Instant::now() + time;
        let mut state = self.lock();
        while !state.is_worth_waking() {
            let left = time_left(by);
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        state.next()
    }

    /// Lets the polling thread wait for a wake-up, for `time` at most.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        state.thread_waits = true;
        let waited = self.room.wait_timeout(state, time);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.thread_waits = false;
        state
    }

    /// Takes a chunk. The next [`update`](Self::update) wakes the owner.
    pub(super) fn arrive(&self, arrived: Arrived) {
        let mut state = self.lock();
        if state.arrive(arrived.partition, arrived.offset) {
            state.waiting.push_back(arrived);
        }
    }

    /// Returns the offsets that were skipped in each partition since the last call.
    pub(super) fn take_skipped(&self) -> Vec<(i32, Skipped)> {
        let mut state = self.lock();
        let lanes = state.lanes.iter_mut();
        lanes
            .filter_map(|(partition, lane)| Some((*partition, lane.skipped.take()?)))
            .collect()
    }

    /// Keeps skipped offsets for the next time, because the brokers did not answer.
    pub(super) fn put_back(&self, partition: i32, skipped: Skipped) {
        if let Some(lane) = self.lock().lanes.get_mut(&partition) {
            lane.skipped.get_or_insert(skipped);
        }
    }

    /// Reports what the ends of a partition say about skipped offsets.
    pub(super) fn explain(&self, partition: i32, skipped: Skipped, ends: (i64, i64), reset: Reset) {
        self.update(|state| {
            let lane = state.lanes.get_mut(&partition);
            if let Some(removal) = lane.and_then(|lane| lane.explain(skipped, ends, reset)) {
                state.removal(partition, removal);
            }
        });
    }

    /// Returns the positions to which the group must go back.
    pub(super) fn take_lower(&self) -> Vec<Commit> {
        let mut state = self.lock();
        let refuses_text = state.refuses_text;
        let lanes = state.lanes.iter_mut();
        lanes
            .filter_map(|(partition, lane)| {
                Some(commit(*partition, lane.take_lower()?, refuses_text))
            })
            .collect()
    }

    /// Keeps a position for the next time, because it could not be committed.
    pub(super) fn put_back_lower(&self, commit: &Commit) {
        if let Some(lane) = self.lock().lanes.get_mut(&commit.partition) {
            lane.lower.get_or_insert(commit.offset);
        }
    }

    /// Notes that brokers refuse the text beside a committed offset. Returns what the client was
    /// given to commit, without text.
    pub(super) fn refuse_text(&self) -> Vec<Commit> {
        let mut state = self.lock();
        state.refuses_text = true;
        let lanes = state.lanes.iter();
        lanes
            .filter_map(|(partition, lane)| Some(commit(*partition, lane.stored()?, true)))
            .collect()
    }

    /// Takes a message without a value. `store` is the one of `settle`.
    pub(super) fn damaged(&self, partition: i32, offset: i64, store: impl FnOnce(Commit) -> bool) {
        self.update(|state| {
            state.arrive(partition, offset);
            if let Some(commit) = state.settled(partition, offset, None) {
                // If the client refuses it, another reader has the partition and gets the message.
                store(commit);
            }
            let damaged = no_value(&self.endpoint, partition, offset);
            state.news.push_back(damaged);
        });
    }

    /// Reports a failure. The owner gets the last one, unless an earlier one was final: the failures
    /// after a final one say less.
    pub(super) fn fail(&self, failure: Failure) {
        self.update(|state| {
            let known = state.failure.as_ref();
            if known.is_none_or(|known| known.class != RetryClass::Final) {
                state.failure = Some(failure);
            }
        });
    }

    /// Reports a failure that a later success makes up for. Any other failure takes precedence.
    pub(super) fn fail_for_now(&self, failure: Failure) {
        self.update(|state| {
            state.failure.get_or_insert(failure);
        });
    }

    /// Reports that settled offsets of revoked partitions could not be committed.
    pub(super) fn uncommitted(&self, failure: Failure) {
        self.update(|state| {
            if state.stop {
                state.uncommitted = Some(failure);
            } else {
                state.failure = Some(failure);
            }
        });
    }

    /// Takes new partitions. A member gets none if there are more members than partitions.
    pub(super) fn assigned(&self, positions: Vec<Position>) {
        self.update(|state| {
            state.has_joined = true;
            if positions.is_empty() {
                return;
            }
            let lanes = positions.iter().map(|it| name(it.partition)).collect();
            let last = positions.iter().flat_map(|it| it.last.identities());
            let settled = last.collect();
            for mut position in positions {
                let partition = position.partition;
                // A group that has no position any more has lost it with the topic.
                let known = state.committed.get(&partition).copied();
                position.offset = position.offset.or(known);
                let committed = position.offset.map(|offset| (partition, offset));
                state.committed.extend(committed);
                state.lanes.insert(partition, Lane::at(position));
            }
            if std::mem::replace(&mut state.was_assigned, true) {
                state.stats.rebalances += 1;
            }
            state.news.push_back(Received::Assigned { lanes, settled });
        });
    }

    /// Gives partitions to another reader. It tells the owner and waits until all chunks that were
    /// handed out are settled, until `by` at most. The other reader gets the rest.
    pub(super) fn revoked(&self, partitions: &[i32], by: Instant) {
        let mut state = self.lock();
        let leaves = |arrived: &Arrived| partitions.contains(&arrived.partition);
        // The next assignment says which partitions remain.
        state.has_joined = false;
        state.stats.rebalances += 1;
        state.waiting.retain(|arrived| !leaves(arrived));
        let lanes = partitions.iter().copied().map(name).collect();
        state.news.push_back(Received::Revoked { lanes, by });
        self.news.notify_one();
        state.revoking = true;
        while !state.stop && state.held.values().any(leaves) {
            let left = time_left(by);
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
            // The owner may have retried chunks meanwhile. The other reader gets them.
            state.again.retain(|arrived| !leaves(arrived));
        }
        state.revoking = false;
        state.again.retain(|arrived| !leaves(arrived));
        if !state.stop {
            // At the end the owner still learns the number of unsettled chunks.
            state.held.retain(|_, arrived| !leaves(arrived));
        }
        state
            .lanes
            .retain(|partition, _| !partitions.contains(partition));
        self.wake(&state);
    }
}

impl State {
    fn next(&self) -> Next {
        if self.stop {
            Next::Stop
        } else if self.room() > 0 {
            Next::Fetch
        } else {
            Next::Keep
        }
    }

    /// Notes a fetched offset. Returns whether it is new.
    fn arrive(&mut self, partition: i32, offset: i64) -> bool {
        let arrival = self.lanes.entry(partition).or_default().arrive(offset);
        if let Arrival::Below { expected } = arrival {
            let goes_on = offset;
            self.removal(partition, Removal::Anew { expected, goes_on });
        }
        arrival != Arrival::Known
    }

    /// Reports that chunks were removed before they were read.
    fn removal(&mut self, partition: i32, removal: Removal) {
        self.stats.removals += 1;
        self.stats.removed += removal.chunks();
        let mut message = format!("partition {partition}: {removal}");
        if let Some(unread) = self.removal.take() {
            message = match unread.message.len() > MAX_REMOVAL_BYTES {
                true => unread.message.into(),
                false => format!("{}; {message}", unread.message),
            };
        }
        self.removal = Some(Failure::retry("read from", message));
    }

    /// How many chunks were taken from the client and not handed out.
    fn ahead(&self) -> usize {
        self.waiting.len() + self.again.len()
    }

    /// How many more chunks may be taken from the client.
    fn room(&self) -> usize {
        if self.lanes.values().any(|lane| lane.len() >= MAX_PENDING) {
            return 0;
        }
        let most = self.demand.min(self.held.len() + AHEAD);
        // An owner that wants fewer than before has no room.
        most.saturating_sub(self.held.len() + self.ahead())
    }

    /// Whether the polling thread is worth a wake-up: it must stop, the owner has no chunk left, or
    /// half of the room is free.
    fn is_worth_waking(&self) -> bool {
        let room = self.room();
        let half = self.demand.min(AHEAD) / 2;
        self.stop || room > 0 && (room >= half || self.ahead() == 0)
    }

    /// The reason why this reader is not at the end of its partitions.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        if self.is_cut_off() {
            Some("broker")
        } else if !self.has_joined {
            Some("partitions")
        } else if self.ahead() > 0 || self.lanes.values().any(|lane| !lane.is_at_end) {
            Some("chunks")
        } else {
            None
        }
    }

    /// Whether the client says that it reaches no broker.
    pub(super) fn is_cut_off(&self) -> bool {
        self.connected == Some(false)
    }

    /// The reader's statistics.
    pub(super) fn stats(&self) -> ReaderStats {
        let mut stats = self.stats.clone();
        let lag = self.lanes.iter().filter_map(|(partition, lane)| {
            let chunks = lane.lag()?;
            let lane = name(*partition);
            Some(LaneLag { lane, chunks })
        });
        stats.lag = lag.collect();
        // Before the first statistics only an assignment proves a connection.
        let assumed = self.says_connected.then_some(self.was_assigned);
        stats.connected = self.connected.or(assumed);
        stats
    }

    /// Whether the owner has something to take.
    fn has_news(&self) -> bool {
        let takes = self.held.len() < self.demand && self.ahead() > 0;
        let has_failed = self.failure.is_some() || self.removal.is_some();
        takes || !self.news.is_empty() || has_failed
    }

    fn hand_out(&mut self, endpoint: &str) -> Option<Delivery> {
        if self.held.len() >= self.demand {
            return None;
        }
        let next = self.again.pop_front();
        let arrived = next.or_else(|| self.waiting.pop_front())?;
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        let delivery = arrived.delivery(endpoint, token);
        self.held.insert(token, arrived);
        Some(delivery)
    }

    /// Settles an offset. If the watermark moves, returns the position to commit.
    fn settled(
        &mut self,
        partition: i32,
        offset: i64,
        identity: Option<ChunkIdentity>,
    ) -> Option<Commit> {
        let lane = self.lanes.get_mut(&partition)?;
        if !lane.settled(offset, identity) {
            return None;
        }
        Some(commit(partition, lane.stored()?, self.refuses_text))
    }
}

fn commit(partition: i32, (offset, mut text): (i64, String), refuses_text: bool) -> Commit {
    if refuses_text {
        text.clear();
    }
    Commit {
        partition,
        offset,
        text,
    }
}

fn name(partition: i32) -> LaneName {
    partition.to_string().into()
}

fn origin(endpoint: &str, partition: i32, offset: i64) -> Origin {
    Origin {
        endpoint: endpoint.into(),
        lane: name(partition),
        // Offsets begin at 0.
        position: offset.unsigned_abs(),
    }
}
