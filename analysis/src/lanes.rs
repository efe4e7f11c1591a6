//! Finds duplicates and gaps in each lane of a producer's life.
//!
//! A chunk counts as seen when it is *acknowledged*, not when it is received. Otherwise a chunk
//! whose processing failed would count as a duplicate when it is delivered again, and be lost.
//! While a chunk is in work, a second copy waits for the verdict on the first one. A chunk that was
//! rejected as broken does not count as seen: an intact copy of it is processed.
//!
//! A copy has the same identity and the same checksum. A chunk with only the same identity is
//! another chunk, sent by mistake or by an attacker. It is never acknowledged as a copy.
//!
//! A reader reports only gaps that it can know. Chunks before its first acknowledged chunk in a
//! lane may have gone to another reader, so they are not a gap. A medium that keeps the last chunk of
//! each lane that earlier readers settled closes this hole. Otherwise the lane counts as one that
//! starts in the middle.

use std::collections::{BTreeMap, HashMap};

use baler_common::container::{ChunkHeader, Losses};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId, Token, Verdict};

/// The most ranges of acknowledged sequence numbers in a lane. Beyond it the oldest are forgotten.
const MAX_RANGES: usize = 4_096;

/// The most remembered lanes. Beyond it the lanes that were silent longest are forgotten.
const MAX_LANES: usize = 65_536;

/// The most ranges of all lanes together, about 64 MiB: acknowledged, rejected and given up. Beyond
/// it each growing lane is cut to [`FEW_RANGES`].
const MAX_ALL_RANGES: usize = 1 << 20;

/// The number of ranges that a lane may always have.
const FEW_RANGES: usize = 16;

/// The most checksums of acknowledged chunks in a lane: those with the highest sequence numbers.
/// This is more than a sender may have unacknowledged, so that chunks sent again are recognised.
const MAX_CHECKSUMS: usize = 4_096;

/// The most checksums of all lanes, about 20 MiB. A growing lane is cut to its share.
const MAX_ALL_CHECKSUMS: usize = 1 << 20;

/// One lane of one life of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// The producer of the chunks.
    pub producer: ProducerId,
    /// The producer's life.
    pub epoch: Epoch,
    /// The producer's number of the lane.
    pub lane: u32,
}

impl LaneKey {
    /// The identity of a chunk of this lane.
    pub(crate) fn chunk(self, sequence: u64) -> ChunkIdentity {
        ChunkIdentity {
            producer: self.producer,
            epoch: self.epoch,
            lane: self.lane,
            sequence,
        }
    }
}

impl From<ChunkIdentity> for LaneKey {
    fn from(identity: ChunkIdentity) -> Self {
        Self {
            producer: identity.producer,
            epoch: identity.epoch,
            lane: identity.lane,
        }
    }
}

/// The decision on a received chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Another chunk with this identity was acknowledged before: put this one into quarantine.
    Conflict,
    /// It was acknowledged before: acknowledge it, but do not process it.
    Duplicate,
    /// Process it.
    New,
    /// Another copy is in work. This one's token is kept until that copy is settled.
    Waiting,
}

/// Chunks of a lane that never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The lane.
    pub lane: LaneKey,
    /// The first missing sequence number.
    pub first_sequence: u64,
    /// The number of missing chunks.
    pub chunks: u64,
    /// Whether the producer reported that it gave these chunks up.
    pub explained: bool,
}

/// Distinguishes duplicates from new chunks and finds gaps, over all lanes of one reader.
///
/// Its memory is limited: see [`LaneTracker::forgotten_lanes`].
#[derive(Debug, Default)]
pub struct LaneTracker {
    lanes: HashMap<LaneKey, Lane>,
    /// The last sequence numbers that earlier readers settled, of lanes that did not arrive yet.
    settled_before: HashMap<LaneKey, u64>,
    in_work: HashMap<ChunkIdentity, InWork>,
    all_ranges: usize,
    arrivals: u64,
    duplicates: u64,
    unverifiable: u64,
    forgotten_lanes: u64,
}

/// An unsettled chunk, and the deliveries with its identity that wait for its verdict.
#[derive(Debug)]
struct InWork {
    checksum: u32,
    waiting: Vec<(Token, u32)>,
}

/// The memory of a chunk with a certain identity and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierChunk {
    /// Another chunk with this identity was acknowledged.
    Other,
    /// This chunk was acknowledged.
    Same,
    /// Nothing, or too little to decide.
    Unknown,
}

#[derive(Debug, Default)]
struct Lane {
    acknowledged: Sequences,
    /// Checksums of acknowledged chunks, by sequence number.
    checksums: BTreeMap<u64, u32>,
    /// Settled by other readers: not a gap, but not seen.
    settled_before: Sequences,
    /// Rejected as broken: not a gap, but not seen.
    rejected: Sequences,
    given_up: Sequences,
    losses: Losses,
    complete: bool,
    /// Acknowledged chunks below this number are forgotten.
    known_from: u64,
    last_arrival: u64,
}

