//! What the readers of one process know together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::ChunkHeader;
use baler_common::transport::{ChunkIdentity, Verdict, Waiting};

use crate::lanes::{LaneTracker, Memory};
use crate::report::SourceReport;
use crate::watch::SourceWatch;

/// The readers of one endpoint in one process, seen as one. Cloning shares; any thread may ask.
///
/// Each reader tells only what it saw itself; over the union of what all settled, copies that went
/// to two readers are found, and chunks that one reader misses and another has are no gaps.
/// Memory is bounded as that of one reader's [`LaneTracker`].
#[derive(Debug, Clone, Default)]
pub struct Group {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    union: Mutex<LaneTracker>,
    /// In the order in which they joined.
    readers: Mutex<Vec<Place>>,
    stopped: AtomicBool,
    started: Instant,
    /// When a reader last received something, in milliseconds after `started`.
    heard_ms: AtomicU64,
    /// When a reader was last known to be not at its end, likewise.
    waited_ms: AtomicU64,
}

/// What is known of one reader.
#[derive(Debug)]
struct Place {
    watch: SourceWatch,
    /// It has closed: its lanes are others' now.
    left: bool,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            union: Mutex::default(),
            readers: Mutex::default(),
            stopped: AtomicBool::new(false),
            started: Instant::now(),
            heard_ms: AtomicU64::new(0),
            waited_ms: AtomicU64::new(0),
        }
    }
}

/// What the readers of a group did, and what they know together.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupReport {
    /// All readers as one: counters are sums, lanes and gaps are those of the union, lag is the
    /// largest that any reader tells of a lane.
    pub total: SourceReport,
    /// Each reader's own, in the order in which they joined; those that left keep their last one.
    pub readers: Vec<SourceReport>,
}

impl Group {
    /// A group without readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// One reader more, at any time; see [`Source::in_group`](crate::Source::in_group).
    pub(crate) fn join(&self, watch: SourceWatch) -> Member {
        let mut readers = lock(&self.shared.readers);
        readers.push(Place { watch, left: false });
        self.heard();
        Member {
            group: self.clone(),
            number: readers.len().saturating_sub(1),
        }
    }

    /// What the readers did so far. Of running ones the figures are up to a quarter of a second old.
    pub fn report(&self) -> GroupReport {
        let mut total = SourceReport::default();
        let mut reports = Vec::new();
        let readers = lock(&self.shared.readers);
        // How far those were behind that left is for those to say that stayed.
        let all_left = readers.iter().all(|reader| reader.left);
        for reader in readers.iter() {
            let report = reader.watch.report();
            total.add(&report);
            if all_left || !reader.left {
                total.add_owned(&report);
            }
            reports.push(report);
        }
        drop(readers);
        total.waiting = self.waiting();
        let union = lock(&self.shared.union);
        total.lanes = union.lanes();
        total.complete_lanes = union.complete_lanes();
        total.gaps = union.gaps();
        total.producer_losses = union.losses();
        GroupReport {
            total,
            readers: reports,
        }
    }

    /// Chunks and records that were handed on so far, without the cost of [`Group::report`].
    pub fn progress(&self) -> (u64, u64) {
        let readers = lock(&self.shared.readers);
        readers.iter().fold((0, 0), |(chunks, records), reader| {
            let report = reader.watch.report();
            (
                chunks.saturating_add(report.chunks),
                records.saturating_add(report.records),
            )
        })
    }

    /// Since when no reader of the group received anything although one is not at the end of its
    /// medium.
    pub fn waiting(&self) -> Waiting {
        let readers = lock(&self.shared.readers);
        let live = readers.iter().filter(|reader| !reader.left);
        let waiting = live.map(|reader| reader.watch.report().waiting);
        let first = waiting
            .filter(|waiting| waiting.since().is_some())
            .min_by_key(Waiting::since);
        first.map_or_else(Waiting::default, |it| it.not_before(self.heard_at()))
    }

    /// Asks every reader of the group to finish what it has and to end.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
    }

    /// Whether the group was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Acquire)
    }

    fn heard(&self) {
        self.note(&self.shared.heard_ms);
    }

    fn note(&self, time_ms: &AtomicU64) {
        let now = self.shared.started.elapsed().as_millis();
        time_ms.fetch_max(u64::try_from(now).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    fn heard_at(&self) -> Instant {
        self.shared.started + Duration::from_millis(self.shared.heard_ms.load(Ordering::Acquire))
    }

    fn idle(&self) -> Duration {
        let waited = Duration::from_millis(self.shared.waited_ms.load(Ordering::Acquire));
        let last = self.heard_at().max(self.shared.started + waited);
        last.elapsed()
    }
}

/// One reader's place in a [`Group`].
#[derive(Debug)]
pub(crate) struct Member {
    group: Group,
    number: usize,
}

impl Member {
    /// Whether a reader of the group has settled this chunk, or another one with its identity, as
    /// processed.
    pub(crate) fn memory(&self, identity: ChunkIdentity, checksum: u32) -> Memory {
        self.union().memory(identity, checksum)
    }

    /// Notes the verdict on a chunk that was in work; says whether a reader of the group had settled
    /// it before.
    pub(crate) fn settled(&self, identity: ChunkIdentity, checksum: u32, verdict: Verdict) -> bool {
        let mut union = self.union();
        let before = verdict == Verdict::Ack && union.memory(identity, checksum) == Memory::Same;
        union.touch(identity.into());
        union.note(identity, checksum, verdict);
        before
    }

    /// Notes what a chunk's header tells of its lane.
    pub(crate) fn told(&self, header: &ChunkHeader) {
        let mut union = self.union();
        union.touch(header.identity.into());
        union.told(header);
    }

    /// Something was received, if only a copy or damage, or processed.
    pub(crate) fn heard(&self) {
        self.group.heard();
    }

    /// This reader is not at the end of its medium.
    pub(crate) fn waits(&self) {
        self.group.note(&self.group.shared.waited_ms);
    }

    /// For how long nobody in the group received anything while all were at their end.
    pub(crate) fn idle(&self) -> Duration {
        self.group.idle()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.group.is_stopped()
    }

    /// Tells the group that this reader has closed.
    pub(crate) fn leave(&self) {
        if let Some(place) = lock(&self.group.shared.readers).get_mut(self.number) {
            place.left = true;
        }
    }

    fn union(&self) -> MutexGuard<'_, LaneTracker> {
        lock(&self.group.shared.union)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
