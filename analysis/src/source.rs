//! Drives a reader: decodes, drops duplicates, passes on poison messages, settles after processing.

mod arrival;
mod settling;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{
    ChunkIdentity, ChunkReader, LaneName, Received, Token, TransportError,
};
use baler_connector_file::quarantine::{
    Attempts, ChunkInWork, Discard, Quarantine, QuarantineThread,
};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::error::AnalysisError;
use super::group::{Group, Member};
use super::lanes::LaneTracker;
use super::parcel::{Parcel, Processed};
use super::report::{SourceReport, SourceWatch};
use super::stage::Stage;

/// The most chunks in work: received and not settled.
const DEFAULT_DEMAND: usize = 64;

/// How long to wait after a failure of the medium from which the reader recovers by itself.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

/// How long the end waits for the quarantine. Chunks that it does not have by then are delivered
/// again.
const QUARANTINE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a reader may wait before the source settles chunks that were finished meanwhile: the
/// first time, and at most. A sender with a full window sends nothing until then.
const FIRST_WAIT: Duration = Duration::from_micros(100);
const LONGEST_WAIT: Duration = Duration::from_millis(2);

/// The greatest age of the view for other threads. Making a report costs some microseconds for each
/// lane, so it is not made for every chunk.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// How long [`Source::run`] waits at a time before it checks whether it should stop.
const TICK: Duration = Duration::from_millis(50);

/// Drives any [`ChunkReader`].
///
/// It is the paper's generic reader plugin (Knoche, section 3). One thread owns it; [`crate::Pipe`]
/// moves slow stages to others.
pub struct Source {
    reader: Box<dyn ChunkReader>,
    decoder: ChunkDecoder,
    aside: QuarantineThread,
    lanes: LaneTracker,
    /// Identity and checksum of the chunks in work, by token. Limited by the demand.
    in_work: HashMap<Token, Option<(ChunkIdentity, u32)>>,
    // Also limited by the demand: each delivery sends at most one message.
    done: Sender<Processed>,
    verdicts: Receiver<Processed>,
    demand: usize,
    /// The most chunks in work now: the demand, or one while the medium delivers chunks that may
    /// have crashed a consumer.
    pace: usize,
    /// The number of attempts after which a chunk goes to quarantine.
    max_attempts: Option<NonZeroU32>,
    /// Counts attempts; without it the medium's own count applies.
    in_work_on_disk: Option<ChunkInWork>,
    /// Failed attempts of this process, by identity and checksum.
    failures: HashMap<(ChunkIdentity, u32), Failures>,
    /// Whether a chunk went to quarantine because of the medium's count.
    has_put_suspect_aside: bool,
    /// The wanted logging times, in nanoseconds since the Unix epoch.
    time_span: Option<Range<i64>>,
    idle_timeout: Option<Duration>,
    /// The time of the first step that received nothing since the last activity.
    silent_since: Option<Instant>,
    /// The medium's lanes that this reader owns; `None` before the medium has assigned any.
    assigned: Option<BTreeSet<LaneName>>,
    watch: SourceWatch,
    /// When to update the view.
    watch_due: Instant,
    report: SourceReport,
    /// The other readers of this process, if there are any.
    member: Option<Member>,
}

/// How often a chunk was given back, and the last reason.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Box<str>,
}

/// The result of one step of a source.
#[derive(Debug)]
pub enum Step {
    /// A chunk with records that were not seen before.
    Chunk(Parcel),
    /// Nothing more will arrive.
    End,
    /// Nothing arrived until the deadline, or only a copy or damage.
    Idle,
}

