//! The collector's thread: its loop, its waiting, flushes and the end of the epoch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
#[cfg(feature = "sampling")]
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkSerializer;
use baler_common::number::to_u64;
use baler_common::transport::{ChunkIdentity, Outbox};

use super::calls::CallConverter;
use super::closing::{BURST_MARGIN, ClosedBy, ClosingRule, MIN_POLL_RECORDS};
use super::controller_state::ControllerState;
use super::dispatch::Dispatch;
use super::encoder::Encoder;
use super::event::{Event, Hooks};
use super::flush::{Flush, FlushStage};
use super::lanes::{LaneBatch, LaneRouter};
use super::queue_reader::QueueReader;
use super::tuning::{Rate, Tuner, Tuning, as_f64};
use crate::adaptive::Upkeep;
use crate::clock::{monotonic, time_left};
use crate::controller::{Settings, WAIT_TIME, refresh_active};
use crate::queue::suppress;
#[cfg(feature = "sampling")]
use crate::sampling::thread_cpu_ns;

/// A round is interrupted after this time, so that a large backlog does not delay orders.
pub(super) const LONGEST_STEP: Duration = Duration::from_millis(50);

/// Chunks that are made within this time go to the writer together. The writer is woken once for
/// them, and the delay is not noticeable.
pub(super) const SEND_EVERY: Duration = Duration::from_micros(200);

/// The parameters of a new collector.
pub(crate) struct CollectorConfig {
    pub(crate) serializer: Box<dyn ChunkSerializer>,
    /// The identity of the first chunk of the first lane.
    pub(crate) identity: ChunkIdentity,
    pub(crate) settings: Settings,
    /// The limits within which the collector chooses size and wait time itself.
    pub(crate) tuning: Option<Tuning>,
    pub(crate) hooks: Hooks,
    pub(crate) upkeep: Upkeep,
}

/// Starts the collector's thread.
///
/// # Errors
///
/// The operating system's, when it has no thread left.
pub(crate) fn spawn(
    shared: Arc<ControllerState>,
    outbox: Outbox,
    config: CollectorConfig,
) -> std::io::Result<()> {
    let settings = config.settings;
    let encoder = Encoder::new(config.serializer, config.identity, settings.lanes);
    let dispatch = Dispatch::new(
        Arc::clone(&shared),
        outbox,
        encoder,
        settings.max_chunk_bytes,
        config.hooks,
    );
    let mut rule = ClosingRule::new(
        settings.chunk_records,
        settings.chunk_bytes,
        settings.wait_time.unwrap_or(WAIT_TIME),
    );
    // With a budget, the rows in batches count as well.
    if settings.memory.is_some() {
        rule = rule.within_budget();
    }
    let tuner = config.tuning.map(|tuning| Tuner::new(tuning, monotonic()));
    let (records, wait) = tuner.as_ref().map_or((rule.records, rule.wait), |tuner| {
        (tuner.choice().expected, tuner.choice().wait)
    });
    shared.ledger.chosen(records, wait);
    let mut collector = Collector {
        dispatch,
        queues: QueueReader::new(Arc::clone(&shared.queues)),
        calls: CallConverter::new(shared.queues.key(), shared.hostname),
        router: LaneRouter::new(settings.lanes),
        lanes: (0..settings.lanes.max(1))
            .map(|_| LaneBatch::default())
            .collect(),
        rule,
        tuner,
        drained_at: monotonic(),
        round_began: monotonic(),
        in_round: false,
        step_began: monotonic(),
        sent_at: monotonic(),
        closed: 0,
        rate: Rate::new(monotonic()),
        flushes: Vec::new(),
        stop: None,
        upkeep: config.upkeep,
        aggregation: Aggregation {
            interval: settings.aggregation_interval,
            taken: monotonic(),
        },
        shared,
    };
    collector.tune();
    // Detached: a writer that hangs must not make any other thread wait for this one.
    thread::Builder::new()
        .name("baler-collector".into())
        .spawn(move || collector.run())
        .map(drop)
}

