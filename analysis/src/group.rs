//! Treats the readers of one process as one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use baler_common::container::ChunkHeader;
use baler_common::mutex::lock;
use baler_common::transport::{ChunkIdentity, Verdict, Waiting};

use crate::lanes::{EarlierChunk, LaneTracker};
use crate::last_time::LastTime;
use crate::report::{SourceReport, SourceWatch};

/// The readers of one endpoint in one process, treated as one. Clones share it; any thread may use
/// it.
///
/// A group knows which chunks all its readers settled. So it finds copies that went to two readers.
/// It does not report a chunk as missing if another reader has it. Its memory is limited like the
/// memory of one reader's [`LaneTracker`].
#[derive(Debug, Clone, Default)]
pub struct Group {
    state: Arc<GroupState>,
}

#[derive(Debug, Default)]
struct GroupState {
    union: Mutex<LaneTracker>,
    /// In the order in which they joined.
    readers: Mutex<Vec<GroupReader>>,
    stopped: AtomicBool,
    /// When a reader last received something.
    heard: LastTime,
    /// When a reader was last known not to be at its end.
    waited: LastTime,
}

/// One reader of the group.
#[derive(Debug)]
struct GroupReader {
    watch: SourceWatch,
    /// It has closed: other readers own its lanes now.
    left: bool,
}

/// The figures of a group.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupReport {
    /// All readers as one: counters are added, lanes and gaps come from the union, and the lag of a
    /// lane is the largest one that a reader reports.
    pub total: SourceReport,
    /// The report of each reader, in the order in which they joined; after it left, its last one.
    pub readers: Vec<SourceReport>,
}

impl Group {
    /// A group without readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reader, at any time; see [`Source::in_group`](crate::Source::in_group).
    pub(crate) fn join(&self, watch: SourceWatch) -> Member {
        let mut readers = lock(&self.state.readers);
        readers.push(GroupReader { watch, left: false });
        self.heard();
        Member {
            group: self.clone(),
            number: readers.len() - 1,
        }
    }

    /// Returns the figures so far. Figures of running readers are up to a quarter of a second old.
    pub fn report(&self) -> GroupReport {
        let mut total = SourceReport::default();
        let mut reports = Vec::new();
        let readers = lock(&self.state.readers);
        // A reader that left has no lag any more; the others report it.
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
        let union = lock(&self.state.union);
        total.lanes = union.lanes();
        total.complete_lanes = union.complete_lanes();
        total.gaps = union.gaps();
        total.starts = union.starts();
        total.producer_losses = union.losses();
        GroupReport {
            total,
            readers: reports,
        }
    }

    /// Returns the chunks and records that were passed on so far, without the cost of
    /// [`Group::report`].
    pub fn progress(&self) -> (u64, u64) {
        let readers = lock(&self.state.readers);
        readers.iter().fold((0, 0), |(chunks, records), reader| {
            let report = reader.watch.report();
            (chunks + report.chunks, records + report.records)
        })
    }

    /// Since when no reader of the group has received anything although one is not at the end of
    /// its medium.
    pub fn waiting(&self) -> Waiting {
        let readers = lock(&self.state.readers);
        let live = readers.iter().filter(|reader| !reader.left);
        let waiting = live.map(|reader| reader.watch.report().waiting);
        let first = waiting
            .filter(|waiting| waiting.since().is_some())
            .min_by_key(Waiting::since);
        first.map_or_else(Waiting::default, |it| it.not_before(self.state.heard.get()))
    }

    /// Asks every reader of the group to finish its chunks and to end.
    pub fn stop(&self) {
        self.state.stopped.store(true, Ordering::Release);
    }

    /// Whether the group was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.state.stopped.load(Ordering::Acquire)
    }

    /// Records that something was received (even only a copy or damage) or processed.
    pub(crate) fn heard(&self) {
        self.state.heard.note();
    }

    /// Records that a reader is not at the end of its medium.
    pub(crate) fn waits(&self) {
        self.state.waited.note();
    }

    /// Returns for how long no reader has received anything while all were at their end.
    pub(crate) fn idle(&self) -> Duration {
        let last = self.state.heard.get().max(self.state.waited.get());
        last.elapsed()
    }
}

/// One reader's place in a [`Group`].
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) group: Group,
    number: usize,
}

impl Member {
    /// Whether a reader of the group has settled this chunk, or another one with its identity, as
    /// processed.
    pub(crate) fn earlier_chunk(&self, identity: ChunkIdentity, checksum: u32) -> EarlierChunk {
        self.union().earlier_chunk(identity, checksum)
    }

    /// Records the verdict on a chunk in work; returns whether a reader of the group had settled it
    /// before.
    pub(crate) fn settled(&self, identity: ChunkIdentity, checksum: u32, verdict: Verdict) -> bool {
        let mut union = self.union();
        let before = verdict == Verdict::Ack
            && union.earlier_chunk(identity, checksum) == EarlierChunk::Same;
        union.touch(identity.into());
        union.note(identity, checksum, verdict);
        before
    }

    /// Records the losses and the end of a lane from a chunk's header.
    pub(crate) fn note_header(&self, header: &ChunkHeader) {
        let mut union = self.union();
        union.touch(header.identity.into());
        union.note_header(header);
    }

    /// Records that readers before have settled the chunks of a lane up to this one.
    pub(crate) fn note_settled_before(&self, last: ChunkIdentity) {
        self.union().note_settled_before(last);
    }

    /// Informs the group that this reader has closed.
    pub(crate) fn leave(&self) {
        lock(&self.group.state.readers)[self.number].left = true;
    }

    fn union(&self) -> MutexGuard<'_, LaneTracker> {
        lock(&self.group.state.union)
    }
}