/// When [`Source::run`] stops.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Stop {
    /// Stop when nothing has arrived for this time, neither chunks nor copies nor damage, while the
    /// reader was at the end of its medium ([`ChunkReader::waits_for`]). By default the time of the
    /// source ([`Source::with_idle_timeout`]).
    pub idle_timeout: Option<Duration>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Creates a source that decodes with default limits and discards chunks that do not decode.
    pub fn new(reader: Box<dyn ChunkReader>) -> Self {
        let (done, verdicts) = unbounded();
        let mut source = Self {
            reader,
            decoder: ChunkDecoder::default().with_well_known_types(&WELL_KNOWN_TYPES),
            aside: QuarantineThread::new(Box::new(Discard)),
            lanes: LaneTracker::new(),
            in_work: HashMap::new(),
            done,
            verdicts,
            demand: DEFAULT_DEMAND,
            pace: DEFAULT_DEMAND,
            max_attempts: None,
            in_work_on_disk: None,
            failures: HashMap::new(),
            has_put_suspect_aside: false,
            time_span: None,
            idle_timeout: None,
            silent_since: None,
            assigned: None,
            watch: SourceWatch::default(),
            watch_due: Instant::now(),
            report: SourceReport::default(),
            member: None,
        };
        source.report.reached_end = source.reader.capability().ends.then_some(false);
        source.reader.set_demand(source.demand);
        source
    }

    /// Sets the decoder: its limits and its catalog. The default one knows Kieker's types
    /// ([`WELL_KNOWN_TYPES`]).
    #[must_use]
    pub fn with_decoder(mut self, decoder: ChunkDecoder) -> Self {
        self.decoder = decoder;
        self
    }

    /// Sets the quarantine. A thread of its own passes poison messages to it, in order. The chunk
    /// is settled when it is safe, and [`Step::End`] and [`Source::run`] wait for that.
    #[must_use]
    pub fn with_quarantine(mut self, quarantine: impl Quarantine + 'static) -> Self {
        self.aside = QuarantineThread::new(Box::new(quarantine));
        self
    }

    /// Sets the number of attempts after which a chunk goes to the quarantine instead of the next
    /// stage. `None`, the default, means never.
    ///
    /// Such a chunk crashes its consumer again and again, or the consumer gives it back each time
    /// ([`Parcel::fail_because`]). The source counts chunks that it gives back, but not copies
    /// without an identity. The medium counts attempts that ended in a crash
    /// ([`Delivery::attempts`](baler_common::transport::Delivery::attempts)), or
    /// [`with_attempts`](Self::with_attempts) does. Set it only with a quarantine that keeps the
    /// chunk.
    #[must_use]
    pub fn with_max_attempts(mut self, attempts: Option<NonZeroU32>) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Counts attempts on disk instead of using the medium's count. An attempt is then a death of
    /// the process while this source decoded the chunk, or while its caller processed it before the
    /// next [`step`](Self::step).
    #[must_use]
    pub fn with_attempts(mut self, attempts: &Attempts) -> Self {
        self.in_work_on_disk = Some(attempts.entry());
        self
    }

    /// Passes over chunks without a record that was logged in this span, in nanoseconds since the
    /// Unix epoch; the end is excluded. They are acknowledged and counted
    /// ([`SourceReport::outside_time`]), and not decoded. A chunk that does not tell its times is
    /// passed on, and so are all records of the others: [`ByTime`](crate::filters::ByTime) selects
    /// records.
    #[must_use]
    pub fn with_time_span(mut self, unix_ns: Option<Range<i64>>) -> Self {
        self.time_span = unix_ns;
        self
    }

    /// Sets the most chunks that are received and not settled; default 64, at least 1.
    #[must_use]
    pub fn with_demand(mut self, chunks: usize) -> Self {
        self.demand = chunks.max(1);
        self.pace = self.demand;
        self.reader.set_demand(self.demand);
        self
    }

    /// Sets when [`run`](Self::run) ends and [`is_idle`](Self::is_idle) is true; default never. A
    /// time in [`Stop`] comes first.
    #[must_use]
    pub fn with_idle_timeout(mut self, time: Option<Duration>) -> Self {
        self.idle_timeout = time;
        self
    }

    /// Returns a view of the figures for other threads. It is updated a few times a second while
    /// this thread calls [`step`](Self::step), and once more at the close.
    pub fn watch(&mut self) -> SourceWatch {
        self.watch.show(self.report());
        self.watch.clone()
    }

    /// Makes the source one of a group. The readers of a group share their knowledge of settled chunks.
    ///
    /// A copy of a chunk that another reader of the group has settled is not processed again.
    /// [`Source::run`] then ends when the group is stopped, and its idle timeout counts the group's
    /// silence.
    #[must_use]
    pub fn in_group(mut self, group: &Group) -> Self {
        let view = self.watch();
        self.member = Some(group.join(view));
        self
    }

    /// Settles processed chunks at once. [`step`](Self::step) does so, too.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn settle_processed(&mut self) -> Result<(), AnalysisError> {
        self.settle_done()
    }

    /// Receives and decodes until there is a parcel, the end, or the deadline.
    ///
    /// Settles chunks that were processed meanwhile.
    ///
    /// # Errors
    ///
    /// The medium failed permanently, or the quarantine could not keep a poison message.
    pub fn step(&mut self, by: Instant) -> Result<Step, AnalysisError> {
        self.end_attempt()?;
        self.settle_done()?;
        self.show();
        let received = self.receive(by)?;
        self.note_progress(&received);
        match received {
            Ok(Received::Chunk(delivery)) => self.arrived(delivery),
            Ok(Received::Damaged(damaged)) => {
                self.damaged(damaged);
                Ok(Step::Idle)
            }
            Ok(Received::End) => {
                self.report.reached_end = Some(true);
                self.settle_aside(Instant::now() + QUARANTINE_PATIENCE)?;
                Ok(Step::End)
            }
            Ok(Received::Idle) => Ok(Step::Idle),
            Ok(Received::Assigned { lanes, settled }) => {
                for last in settled {
                    self.lanes.note_settled_before(last);
                    if let Some(member) = &self.member {
                        member.note_settled_before(last);
                    }
                }
                self.assigned.get_or_insert_default().extend(lanes);
                Ok(Step::Idle)
            }
            // Chunks of a revoked lane that are in work are settled or become stale: nothing is
            // lost.
            Ok(Received::Revoked { lanes, .. }) => {
                let assigned = self.assigned.get_or_insert_default();
                assigned.retain(|lane| !lanes.contains(lane));
                Ok(Step::Idle)
            }
            Err(error) => {
                self.recoverable(error)?;
                // A reader may fail at once, again and again: do not spin.
                if let Ok(processed) = self.verdicts.recv_timeout(PAUSE_AFTER_ERROR) {
                    self.processed(processed)?;
                }
                Ok(Step::Idle)
            }
        }
    }

    /// Waits for the reader, and meanwhile settles the chunks that stages and quarantine finish.
    fn receive(&mut self, by: Instant) -> Result<Result<Received, TransportError>, AnalysisError> {
        let mut wait = FIRST_WAIT;
        loop {
            let now = Instant::now();
            let others_work = self.aside.is_waiting() || !self.in_work.is_empty();
            let until = if others_work { by.min(now + wait) } else { by };
            let received = self.reader.receive(until);
            let idle = matches!(received, Ok(Received::Idle));
            // A reader that does not wait is not called again and again.
            if !idle || until >= by || Instant::now() < until {
                return Ok(received);
            }
            self.settle_done()?;
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }

    /// Feeds a stage until the end, the idle timeout, or until `keep_going` returns `false`. Then
    /// finishes the stage and settles the chunks that it processed.
    ///
    /// # Errors
    ///
    /// The first error of the medium, the quarantine or a stage. Unprocessed chunks are given back.
    pub fn run(
        &mut self,
        stage: &mut dyn Stage,
        stop: Stop,
        mut keep_going: impl FnMut(&SourceReport) -> bool,
    ) -> Result<(), AnalysisError> {
        let mut dirty = false;
        while keep_going(&self.report) && !self.is_stopped() {
            if !stage.ready(Instant::now() + TICK)? {
                self.settle_done()?;
                self.show();
                continue;
            }
            match self.step(Instant::now() + TICK)? {
                Step::Chunk(parcel) => {
                    dirty = true;
                    let receipt = parcel.without_records();
                    if let Err(error) = stage.accept(parcel) {
                        receipt.fail();
                        drop(receipt);
                        self.settle_done()?;
                        return Err(error);
                    }
                    self.heard();
                }
                Step::End => break,
                Step::Idle if dirty => {
                    // A stage that holds parcels until it flushes would starve the reader. Nothing
                    // was received while it flushed, so that time does not count as silence.
                    dirty = stage.idle()?;
                    if !dirty {
                        self.heard();
                    }
                }
                Step::Idle if self.is_silent_for(stop.idle_timeout.or(self.idle_timeout)) => break,
                Step::Idle => {}
            }
            if self.in_work.len() >= self.pace && self.verdicts.is_empty() {
                stage.flush()?;
            }
        }
        stage.finish()?;
        self.settle_aside(Instant::now() + QUARANTINE_PATIENCE)?;
        self.settle_done()
    }

    /// Whether nothing has arrived for the idle timeout, neither chunks nor copies nor damage, while
    /// the reader was at the end of its medium ([`ChunkReader::waits_for`]). In a group all of its
    /// readers count.
    pub fn is_idle(&self) -> bool {
        self.is_silent_for(self.idle_timeout)
    }

    fn is_silent_for(&self, timeout: Option<Duration>) -> bool {
        let Some((timeout, since)) = timeout.zip(self.silent_since) else {
            return false;
        };
        let member = self.member.as_ref();
        let silence = member.map_or_else(|| since.elapsed(), |member| member.group.idle());
        silence >= timeout
    }

    /// The figures so far.
    pub fn report(&self) -> SourceReport {
        let mut report = self.report.clone();
        report.duplicates = self.lanes.duplicates();
        report.unverifiable = self.lanes.unverifiable();
        report.lanes = self.lanes.lanes();
        report.complete_lanes = self.lanes.complete_lanes();
        report.gaps = self.lanes.gaps();
        report.starts = self.lanes.starts();
        report.producer_losses = self.lanes.losses();
        report.in_work = self.in_work.len();
        report.assigned = self.assigned.as_ref().map(BTreeSet::len);
        report.reader = self.reader.stats();
        report
    }

    /// Settles processed chunks, gives back the rest, and ends the reader before `by`.
    ///
    /// # Errors
    ///
    /// The medium failed while it was closed; unsettled chunks will come again.
    pub fn close(mut self, by: Instant) -> Result<SourceReport, AnalysisError> {
        let settled = self.settle_aside(by).and_then(|()| self.settle_done());
        // Chunks that are still in work go back, for example chunks of a stage that did not end.
        self.report.given_back += self.in_work.len() as u64;
        self.in_work.clear();
        let mut report = self.report();
        self.watch.show(report.clone());
        if let Some(member) = &self.member {
            member.leave();
        }
        let closed = self.reader.close(by);
        if closed.unreported > 0 {
            report.reader.unreported += closed.unreported;
            self.watch.show(report.clone());
        }
        settled?;
        match closed.error {
            Some(error) => Err(error.into()),
            None => Ok(report),
        }
    }

    /// Updates the view for other threads, if there is one and it is due.
    fn show(&mut self) {
        if self.watch.is_watched() && Instant::now() >= self.watch_due {
            self.watch.show(self.report());
            self.watch_due = Instant::now() + WATCH_INTERVAL;
        }
    }

    /// Records whether the medium should make progress. If that changes, the view for other threads
    /// follows at once: no thread may give the medium up because of an old figure.
    fn note_progress(&mut self, received: &Result<Received, TransportError>) {
        let has_room = self.in_work.len() < self.pace;
        let waited = self.is_waiting();
        let waits_for = || self.reader.waits_for().filter(|_| has_room);
        let waiting = &mut self.report.waiting;
        waiting.received(received, waits_for, Instant::now);
        if matches!(received, Ok(Received::Chunk(_) | Received::Damaged(_))) {
            self.heard();
        } else if waited || self.is_waiting() {
            // Silence counts from the end of the medium.
            self.silent_since = None;
            self.member.iter().for_each(|member| member.group.waits());
        } else {
            self.silent_since.get_or_insert_with(Instant::now);
        }
        if waited != self.is_waiting() {
            self.watch_due = Instant::now();
            self.show();
        }
    }

    /// Whether the group was asked to end.
    fn is_stopped(&self) -> bool {
        let member = self.member.as_ref();
        member.is_some_and(|member| member.group.is_stopped())
    }

    /// Whether the reader is not at the end of its medium.
    fn is_waiting(&self) -> bool {
        self.report.waiting.since().is_some()
    }

    /// Records that something arrived or was processed.
    fn heard(&mut self) {
        self.silent_since = None;
        self.member.iter().for_each(|member| member.group.heard());
    }
}