impl LaneTracker {
    /// Creates a tracker that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides what to do with a received chunk.
    pub fn arrived(&mut self, identity: ChunkIdentity, checksum: u32, token: Token) -> Arrival {
        if let Some(first) = self.in_work.get_mut(&identity) {
            first.waiting.push((token, checksum));
            return Arrival::Waiting;
        }
        let lane = self.enter(identity.into());
        match lane.earlier_chunk(identity.sequence, checksum) {
            EarlierChunk::Other => return Arrival::Conflict,
            EarlierChunk::Same => {
                self.duplicates += 1;
                return Arrival::Duplicate;
            }
            EarlierChunk::Unknown => {}
        }
        if identity.sequence < lane.known_from || lane.acknowledged.contains(identity.sequence) {
            // Processing it twice is better than losing it silently.
            self.unverifiable += 1;
        }
        let waiting = Vec::new();
        self.in_work.insert(identity, InWork { checksum, waiting });
        Arrival::New
    }

    /// Whether this chunk, or another one with its identity, was acknowledged as processed, as far
    /// as it is remembered.
    pub(crate) fn earlier_chunk(&self, identity: ChunkIdentity, checksum: u32) -> EarlierChunk {
        let lane = self.lanes.get(&identity.into());
        lane.map_or(EarlierChunk::Unknown, |lane| {
            lane.earlier_chunk(identity.sequence, checksum)
        })
    }

    /// Records that a lane is alive, as [`LaneTracker::arrived`] does, for an owner that delivers
    /// nothing.
    pub(crate) fn touch(&mut self, lane: LaneKey) {
        self.enter(lane);
    }

    /// Records that other readers have settled the chunks of a lane up to this one. Gaps that are
    /// known already remain.
    pub(crate) fn note_settled_before(&mut self, last: ChunkIdentity) {
        let key = LaneKey::from(last);
        if self.lanes.contains_key(&key) {
            self.change(key, |lane, others| {
                if lane.settled_before.ranges() < max_ranges(others, lane.ranges()) {
                    lane.note_settled_before(last.sequence);
                }
            });
        } else if self.settled_before.len() < MAX_LANES {
            let sequence = self.settled_before.entry(key).or_default();
            *sequence = last.sequence.max(*sequence);
        }
    }

    /// Records the losses and the end of a lane from a chunk's header.
    pub fn note_header(&mut self, header: &ChunkHeader) {
        self.change(header.identity.into(), |lane, others| {
            for lost in &header.lost_chunks {
                // The numbers come from outside.
                let end = lost.first_sequence.saturating_add(lost.chunks);
                let has_room = lane.given_up.ranges() < max_ranges(others, lane.ranges());
                if has_room && lost.first_sequence < end {
                    lane.given_up.insert(lost.first_sequence, end - 1);
                }
            }
            lane.complete |= header.last_of_epoch;
            // The counts only grow: of two headers the one with higher counts is the later one.
            if header.losses.total() >= lane.losses.total() {
                lane.losses = header.losses.clone();
            }
        });
    }

    /// Records the verdict on a chunk in work. Returns the deliveries that waited for it, and their
    /// verdicts. Another chunk with the same identity comes again, and is then a conflict.
    pub fn settled(&mut self, identity: ChunkIdentity, verdict: Verdict) -> Vec<(Token, Verdict)> {
        let Some(InWork { checksum, waiting }) = self.in_work.remove(&identity) else {
            return Vec::new();
        };
        self.note(identity, checksum, verdict);
        waiting
            .into_iter()
            .map(|(token, theirs)| {
                if verdict == Verdict::Ack && theirs == checksum {
                    self.duplicates += 1;
                    (token, Verdict::Ack)
                } else {
                    (token, Verdict::Retry)
                }
            })
            .collect()
    }

    /// Records the verdict on a chunk, in work here or elsewhere.
    pub(crate) fn note(&mut self, identity: ChunkIdentity, checksum: u32, verdict: Verdict) {
        let max_checksums = MAX_CHECKSUMS.min(MAX_ALL_CHECKSUMS / self.lanes.len().max(1));
        let sequence = identity.sequence;
        self.change(identity.into(), |lane, others| match verdict {
            Verdict::Ack => {
                lane.acknowledged.insert(sequence, sequence);
                let max = max_ranges(others, lane.ranges());
                while lane.acknowledged.ranges() > max {
                    let forgotten = lane.acknowledged.forget_lowest();
                    // Ranges follow, so this one does not end at the last number.
                    lane.known_from = forgotten.expect("there are ranges") + 1;
                }
                // The first checksum stays: a later chunk with the same identity must not replace
                // it.
                lane.checksums.entry(sequence).or_insert(checksum);
                while lane.checksums.len() > max_checksums {
                    lane.checksums.pop_first();
                }
            }
            Verdict::Reject => {
                if lane.rejected.ranges() < max_ranges(others, lane.ranges()) {
                    lane.rejected.insert(sequence, sequence);
                }
            }
            Verdict::Retry => {}
        });
    }

