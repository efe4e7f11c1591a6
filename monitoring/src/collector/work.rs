//! The collector's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkSerializer, LossReason};
use baler_common::record::{PushError, Schema};
use baler_common::transport::{ChunkIdentity, Outbox};
use bytes::Bytes;

use super::batch::{ClosedBy, ClosingRule};
use super::dispatch::{Dispatch, count};
use super::drain::Drain;
use super::encoder::{Encoder, Problem};
use super::event::{Hooks, Quarantined};
use super::flush::{Flush, FlushEnd, FlushStage};
use super::lanes::{Dealer, Lane};
use super::shared::Shared;
use crate::clock::monotonic;
use crate::queue::{Row, suppress};

/// After so long a round is interrupted, so that orders are not kept waiting by a large backlog.
const LONGEST_STEP: Duration = Duration::from_millis(50);

/// What a collector needs to begin.
pub(crate) struct Plan {
    pub(crate) serializer: Box<dyn ChunkSerializer>,
    /// Of the first chunk of the first lane.
    pub(crate) identity: ChunkIdentity,
    pub(crate) lanes: usize,
    /// Whether rows being batched count towards a memory budget.
    pub(crate) budgeted: bool,
    pub(crate) chunk_records: usize,
    pub(crate) chunk_bytes: usize,
    pub(crate) max_chunk_bytes: usize,
    pub(crate) wait_time: Duration,
    pub(crate) hooks: Hooks,
}

/// Starts the collector's thread.
///
/// # Errors
///
/// The operating system's, when it has no thread left.
pub(crate) fn spawn(shared: Arc<Shared>, outbox: Outbox, plan: Plan) -> std::io::Result<()> {
    let encoder = Encoder::new(plan.serializer, plan.identity, plan.lanes);
    let dispatch = Dispatch::new(
        Arc::clone(&shared),
        outbox,
        encoder,
        plan.max_chunk_bytes,
        plan.hooks,
    );
    let mut rule = ClosingRule::new(plan.chunk_records, plan.chunk_bytes, plan.wait_time);
    if plan.budgeted {
        rule = rule.within_budget();
    }
    let collector = Collector {
        dispatch,
        drain: Drain::new(Arc::clone(&shared.queues)),
        dealer: Dealer::new(plan.lanes),
        lanes: (0..plan.lanes.max(1)).map(|_| Lane::default()).collect(),
        rule,
        drained_at: monotonic(),
        round_began: monotonic(),
        in_round: false,
        step_began: monotonic(),
        idle_ticks: 0,
        flushes: Vec::new(),
        stop: None,
        shared,
    };
    // Detached: a writer that hangs must not keep anyone waiting for the thread.
    thread::Builder::new()
        .name("baler-collector".into())
        .spawn(move || collector.run())
        .map(drop)
}

struct Collector {
    shared: Arc<Shared>,
    dispatch: Dispatch,
    drain: Drain,
    dealer: Dealer,
    lanes: Vec<Lane>,
    rule: ClosingRule,
    /// When the round before began: what this round finds was emitted later.
    drained_at: Instant,
    /// When this round began.
    round_began: Instant,
    /// Whether the round was interrupted.
    in_round: bool,
    /// When the thread last looked at orders.
    step_began: Instant,
    /// Rounds in a row that found nothing.
    idle_ticks: u32,
    flushes: Vec<Flush>,
    /// When to be done at the latest, once that was ordered.
    stop: Option<Instant>,
}

/// How a round over the queues ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// It found nothing.
    Empty,
    /// It took what there was.
    Found,
    /// The outbox is full, or there are orders to look at; it goes on later.
    Interrupted,
}

/// What the thread does next.
enum Next {
    Wait(Duration),
    End,
}

