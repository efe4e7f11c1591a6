//! What is known of the partitions, of what came of them and of who waits for it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkMeta, Delivery, Failure, LaneName, Origin, Received, Token};
use bytes::Bytes;

use super::lane::Lane;

/// How many chunks are taken from the client before the owner asks for them.
const AHEAD: usize = 32;

/// How many offsets of a partition may wait behind one that is not settled.
const MAX_PENDING: usize = 1 << 16;

/// What both threads know, behind the lock of [`Membership`](super::membership::Membership).
#[derive(Default)]
pub(super) struct State {
    /// The partitions that this reader owns.
    pub(super) lanes: BTreeMap<i32, Lane>,
    /// What the owner is to be told before the next chunk.
    pub(super) told: VecDeque<Received>,
    pub(super) again: VecDeque<Fetched>,
    pub(super) fresh: VecDeque<Fetched>,
    /// What was handed out and not settled.
    pub(super) held: HashMap<Token, Fetched>,
    pub(super) next_token: u64,
    pub(super) demand: usize,
    pub(super) failure: Option<Failure>,
    /// Why a broker could not be reached, until one is.
    pub(super) unreached: Option<Box<str>>,
    /// Why the commit at the end failed.
    pub(super) uncommitted: Option<Failure>,
    pub(super) paused: bool,
    pub(super) stop: bool,
    /// Whether the group was left.
    pub(super) left: bool,
    /// Until when a reader that ends tries to commit.
    pub(super) commit_by: Option<Instant>,
    /// Whether the group has dealt this reader its partitions, if only none at all.
    pub(super) has_joined: bool,
    /// Whether partitions were ever assigned, and how often they changed since.
    pub(super) was_assigned: bool,
    pub(super) rebalances: u64,
    pub(super) reconnects: u64,
    pub(super) throttled: Duration,
    /// Whether any broker is reached, once the client said so.
    pub(super) connected: Option<bool>,
    /// Whether the client will say so.
    pub(super) says_connected: bool,
    /// Whether the owner waits; nobody is woken who does not.
    pub(super) owner_waits: bool,
    pub(super) thread_waits: Option<Awaited>,
}

/// What the polling thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Room for chunks, or the end.
    Room,
    /// That what was handed out of partitions that leave is settled.
    Settlements,
}

/// A chunk from the topic.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) bytes: Bytes,
    pub(super) meta: Option<ChunkMeta>,
    pub(super) redelivered: bool,
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

impl State {
    pub(super) fn next(&self) -> Next {
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
        self.fresh.len() + self.again.len()
    }

    /// How many more chunks may be taken from the client.
    fn room(&self) -> usize {
        if self.lanes.values().any(|lane| lane.len() >= MAX_PENDING) {
            return 0;
        }
        let ahead = self.ahead();
        let wanted = self.demand.saturating_sub(self.held.len());
        wanted.min(AHEAD).saturating_sub(ahead)
    }

    /// Whether the polling thread is worth waking: it is to stop, the owner has nothing left, or
    /// there is room for half of what it may take.
    pub(super) fn is_worth_waking(&self) -> bool {
        let room = self.room();
        let half = self.demand.min(AHEAD) / 2;
        self.stop || room > 0 && (room >= half || self.ahead() == 0)
    }

    /// What is between this reader and the end of its partitions.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        if self.connected == Some(false) {
            Some("broker")
        } else if !self.has_joined {
            Some("partitions")
        } else if self.ahead() > 0 || self.lanes.values().any(|lane| !lane.is_at_end) {
            Some("chunks")
        } else {
            None
        }
    }

    /// Whether the owner has something to take.
    pub(super) fn has_news(&self) -> bool {
        let takes = self.held.len() < self.demand && self.ahead() > 0;
        takes || !self.told.is_empty() || self.failure.is_some()
    }

    pub(super) fn hand_out(&mut self, endpoint: &str) -> Option<Delivery> {
        if self.held.len() >= self.demand {
            return None;
        }
        let fetched = self.again.pop_front().or_else(|| self.fresh.pop_front())?;
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        let delivery = Delivery {
            token,
            bytes: fetched.bytes.clone(),
            meta: fetched.meta,
            origin: origin(endpoint, fetched.partition, fetched.offset),
            redelivered: fetched.redelivered,
            attempts: 0,
        };
        self.held.insert(token, fetched);
        Some(delivery)
    }

    pub(super) fn settled(&mut self, partition: i32, offset: i64) -> Option<i64> {
        self.lanes.get_mut(&partition)?.settled(offset)
    }
}

pub(super) fn name(partition: i32) -> LaneName {
    partition.to_string().into()
}

pub(super) fn names(partitions: &[i32]) -> Vec<LaneName> {
    partitions.iter().copied().map(name).collect()
}

pub(crate) fn origin(endpoint: &str, partition: i32, offset: i64) -> Origin {
    Origin {
        endpoint: endpoint.into(),
        lane: name(partition),
        position: u64::try_from(offset).unwrap_or_default(),
    }
}