    /// Returns the number of copies of chunks that this reader had acknowledged before. They were
    /// not processed again.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the number of chunks that came too late to know whether they had been acknowledged.
    /// They were processed.
    pub fn unverifiable(&self) -> u64 {
        self.unverifiable
    }

    /// Returns the number of lanes that were forgotten to stay within the limits. Copies of their
    /// chunks would be processed again.
    pub fn forgotten_lanes(&self) -> u64 {
        self.forgotten_lanes
    }

    /// Returns the number of known lanes.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Returns the number of ended lanes: their producer's last chunk was seen.
    pub fn complete_lanes(&self) -> usize {
        self.lanes.values().filter(|lane| lane.complete).count()
    }

    /// Returns the missing chunks, lane by lane. Chunks that the producer gave up are marked as
    /// explained.
    ///
    /// It is exact if this reader owned the lane for its whole life. With competing readers a gap
    /// here may be another reader's chunk: take the union over the group.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut lanes: Vec<_> = self.lanes.iter().collect();
        lanes.sort_by_key(|(key, _)| **key);
        lanes
            .into_iter()
            .flat_map(|(key, lane)| lane.gaps(*key))
            .collect()
    }

    /// Returns the first acknowledged chunk of each lane that starts in the middle: neither an earlier
    /// reader nor the producer accounts for all chunks before it. They may be lost, or another reader
    /// has them.
    pub fn starts(&self) -> Vec<ChunkIdentity> {
        let start = |(key, lane): (&LaneKey, &Lane)| Some(key.chunk(lane.start()?));
        let mut starts: Vec<_> = self.lanes.iter().filter_map(start).collect();
        starts.sort_by_key(|first| LaneKey::from(*first));
        starts
    }

    /// Returns the records that producers lost before they were sent, by reason, over all their
    /// lives seen here.
    pub fn losses(&self) -> Losses {
        // Each life has its own counters; of a life's lanes, the one with the highest counts
        // applies.
        let mut lives: BTreeMap<(ProducerId, Epoch), &Losses> = BTreeMap::new();
        for (key, lane) in &self.lanes {
            let fullest = lives
                .entry((key.producer, key.epoch))
                .or_insert(&lane.losses);
            if lane.losses.total() > fullest.total() {
                *fullest = &lane.losses;
            }
        }
        let mut all = Losses::default();
        for losses in lives.values() {
            losses
                .iter()
                .for_each(|(code, records)| all.add_code(code, records));
        }
        all
    }

    /// Returns the lane, and creates it if it is new. If there are too many, silent lanes are
    /// forgotten.
    fn enter(&mut self, key: LaneKey) -> &mut Lane {
        self.arrivals += 1;
        if !self.lanes.contains_key(&key) {
            self.make_room();
        }
        if let Some(last) = self.settled_before.remove(&key) {
            self.change(key, |lane, _| lane.note_settled_before(last));
        }
        let lane = self.lanes.entry(key).or_default();
        lane.last_arrival = self.arrivals;
        lane
    }

    /// Changes a lane, and counts its ranges anew. `change` gets the ranges of all other lanes.
    fn change(&mut self, key: LaneKey, change: impl FnOnce(&mut Lane, usize)) {
        let lane = self.lanes.entry(key).or_default();
        let others = self.all_ranges - lane.ranges();
        change(lane, others);
        self.all_ranges = others + lane.ranges();
    }

    fn make_room(&mut self) {
        if self.lanes.len() < MAX_LANES {
            return;
        }
        // Forget a quarter at once, so that the search for silent lanes is rare.
        let mut arrivals: Vec<u64> = self.lanes.values().map(|lane| lane.last_arrival).collect();
        let quarter = MAX_LANES / 4;
        let (_, oldest_kept, _) = arrivals.select_nth_unstable(quarter);
        let oldest_kept = *oldest_kept;
        let before = self.lanes.len();
        self.lanes
            .retain(|_, lane| lane.last_arrival >= oldest_kept);
        self.all_ranges = self.lanes.values().map(Lane::ranges).sum();
        self.forgotten_lanes += (before - self.lanes.len()) as u64;
    }
}

/// Returns the most ranges of a kind for a lane with `own` ranges while all others have `others`.
fn max_ranges(others: usize, own: usize) -> usize {
    let is_crowded = others + own > MAX_ALL_RANGES;
    if is_crowded { FEW_RANGES } else { MAX_RANGES }
}

