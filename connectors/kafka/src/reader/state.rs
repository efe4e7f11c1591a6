//! A reader's membership in its group: partitions, chunks that came of them, and news for the owner.
//! The owner and the polling thread share it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkMeta, Damaged, Delivery, Failure, LaneLag, LaneName, Origin, ReaderStats, Received,
    RetryClass, Settled, Token, Verdict,
};
use bytes::Bytes;
use rdkafka::Message;

use super::commit::Lane;
use crate::headers;

/// How many chunks are taken from the client before the owner asks for them.
const AHEAD: usize = 32;

/// How many offsets of a partition may wait behind one that is not settled.
const MAX_PENDING: usize = 1 << 16;

/// A reader's membership in its group, which the owner's thread and the polling thread share.
pub(super) struct ReaderState {
    endpoint: Box<str>,
    state: Mutex<State>,
    /// Wakes the owner, who waits for chunks and news.
    news: Condvar,
    /// Wakes the polling thread, which waits for room or for settlements.
    room: Condvar,
}

/// What both threads know.
#[derive(Default)]
pub(super) struct State {
    /// The partitions that this reader owns.
    pub(super) lanes: BTreeMap<i32, Lane>,
    /// News for the owner, which come before the next chunk.
    news: VecDeque<Received>,
    /// Taken from the client and not handed out.
    waiting: VecDeque<Arrived>,
    /// To be handed out once more, before those.
    again: VecDeque<Arrived>,
    /// Handed out and not settled.
    pub(super) held: HashMap<Token, Arrived>,
    next_token: u64,
    pub(super) demand: usize,
    failure: Option<Failure>,
    /// Why a broker could not be reached, until one is.
    pub(super) unreached: Option<Box<str>>,
    /// Why the commit at the end failed.
    pub(super) uncommitted: Option<Failure>,
    pub(super) paused: bool,
    stop: bool,
    /// Whether the reader has committed what it could and leaves the group.
    pub(super) left: bool,
    /// Until when a reader that ends tries to commit.
    pub(super) commit_by: Option<Instant>,
    /// Whether the group has dealt this reader its partitions, if only none at all.
    has_joined: bool,
    was_assigned: bool,
    /// All but the lag, which the lanes know, and the connection.
    pub(super) stats: ReaderStats,
    /// Whether any broker is reached, once the client said so; and whether it will.
    pub(super) connected: Option<bool>,
    pub(super) says_connected: bool,
    /// Who waits; nobody is woken who does not.
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

    /// As it is handed out.
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

/// A message without a value, which is no chunk.
pub(super) fn no_value(endpoint: &str, partition: i32, offset: i64) -> Received {
    Received::Damaged(Damaged {
        bytes: Bytes::new(),
        origin: origin(endpoint, partition, offset),
        reason: "a message without a value, as compacted topics have".into(),
    })
}

/// What the polling thread does next.
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

    /// What both threads know. Use [`update`](Self::update) for what one of them may wait for.
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

    /// Wakes who waits and has something to do now.
    ///
    /// A wake-up costs more than passing on a small chunk, so there is none for each of them.
    fn wake(&self, state: &State) {
        if state.owner_waits && state.has_news() {
            self.news.notify_one();
        }
        if state.thread_waits && (state.revoking || state.is_worth_waking()) {
            self.room.notify_one();
        }
    }

    /// The end. What is settled may be committed until `commit_by`; the first call decides.
    pub(super) fn stop(&self, commit_by: Instant) {
        self.update(|state| {
            state.stop = true;
            state.commit_by.get_or_insert(commit_by);
        });
    }