impl Collector {
    fn run(mut self) {
        // What a writer or serializer emits on this thread would come back to it.
        let _suppressed = suppress();
        let _ended = EndGuard(Arc::clone(&self.shared));
        self.shared.waker.set_thread(thread::current());
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.step())) {
                Ok(Next::Wait(time)) => thread::park_timeout(time),
                Ok(Next::End) => break,
                Err(_) => {
                    self.recover();
                    thread::park_timeout(self.rule.tick(0));
                }
            }
        }
        self.dispatch.finish(self.stop.unwrap_or_else(monotonic));
    }

    fn step(&mut self) -> Next {
        let now = monotonic();
        self.step_began = now;
        let (flushes, stop) = self.shared.take_orders();
        self.stop = stop;
        for order in flushes {
            let marks = self.drain.marks();
            self.flushes.push(Flush {
                order,
                lost_before: self.shared.ledger.losses().total(),
                stage: FlushStage::Draining(marks),
            });
        }
        let mut made = self.dispatch.next_ticket();
        let mut wake_up = self.dispatch.drive(now, self.stop);
        let round = self.collect(now);
        self.close_if_old(now);
        self.advance_flushes();
        if self.stop.is_some() && round == Round::Empty {
            self.close_epoch();
        }
        // As long as there are new ones: a chunk that the medium finds too large comes back as
        // several smaller ones.
        while self.dispatch.next_ticket() != made {
            made = self.dispatch.next_ticket();
            wake_up = self.dispatch.drive(now, self.stop);
            self.advance_flushes();
        }
        if let Some(by) = self.stop {
            let done = self.dispatch.has_sent_last() && self.dispatch.is_empty();
            if done || by <= monotonic() {
                return Next::End;
            }
            if round == Round::Found || self.dispatch.is_empty() {
                return Next::Wait(Duration::ZERO);
            }
        }
        if round == Round::Interrupted && self.dispatch.has_room() {
            return Next::Wait(Duration::ZERO);
        }
        self.wait(wake_up)
    }

    /// How long to wait when nothing wakes the thread.
    fn wait(&self, wake_up: Option<Instant>) -> Next {
        let now = monotonic();
        let has_room = self.dispatch.has_room();
        // Without room the writer will tell; looking in between guards against one that forgets.
        let idle_ticks = if has_room { self.idle_ticks } else { u32::MAX };
        let tick = now.checked_add(self.rule.tick(idle_ticks));
        let oldest = self.lanes.iter().filter_map(|lane| lane.oldest).min();
        let age = oldest
            .filter(|_| has_room)
            .and_then(|oldest| self.rule.closes_at(oldest));
        let next = [wake_up, self.stop, tick, age].into_iter().flatten().min();
        Next::Wait(next.map_or(self.rule.wait, |time| time.saturating_duration_since(now)))
    }

    /// Fills batches from the queues and closes full ones, as long as the outbox has room.
    fn collect(&mut self, now: Instant) -> Round {
        for lane in 0..self.lanes.len() {
            if !self.close_if_full(lane) {
                return Round::Interrupted;
            }
        }
        let mut found = self.in_round;
        if !self.in_round {
            self.drain.start_round();
            self.round_began = now;
        }
        loop {
            let (dealer, lanes, drained_at) = (&mut self.dealer, &mut self.lanes, self.drained_at);
            let pushed = self.drain.next_row(|row| {
                let number = dealer.lane_of(&row);
                let Some(lane) = lanes.get_mut(number) else {
                    return (number, Ok(()));
                };
                lane.oldest.get_or_insert(drained_at);
                let pushed = lane
                    .builder
                    .push_row(row.schema, row.timestamp, row.fields)
                    .map_err(|error| RefusedRow::new(&row, error));
                if pushed.is_ok() {
                    lane.batched = lane.batched.saturating_add(1);
                }
                (number, pushed)
            });
            let Some((lane, pushed)) = pushed else {
                break;
            };
            if let Err(refused) = pushed {
                self.refuse_row(lane, refused);
            }
            found = true;
            if !self.close_if_full(lane) {
                self.in_round = true;
                self.idle_ticks = 0;
                return Round::Interrupted;
            }
        }
        self.in_round = false;
        self.drained_at = self.round_began;
        if found {
            self.idle_ticks = 0;
            Round::Found
        } else {
            self.idle_ticks = self.idle_ticks.saturating_add(1);
            Round::Empty
        }
    }

    /// Closes a lane's batch if it is full; `false` when the round has to be interrupted.
    fn close_if_full(&mut self, lane: usize) -> bool {
        let batch = self.lanes.get(lane);
        let full = batch.and_then(|it| self.rule.full(it.batched, it.builder.estimated_bytes()));
        match full {
            Some(reason) if self.dispatch.has_room() => {
                self.close(lane, reason, false);
                // Gives the writer its work while the next batch is filled.
                let now = monotonic();
                self.dispatch.drive(now, self.stop);
                let took = now.saturating_duration_since(self.step_began);
                self.dispatch.has_room() && took < LONGEST_STEP
            }
            Some(_) => false,
            None => self.dispatch.has_room(),
        }
    }

    fn close_if_old(&mut self, now: Instant) {
        for lane in 0..self.lanes.len() {
            let oldest = self.lanes.get(lane).and_then(|lane| lane.oldest);
            let due = oldest.and_then(|oldest| self.rule.closes_at(oldest));
            if due.is_some_and(|due| due <= now) && self.dispatch.has_room() {
                self.close(lane, ClosedBy::Age, false);
            }
        }
    }

    /// Makes a chunk, or several, of what was batched in a lane.
    fn close(&mut self, number: usize, reason: ClosedBy, last: bool) {
        let Some(lane) = self.lanes.get_mut(number) else {
            return;
        };
        // A row that was refused leaves its age without a record.
        lane.oldest = None;
        if std::mem::take(&mut lane.batched) == 0 {
            return;
        }
        let row_bytes = lane.builder.estimated_bytes();
        self.shared.ledger.closed(reason, row_bytes);
        match self.dispatch.ship(number, lane.builder.batch(), last) {
            Ok(bytes) => {
                lane.builder.clear();
                self.rule.learn(row_bytes, bytes);
            }
            Err(problem) => {
                let batch = lane.builder.take();
                if let Problem::TooLarge { bytes, .. } = problem {
                    self.rule.learn(row_bytes, bytes);
                }
                self.dispatch.take_apart(number, batch, problem, last);
            }
        }
    }

    fn close_all(&mut self, reason: ClosedBy) {
        (0..self.lanes.len()).for_each(|lane| self.close(lane, reason, false));
    }

    /// Does what can be done with a row that the batch did not take.
    fn refuse_row(&mut self, lane: usize, refused: RefusedRow) {
        let RefusedRow {
            schema,
            timestamp,
            fields,
            error,
        } = refused;
        let mut error = error;
        let holds_some = |lane: &Lane| lane.batched > 0;
        if error == PushError::Full && self.lanes.get(lane).is_some_and(holds_some) {
            // Four gigabytes or values: any sensible threshold closes far earlier.
            self.close(lane, ClosedBy::Bytes, false);
            if let Some(lane) = self.lanes.get_mut(lane) {
                match lane.builder.push_row(&schema, timestamp, &fields) {
                    Ok(()) => {
                        lane.batched = 1;
                        lane.oldest = Some(self.drained_at);
                        return;
                    }
                    Err(again) => error = again,
                }
            }
        }
        self.dispatch.quarantine(Quarantined {
            record: schema.name().into(),
            records: 1,
            reason: match error {
                PushError::Full => LossReason::TooLarge,
                _ => LossReason::NotEncodable,
            },
            size_bytes: fields.len(),
            limit_bytes: self.dispatch.limit(),
            chunk: Bytes::new(),
        });
    }

    /// Moves flushes on, and ends those whose chunks have their fates.
    fn advance_flushes(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let mut flushes = std::mem::take(&mut self.flushes);
        for flush in &mut flushes {
            if let FlushStage::Draining(marks) = &flush.stage
                && self.drain.has_passed(marks)
                && self.dispatch.has_room()
            {
                self.close_all(ClosedBy::Flush);
                flush.stage = FlushStage::Confirming(self.dispatch.next_ticket());
            }
        }
        flushes.retain(|flush| match flush.stage {
            FlushStage::Confirming(below) if self.dispatch.has_settled(below) => {
                let lost = self.shared.ledger.losses().total();
                let lost = lost.saturating_sub(flush.lost_before);
                flush.order.end(FlushEnd { lost });
                false
            }
            // An outage may last longer than the patience of many who ask.
            _ => !flush.order.is_abandoned(),
        });
        self.flushes = flushes;
    }

    /// Sends the epoch's last chunk, once all before it have their fates and its losses are
    /// complete.
    fn close_epoch(&mut self) {
        if self.dispatch.has_sent_last() {
            return;
        }
        if !self.dispatch.is_empty() {
            // The records need not wait for the confirmations that their account waits for.
            if self.dispatch.has_room() {
                self.close_all(ClosedBy::Flush);
            }
            return;
        }
        if self.lanes.len() == 1 {
            self.close(0, ClosedBy::Flush, true);
        } else if self.lanes.iter().any(|lane| lane.batched > 0) {
            // What is lost of one lane must stand in the last chunk of every other.
            self.close_all(ClosedBy::Flush);
            return;
        }
        self.dispatch.ship_last();
    }

    /// Goes on after a panic in the collector itself.
    fn recover(&mut self) {
        let batched = self.lanes.iter().map(|lane| lane.batched).sum();
        let records = count(batched);
        self.lanes.fill_with(Lane::default);
        self.dispatch.panicked("the collector", records);
    }
}

/// A row that the batch did not take; copied, because that is rare.
struct RefusedRow {
    schema: Arc<Schema>,
    timestamp: i64,
    fields: Vec<u8>,
    error: PushError,
}

impl RefusedRow {
    fn new(row: &Row<'_>, error: PushError) -> Self {
        Self {
            schema: Arc::clone(row.schema),
            timestamp: row.timestamp,
            fields: row.fields.to_vec(),
            error,
        }
    }
}

/// Lets nobody wait for a collector that has ended, however it ended.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.collector_ended();
    }
}