impl Lane {
    fn earlier_chunk(&self, sequence: u64, checksum: u32) -> EarlierChunk {
        match self.checksums.get(&sequence) {
            Some(settled) if *settled == checksum => EarlierChunk::Same,
            Some(_) => EarlierChunk::Other,
            None => EarlierChunk::Unknown,
        }
    }

    /// Returns the number of its ranges, of all kinds.
    fn ranges(&self) -> usize {
        let kinds = [
            &self.acknowledged,
            &self.settled_before,
            &self.rejected,
            &self.given_up,
        ];
        kinds.into_iter().map(Sequences::ranges).sum()
    }

    /// Records that other readers have settled the chunks up to `last`, after those of this reader.
    fn note_settled_before(&mut self, last: u64) {
        match self.acknowledged.iter().last() {
            None => self.settled_before.insert(0, last),
            Some((_, own)) if own < last => self.settled_before.insert(own + 1, last),
            Some(_) => {}
        }
    }

    /// Returns the chunks that readers have settled.
    fn settled(&self) -> Sequences {
        let mut settled = self.acknowledged.clone();
        for (first, last) in self.settled_before.iter() {
            settled.insert(first, last);
        }
        settled
    }

    /// Returns the first acknowledged chunk if chunks before it are not accounted for.
    fn start(&self) -> Option<u64> {
        let mut known = self.settled();
        let (first, _) = known.iter().next()?;
        let before = first.checked_sub(1)?;
        for kind in [&self.given_up, &self.rejected] {
            for (first, last) in kind.within(0, before) {
                known.insert(first, last);
            }
        }
        let is_known = known
            .iter()
            .next()
            .is_some_and(|it| it.0 == 0 && it.1 >= before);
        // Forgotten chunks were there once.
        (!is_known && self.known_from == 0).then_some(first)
    }

    fn gaps(&self, key: LaneKey) -> Vec<Gap> {
        let gap = |first: u64, last: u64, explained| Gap {
            lane: key,
            first_sequence: first,
            // A gap lies between two chunks, so it does not have all numbers.
            chunks: last - first + 1,
            explained,
        };
        // Missing chunks before the first settled chunk are not a gap: another reader may have had
        // them.
        let mut gaps = Vec::new();
        let settled = self.settled();
        let mut present = settled.clone();
        for (first, last) in settled.gaps() {
            // A chunk that was given up may have arrived nevertheless: only a missing one is
            // explained.
            for (first, last) in self.given_up.within(first, last) {
                gaps.push(gap(first, last, true));
                present.insert(first, last);
            }
            for (first, last) in self.rejected.within(first, last) {
                present.insert(first, last);
            }
        }
        let unexplained = present.gaps().map(|(first, last)| gap(first, last, false));
        gaps.extend(unexplained);
        gaps.sort_by_key(|gap| gap.first_sequence);
        gaps
    }
}

/// A set of sequence numbers, stored as disjoint ranges. It is small while a lane arrives in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sequences {
    /// Maps the first number of a range to its last one. Ranges neither touch nor overlap.
    ranges: BTreeMap<u64, u64>,
}

impl Sequences {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.ranges
            .range(..=number)
            .next_back()
            .is_some_and(|(_, last)| *last >= number)
    }

    /// Adds `first..=last`.
    pub(crate) fn insert(&mut self, mut first: u64, mut last: u64) {
        assert!(first <= last, "a range has a number");
        // Every range that overlaps or touches becomes part of the new one. Nothing can touch the
        // last number from above.
        let reach = last.saturating_add(1);
        while let Some((&from, &to)) = self.ranges.range(..=reach).next_back() {
            if to < first && first - to > 1 {
                break;
            }
            self.ranges.remove(&from);
            first = first.min(from);
            last = last.max(to);
        }
        self.ranges.insert(first, last);
    }

    /// Returns its ranges as first and last number, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(first, last)| (*first, *last))
    }

    /// Returns the number of its ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the gaps between its ranges, as first and last number, in order.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let after = self.ranges.iter().skip(1);
        self.ranges
            .values()
            .zip(after)
            .map(|(last, (next, _))| (last + 1, next - 1))
    }

    /// The parts of its ranges that lie in `first..=last`, in order.
    pub(crate) fn within(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.ranges.range(..first).next_back();
        before
            .into_iter()
            .chain(self.ranges.range(first..=last))
            .map(move |(from, to)| ((*from).max(first), (*to).min(last)))
            .filter(|(from, to)| from <= to)
    }

    /// Forgets the lowest range. Returns its last number.
    pub(crate) fn forget_lowest(&mut self) -> Option<u64> {
        self.ranges.pop_first().map(|(_, last)| last)
    }
}

#[cfg(test)]
mod tests;