    /// What the owner gets next, waiting for it until `by`.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, Failure> {
        let mut state = self.lock();
        loop {
            if let Some(news) = state.news.pop_front() {
                return Ok(news);
            }
            if let Some(delivery) = state.hand_out(&self.endpoint) {
                self.wake(&state);
                return Ok(Received::Chunk(delivery));
            }
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            state.owner_waits = true;
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.owner_waits = false;
        }
    }

    /// Settles a delivery. `store` notes the last settled offset of a partition with the client.
    pub(super) fn settle(
        &self,
        token: Token,
        verdict: Verdict,
        store: impl FnOnce(i32, i64) -> bool,
    ) -> Settled {
        // Stored under the lock: whoever waits for this settlement to give the partition back
        // must not do so before the offset is noted.
        self.update(|state| {
            let Some(mut arrived) = state.held.remove(&token) else {
                return Settled::Stale;
            };
            if verdict == Verdict::Retry {
                arrived.redelivered = true;
                state.again.push_back(arrived);
                return Settled::Done;
            }
            match state.settled(arrived.partition, arrived.offset) {
                Some(offset) if !store(arrived.partition, offset) => Settled::Stale,
                _ => Settled::Done,
            }
        })
    }

    /// What the polling thread does next.
    pub(super) fn next(&self) -> Next {
        self.lock().next()
    }

    /// Waits until there is room worth a wake-up or the end came, for `time` at most; what to do
    /// then.
    pub(super) fn wait_for_room(&self, time: Duration) -> Next {
        let by = Instant::now() + time;
        let mut state = self.lock();
        while !state.is_worth_waking() {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        state.next()
    }

    /// Lets the polling thread wait until it is woken, for `time` at most.
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

    /// A chunk came. The owner is woken by the next [`update`](Self::update).
    pub(super) fn arrive(&self, arrived: Arrived) {
        let mut state = self.lock();
        let lane = state.lanes.entry(arrived.partition).or_default();
        if lane.arrive(arrived.offset) {
            state.waiting.push_back(arrived);
        }
    }

    /// A message came that has no value. `store` as in `settle`.
    pub(super) fn damaged(
        &self,
        partition: i32,
        offset: i64,
        store: impl FnOnce(i32, i64) -> bool,
    ) {
        self.update(|state| {
            state.lanes.entry(partition).or_default().arrive(offset);
            if let Some(offset) = state.settled(partition, offset) {
                // If it is not stored, the partition is another reader's, which meets it again.
                store(partition, offset);
            }
            let damaged = no_value(&self.endpoint, partition, offset);
            state.news.push_back(damaged);
        });
    }

    /// Something failed. The owner gets the last failure, unless an earlier one was final: after that
    /// come only failures to reach a broker, or the same without a reason.
    pub(super) fn fail(&self, failure: Failure) {
        self.update(|state| {
            let known = state.failure.as_ref();
            if known.is_none_or(|known| known.class != RetryClass::Final) {
                state.failure = Some(failure);
            }
        });
    }

    /// Something failed that is made up for later, so any other failure is told before it.
    pub(super) fn fail_for_now(&self, failure: Failure) {
        self.update(|state| {
            state.failure.get_or_insert(failure);
        });
    }

    /// Settled offsets of partitions that leave could not be committed.
    pub(super) fn uncommitted(&self, failure: Failure) {
        self.update(|state| {
            if state.stop {
                state.uncommitted = Some(failure);
            } else {
                state.failure = Some(failure);
            }
        });
    }

    /// Partitions were assigned. A member may get none, if there are more members than partitions.
    pub(super) fn assigned(&self, partitions: &[i32]) {
        self.update(|state| {
            state.has_joined = true;
            if partitions.is_empty() {
                return;
            }
            for partition in partitions {
                state.lanes.insert(*partition, Lane::default());
            }
            if std::mem::replace(&mut state.was_assigned, true) {
                state.stats.rebalances += 1;
            }
            let lanes = names(partitions);
            state.news.push_back(Received::Assigned { lanes });
        });
    }

    /// Partitions go to another reader: tells the owner and waits until everything handed out of them
    /// is settled, `by` at most. Chunks that were not handed out are forgotten; they come again there.
    pub(super) fn revoked(&self, partitions: &[i32], by: Instant) {
        let mut state = self.lock();
        let leaves = |arrived: &Arrived| partitions.contains(&arrived.partition);
        // The group deals again, and says what is left.
        state.has_joined = false;
        state.stats.rebalances += 1;
        state.waiting.retain(|arrived| !leaves(arrived));
        let lanes = names(partitions);
        state.news.push_back(Received::Revoked { lanes, by });
        self.news.notify_one();
        state.revoking = true;
        while !state.stop && state.held.values().any(leaves) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
            // Given back while this waited: it comes again there.
            state.again.retain(|arrived| !leaves(arrived));
        }
        state.revoking = false;
        state.again.retain(|arrived| !leaves(arrived));
        if !state.stop {
            // At the end the owner still learns how many it did not settle.
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

    /// How many chunks are taken from the client and not handed out.
    fn ahead(&self) -> usize {
        self.waiting.len() + self.again.len()
    }

    /// How many more chunks may be taken from the client.
    fn room(&self) -> usize {
        if self.lanes.values().any(|lane| lane.len() >= MAX_PENDING) {
            return 0;
        }
        let wanted = self.demand.saturating_sub(self.held.len());
        wanted.min(AHEAD).saturating_sub(self.ahead())
    }

    /// Whether the polling thread is worth waking: it is to stop, the owner has nothing left, or
    /// there is room for half of what it may take.
    fn is_worth_waking(&self) -> bool {
        let room = self.room();
        let half = self.demand.min(AHEAD) / 2;
        self.stop || room > 0 && (room >= half || self.ahead() == 0)
    }

    /// What is between this reader and the end of its partitions.
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

    /// Whether no broker is reached, as far as the client said.
    pub(super) fn is_cut_off(&self) -> bool {
        self.connected == Some(false)
    }

    /// What the reader knows of its medium.
    pub(super) fn stats(&self) -> ReaderStats {
        let mut stats = self.stats.clone();
        let lag = self.lanes.iter().filter_map(|(partition, lane)| {
            let chunks = lane.lag()?;
            let lane = name(*partition);
            Some(LaneLag { lane, chunks })
        });
        stats.lag = lag.collect();
        // Until the client says it, only a group that dealt partitions was surely reached.
        let assumed = self.says_connected.then_some(self.was_assigned);
        stats.connected = self.connected.or(assumed);
        stats
    }

    /// Whether the owner has something to take.
    fn has_news(&self) -> bool {
        let takes = self.held.len() < self.demand && self.ahead() > 0;
        takes || !self.news.is_empty() || self.failure.is_some()
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

    fn settled(&mut self, partition: i32, offset: i64) -> Option<i64> {
        self.lanes.get_mut(&partition)?.settled(offset)
    }
}

fn name(partition: i32) -> LaneName {
    partition.to_string().into()
}

fn names(partitions: &[i32]) -> Vec<LaneName> {
    partitions.iter().copied().map(name).collect()
}

fn origin(endpoint: &str, partition: i32, offset: i64) -> Origin {
    Origin {
        endpoint: endpoint.into(),
        lane: name(partition),
        position: u64::try_from(offset).unwrap_or_default(),
    }
}
