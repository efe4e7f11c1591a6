//! A reader's membership in its group: partitions, chunks that came of them, and news for the owner.
//! The owner's thread and the polling thread share it.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Damaged, Failure, LaneLag, ReaderStats, Received, RetryClass, Settled, Token, Verdict,
};
use bytes::Bytes;

use super::lane::Lane;
use super::state::{Awaited, Fetched, Next, State, name, names, origin};

/// A reader's membership in its group, which the owner's thread and the polling thread share.
pub(super) struct Membership {
    pub(super) endpoint: Box<str>,
    state: Mutex<State>,
    /// Wakes the owner, who waits for chunks and news.
    news: Condvar,
    /// Wakes the polling thread.
    room: Condvar,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Membership {
    pub(super) fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.into(),
            state: Mutex::default(),
            news: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// The client will say whether any broker is reached.
    pub(super) fn expect_connection(&self) {
        self.lock().says_connected = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        self.wake(state);
        result
    }

    /// Wakes who waits and has something to do now.
    ///
    /// A wake-up costs more than passing on a small chunk, so there is none for each of them.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let owner = state.owner_waits && state.has_news();
        let thread = match state.thread_waits {
            None => false,
            Some(Awaited::Room) => state.is_worth_waking(),
            Some(Awaited::Settlements) => true,
        };
        if owner {
            state.owner_waits = false;
        }
        if thread {
            state.thread_waits = None;
        }
        drop(state);
        if owner {
            self.news.notify_one();
        }
        if thread {
            self.room.notify_one();
        }
    }

    pub(super) fn set_demand(&self, chunks: usize) {
        self.update(|state| state.demand = chunks);
    }

    /// The end. What is settled may be committed until `commit_by`; the first call decides.
    pub(super) fn stop(&self, commit_by: Instant) {
        self.update(|state| {
            state.stop = true;
            state.commit_by.get_or_insert(commit_by);
        });
    }

    /// The reader has committed what it could, and leaves the group.
    pub(super) fn leave(&self) {
        self.update(|state| state.left = true);
    }

    pub(super) fn has_left(&self) -> bool {
        self.lock().left
    }

    /// Until when a commit is tried again: `by`, unless the reader ends and has a deadline for it.
    pub(super) fn commit_by(&self, by: Instant) -> Instant {
        self.lock().commit_by.unwrap_or(by)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.lock().paused
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.lock().paused = paused;
    }

    /// How many chunks are handed out and not settled.
    pub(super) fn unsettled(&self) -> usize {
        self.lock().held.len()
    }