pub(super) struct Collector {
    pub(super) shared: Arc<ControllerState>,
    pub(super) dispatch: Dispatch,
    pub(super) queues: QueueReader,
    pub(super) calls: CallConverter,
    pub(super) router: LaneRouter,
    pub(super) lanes: Vec<LaneBatch>,
    pub(super) rule: ClosingRule,
    /// Present if the collector chooses the rule itself.
    pub(super) tuner: Option<Tuner>,
    /// When the previous round began. Rows that this round finds were emitted later.
    pub(super) drained_at: Instant,
    /// When this round began.
    pub(super) round_began: Instant,
    /// Whether the round was interrupted.
    pub(super) in_round: bool,
    /// When the thread last read orders.
    pub(super) step_began: Instant,
    /// When the writer was last given chunks.
    pub(super) sent_at: Instant,
    /// Records that left their batch, whatever their fate.
    pub(super) closed: u64,
    /// The rate of records.
    pub(super) rate: Rate,
    pub(super) flushes: Vec<Flush>,
    /// The deadline of the shutdown, once it was ordered.
    pub(super) stop: Option<Instant>,
    pub(super) upkeep: Upkeep,
    pub(super) aggregation: Aggregation,
}

/// When to record the totals of aggregated calls.
pub(super) struct Aggregation {
    interval: Duration,
    /// When the totals were last recorded.
    taken: Instant,
}

/// How a round over the queues ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// It found no rows.
    Empty,
    /// It took all rows.
    Found,
    /// The outbox is full, or orders are waiting; the round continues later.
    Interrupted,
}

/// The next action of the thread.
enum Next {
    Wait(Duration),
    End,
}