    /// What the owner gets next, waiting for it until `by`.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, Failure> {
        let mut state = self.lock();
        loop {
            if let Some(told) = state.told.pop_front() {
                return Ok(told);
            }
            if let Some(delivery) = state.hand_out(&self.endpoint) {
                self.wake(state);
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
            let Some(mut fetched) = state.held.remove(&token) else {
                return Settled::Stale;
            };
            if verdict == Verdict::Retry {
                fetched.redelivered = true;
                state.again.push_back(fetched);
                return Settled::Done;
            }
            match state.settled(fetched.partition, fetched.offset) {
                Some(offset) if !store(fetched.partition, offset) => Settled::Stale,
                _ => Settled::Done,
            }
        })
    }

    /// What is known of the partitions beside chunks.
    pub(super) fn stats(&self) -> ReaderStats {
        let state = self.lock();
        let lag = state.lanes.iter().filter_map(|(partition, lane)| {
            let chunks = lane.lag()?;
            let lane = name(*partition);
            Some(LaneLag { lane, chunks })
        });
        let mut stats = ReaderStats::default();
        stats.lag = lag.collect();
        stats.rebalances = state.rebalances;
        stats.reconnects = state.reconnects;
        stats.throttled = state.throttled;
        // Until the client says it, only a group that dealt partitions was surely reached.
        let assumed = state.says_connected.then_some(state.was_assigned);
        stats.connected = state.connected.or(assumed);
        stats
    }

    /// What brokers say of a partition, if it is this reader's; see [`Lane::said`].
    pub(super) fn said(&self, partition: i32, start: Option<i64>, end: i64) {
        if let Some(lane) = self.lock().lanes.get_mut(&partition) {
            lane.said(start, end);
        }
    }

    /// The client has fetched all that a partition holds.
    pub(super) fn reached_end(&self, partition: i32) {
        if let Some(lane) = self.lock().lanes.get_mut(&partition) {
            lane.is_at_end = true;
        }
    }

    /// See [`State::waits_for`].
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        self.lock().waits_for()
    }

    /// How often the client connected again, and whether it reaches any broker now.
    pub(super) fn reconnected(&self, times: u64, connected: bool) {
        let mut state = self.lock();
        state.reconnects = times;
        state.connected = Some(connected);
        if connected {
            state.unreached = None;
        }
    }

    /// Brokers held the client back for so long since it was last told.
    pub(super) fn throttled(&self, more: Duration) {
        let mut state = self.lock();
        state.throttled = state.throttled.saturating_add(more);
    }

    /// The partitions that this reader owns.
    pub(super) fn partitions(&self) -> Vec<i32> {
        self.lock().lanes.keys().copied().collect()
    }

    /// Whether nobody said yet where the group stands in a partition of this reader.
    pub(super) fn lacks_start(&self, partition: i32) -> bool {
        let state = self.lock();
        let lane = state.lanes.get(&partition);
        lane.is_some_and(Lane::lacks_start)
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
            state = self.wait_for(Awaited::Room, state, left);
        }
        state.next()
    }

    /// Lets the polling thread wait until it is woken, for `time` at most.
    fn wait_for<'a>(
        &'a self,
        what: Awaited,
        mut state: MutexGuard<'a, State>,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        state.thread_waits = Some(what);
        let waited = self.room.wait_timeout(state, time);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.thread_waits = None;
        state
    }

    /// A chunk came, of which the owner is to be [told](Self::tell).
    pub(super) fn fetched(&self, fetched: Fetched) {
        let mut state = self.lock();
        let lane = state.lanes.entry(fetched.partition).or_default();
        if lane.fetched(fetched.offset) {
            state.fresh.push_back(fetched);
        }
    }

    /// Wakes the owner for what came.
    pub(super) fn tell(&self) {
        self.wake(self.lock());
    }

    /// A message came that is no chunk. `store` as in `settle`.
    pub(super) fn damaged(
        &self,
        partition: i32,
        offset: i64,
        reason: &str,
        store: impl FnOnce(i32, i64) -> bool,
    ) {
        self.update(|state| {
            let lane = state.lanes.entry(partition).or_default();
            lane.fetched(offset);
            if let Some(offset) = state.settled(partition, offset) {
                // If it is not stored, the partition is another reader's, which meets it again.
                store(partition, offset);
            }
            state.told.push_back(Received::Damaged(Damaged {
                bytes: Bytes::new(),
                origin: origin(&self.endpoint, partition, offset),
                reason: reason.into(),
            }));
        });
    }

    /// Something failed. The last one is told, but the first one that failed for good: what follows
    /// is that no broker is reached, or the same without a reason.
    pub(super) fn fail(&self, failure: Failure) {
        self.update(|state| {
            let known = state.failure.as_ref();
            if known.is_none_or(|known| known.class != RetryClass::Final) {
                state.failure = Some(failure);
            }
        });
    }

    /// Why a broker could not be reached.
    pub(super) fn note_unreached(&self, reason: &str) {
        self.lock().unreached = Some(reason.into());
    }

    /// No broker can be reached.
    pub(super) fn fail_to_connect(&self) {
        let reason = self.lock().unreached.clone();
        let reason = reason.unwrap_or_else(|| "no broker answers".into());
        self.fail(Failure::retry("connect to", reason));
    }

    /// Something failed that is made up for later: what failed for good is told before it.
    pub(super) fn fail_for_now(&self, failure: Failure) {
        self.update(|state| {
            state.failure.get_or_insert(failure);
        });
    }

    /// What was settled of partitions that leave could not be committed.
    pub(super) fn uncommitted(&self, failure: Failure) {
        self.update(|state| {
            if state.stop {
                state.uncommitted = Some(failure);
            } else {
                state.failure = Some(failure);
            }
        });
    }

    /// Why the commit at the end failed, if it did.
    pub(super) fn last_uncommitted(&self) -> Option<Failure> {
        self.lock().uncommitted.take()
    }

    /// Whether no broker is reached, as far as the client said.
    pub(super) fn is_cut_off(&self) -> bool {
        self.lock().connected == Some(false)
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
                state.rebalances = state.rebalances.saturating_add(1);
            }
            let lanes = names(partitions);
            state.told.push_back(Received::Assigned { lanes });
        });
    }

    /// Partitions go to another reader: tells the owner and waits until what is handed out of them
    /// is settled, `by` at most. What was not handed out is forgotten, so it comes again there.
    pub(super) fn revoked(&self, partitions: &[i32], by: Instant) {
        let mut state = self.lock();
        let leaves = |fetched: &Fetched| partitions.contains(&fetched.partition);
        // The group deals again, and says what is left.
        state.has_joined = false;
        state.rebalances = state.rebalances.saturating_add(1);
        state.fresh.retain(|fetched| !leaves(fetched));
        let lanes = names(partitions);
        state.told.push_back(Received::Revoked { lanes, by });
        if std::mem::take(&mut state.owner_waits) {
            self.news.notify_one();
        }
        while !state.stop && state.held.values().any(leaves) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait_for(Awaited::Settlements, state, left);
            // Given back while waiting: it comes again there.
            state.again.retain(|fetched| !leaves(fetched));
        }
        state.again.retain(|fetched| !leaves(fetched));
        if !state.stop {
            // At the end the owner still learns how many it did not settle.
            state.held.retain(|_, fetched| !leaves(fetched));
        }
        state
            .lanes
            .retain(|partition, _| !partitions.contains(partition));
        self.wake(state);
    }
}