impl Collector {
    fn run(mut self) {
        // Records that a writer or serializer emits on this thread would come back to it.
        let _suppressed = suppress();
        let _ended = EndGuard(Arc::clone(&self.shared));
        self.shared.waker.set_thread(thread::current());
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.step())) {
                Ok(Next::Wait(time)) => thread::park_timeout(time),
                Ok(Next::End) => break,
                Err(_) => {
                    self.recover();
                    thread::park_timeout(self.rule.tick());
                }
            }
        }
        self.dispatch.finish(self.stop.unwrap_or_else(monotonic));
    }

    fn step(&mut self) -> Next {
        let now = monotonic();
        self.step_began = now;
        self.sent_at = now;
        let (flushes, stop) = self.shared.take_orders();
        self.stop = stop;
        self.take_aggregates(now, !flushes.is_empty());
        for order in flushes {
            let positions = self.queues.positions();
            self.flushes.push(Flush {
                order,
                lost_before: self.shared.ledger.losses().total(),
                stage: FlushStage::Draining(positions),
            });
        }
        let adapt_at = self.adapt(now);
        let mut made = self.dispatch.encoder.next_ticket();
        let mut wake_up = self.dispatch.drive(now, self.stop);
        let round = self.collect(now);
        self.close_if_old(now);
        self.tune();
        self.advance_flushes();
        if self.stop.is_some() && round == Round::Empty {
            self.close_epoch();
        }
        // Repeat while there are new chunks: the medium may find a chunk too large, which then
        // becomes several smaller ones.
        while self.dispatch.encoder.next_ticket() != made {
            made = self.dispatch.encoder.next_ticket();
            wake_up = self.dispatch.drive(now, self.stop);
            self.advance_flushes();
        }
        #[cfg(feature = "sampling")]
        self.shared
            .collector_ns
            .store(thread_cpu_ns(), Ordering::Relaxed);
        self.dispatch.outbox.set_awaited(self.awaits_fates());
        if let Some(by) = self.stop {
            let done = self.dispatch.sent_last && self.dispatch.outbox.is_empty();
            if done || by <= monotonic() {
                return Next::End;
            }
            if round == Round::Found || self.dispatch.outbox.is_empty() {
                return Next::Wait(Duration::ZERO);
            }
        }
        if round == Round::Interrupted && self.dispatch.outbox.has_room() {
            return Next::Wait(Duration::ZERO);
        }
        self.wait(wake_up.into_iter().chain(adapt_at).min())
    }

    /// Whether a caller waits for confirmations. Otherwise a writer need not wake the thread for
    /// them, which costs as much as a hundred records: the thread wakes soon anyway.
    fn awaits_fates(&self) -> bool {
        self.stop.is_some() || !self.flushes.is_empty()
    }

    /// Records the totals of aggregated calls: at each interval, at a flush and at the end.
    fn take_aggregates(&mut self, now: Instant, is_flush: bool) {
        let since = now.duration_since(self.aggregation.taken);
        let is_end = self.stop.is_some() && !self.dispatch.sent_last;
        // Not while a round is interrupted for lack of room: the records would only pile up.
        if is_flush || is_end || (since >= self.aggregation.interval && !self.in_round) {
            self.calls.refresh(now);
            self.calls.queue_aggregates(&self.shared.queues);
            self.aggregation.taken = now;
        }
    }

    /// Updates the patterns and reports news; returns when to do so again at the latest.
    fn adapt(&mut self, now: Instant) -> Option<Instant> {
        let tick = self.upkeep.tick(now);
        #[cfg(feature = "samplers")]
        for event in self.shared.take_notices() {
            self.dispatch.hooks.report(&event);
        }
        for news in self.upkeep.take_news() {
            self.dispatch.hooks.report(&Event::Patterns(news));
        }
        if tick.is_changed {
            refresh_active(&self.shared);
        }
        tick.next
    }

    /// Returns how long to wait if nothing wakes the thread.
    fn wait(&self, wake_up: Option<Instant>) -> Next {
        let now = monotonic();
        let has_room = self.dispatch.outbox.has_room();
        let tick = match &self.tuner {
            // Without room, the writer will notify. The poll guards against a writer that forgets
            // to.
            _ if !has_room => now.checked_add(self.rule.longest_tick()),
            // Counted from the last poll, not from now; otherwise a record just after that poll
            // would be late.
            Some(tuner) => self.drained_at.checked_add(tuner.choice().poll_interval),
            None => now.checked_add(self.next_poll(now)),
        };
        let oldest = self.lanes.iter().filter_map(|lane| lane.oldest).min();
        let age = oldest
            .filter(|_| has_room)
            .and_then(|oldest| self.rule.closes_at(oldest));
        let next = [wake_up, self.stop, tick, age].into_iter().flatten().min();
        Next::Wait(next.map_or(self.rule.wait, time_left))
    }

    /// Returns when to poll for the next full chunk. Threads do not wake the collector when they
    /// have emitted enough records for a chunk.
    fn next_poll(&self, now: Instant) -> Duration {
        let lanes = self.lanes.iter();
        let lacks = lanes.map(|lane| self.rule.left(lane.builder.len(), 0).0);
        // Each of several lanes gets its part of the records.
        let lacks = as_f64(lacks.min().unwrap_or(1)) * as_f64(self.lanes.len());
        let lacks = lacks + as_f64(self.rule.records / BURST_MARGIN);
        let since = now.duration_since(self.drained_at);
        let full = self.rate.time_for(lacks).saturating_sub(since);
        let worthwhile = self.rate.time_for(MIN_POLL_RECORDS);
        self.rule.poll_interval(full, worthwhile)
    }

    /// Advances flushes, and ends the flushes whose chunks have their fates.
    pub(super) fn advance_flushes(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let mut flushes = std::mem::take(&mut self.flushes);
        for flush in &mut flushes {
            if let FlushStage::Draining(positions) = &flush.stage {
                if self.queues.has_passed(positions) && self.dispatch.outbox.has_room() {
                    self.close_all(ClosedBy::Flush);
                    flush.stage = FlushStage::Confirming(self.dispatch.encoder.next_ticket());
                }
            }
        }
        flushes.retain(|flush| match flush.stage {
            FlushStage::Confirming(below) if self.dispatch.has_settled(below) => {
                let lost = self.shared.ledger.losses().total();
                flush.order.end(lost - flush.lost_before);
                false
            }
            // An outage may last longer than the caller waits.
            _ => !flush.order.is_abandoned(),
        });
        self.flushes = flushes;
    }

    /// Sends the epoch's last chunk, after all earlier ones have their fates and its losses are
    /// complete.
    pub(super) fn close_epoch(&mut self) {
        if self.dispatch.sent_last {
            return;
        }
        if !self.dispatch.outbox.is_empty() {
            // Only the last chunk must wait for the confirmations; the records need not.
            if self.dispatch.outbox.has_room() {
                self.close_all(ClosedBy::Flush);
            }
            return;
        }
        if self.lanes.len() == 1 {
            self.close(0, ClosedBy::Flush, true);
        } else if self.batched() > 0 {
            // The last chunk of each lane must report the losses of all other lanes.
            self.close_all(ClosedBy::Flush);
            return;
        }
        self.dispatch.ship_last();
    }

    /// Continues after a panic in the collector itself.
    fn recover(&mut self) {
        let records = to_u64(self.batched());
        self.lanes.fill_with(LaneBatch::default);
        self.dispatch.panicked("the collector", records);
    }
}

/// Releases all waiting callers when the collector ends, however it ends.
struct EndGuard(Arc<ControllerState>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.collector_ended();
    }
}
