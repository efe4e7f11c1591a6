//! The collector's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkDecoder, ChunkSerializer, LossReason, Losses};
use baler_common::record::{BatchBuilder, PushError, RecordBatch};
use baler_common::transport::{Chunk, ChunkIdentity, Connection, ContainerKind, End, Fate, Outbox};
use bytes::Bytes;

use super::batch::{ClosedBy, ClosingRule};
use super::drain::{Drain, Marks};
use super::encoder::{Encoder, Problem};
use super::event::{Event, Hooks, Quarantined};
use super::shared::{FlushEnd, Shared};
use super::split::{apart, halves};
use crate::clock::monotonic;
use crate::queue::{Row, suppress};

/// What a collector needs to begin.
pub(crate) struct Plan {
    pub(crate) serializer: Box<dyn ChunkSerializer>,
    pub(crate) identity: ChunkIdentity,
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
    let collector = Collector {
        outbox,
        drain: Drain::new(Arc::clone(&shared.queues)),
        builder: BatchBuilder::new(),
        batched: 0,
        rule: ClosingRule::new(plan.chunk_records, plan.chunk_bytes, plan.wait_time),
        encoder: Encoder::new(plan.serializer, plan.identity),
        max_chunk_bytes: plan.max_chunk_bytes,
        hooks: plan.hooks,
        oldest: None,
        drained_at: monotonic(),
        round_began: monotonic(),
        in_round: false,
        idle_ticks: 0,
        flushes: Vec::new(),
        stop: None,
        sent_last: false,
        fates: Vec::new(),
        seen: Seen::default(),
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
    outbox: Outbox,
    drain: Drain,
    builder: BatchBuilder,
    /// Records in the builder.
    batched: usize,
    rule: ClosingRule,
    encoder: Encoder,
    max_chunk_bytes: usize,
    hooks: Hooks,
    /// When the oldest record in the builder was emitted at the earliest.
    oldest: Option<Instant>,
    /// When the round before began: what this round finds was emitted later.
    drained_at: Instant,
    /// When this round began.
    round_began: Instant,
    /// Whether the round was interrupted because the outbox was full.
    in_round: bool,
    /// Rounds in a row that found nothing.
    idle_ticks: u32,
    flushes: Vec<Flush>,
    stop: Option<Instant>,
    /// Whether a chunk with the flag was made.
    sent_last: bool,
    fates: Vec<Fate>,
    seen: Seen,
}

/// A flush on its way.
struct Flush {
    done: SyncSender<FlushEnd>,
    lost_before: u64,
    stage: FlushStage,
}

enum FlushStage {
    /// Until the queues have passed the marks.
    Draining(Marks),
    /// Until every chunk below this ticket has its fate.
    Confirming(u64),
}

/// What was told of the connection.
#[derive(Debug, Default)]
struct Seen {
    connection: Connection,
    broken: u64,
}

/// How a round over the queues ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// It found nothing.
    Empty,
    /// It took what there was.
    Found,
    /// The outbox is full; it goes on later.
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
        self.finish();
    }

    fn step(&mut self) -> Next {
        let now = monotonic();
        let (flushes, stop) = self.shared.take_orders();
        self.stop = stop;
        for done in flushes {
            let marks = self.drain.marks();
            self.flushes.push(Flush {
                done,
                lost_before: self.shared.ledger.losses().total(),
                stage: FlushStage::Draining(marks),
            });
        }
        let mut wake_up = self.drive(now);
        let made_before = self.encoder.next_sequence();
        let round = self.collect(now);
        self.close_if_old(now);
        self.advance_flushes();
        if self.stop.is_some() && round == Round::Empty {
            self.close_epoch();
        }
        if self.encoder.next_sequence() != made_before {
            wake_up = self.drive(now);
            self.advance_flushes();
        }
        if round == Round::Interrupted && self.outbox.has_room() {
            return Next::Wait(Duration::ZERO);
        }
        if let Some(by) = self.stop {
            let done = self.sent_last && self.outbox.is_empty();
            if done || by <= monotonic() {
                return Next::End;
            }
            if round == Round::Found || self.outbox.is_empty() {
                return Next::Wait(Duration::ZERO);
            }
        }
        self.wait(wake_up)
    }

    /// How long to wait when nothing wakes the thread.
    fn wait(&self, wake_up: Option<Instant>) -> Next {
        let now = monotonic();
        let has_room = self.outbox.has_room();
        // Without room the writer will tell; looking in between guards against one that forgets.
        let idle_ticks = if has_room { self.idle_ticks } else { u32::MAX };
        let tick = now.checked_add(self.rule.tick(idle_ticks));
        let age = self
            .oldest
            .filter(|_| has_room)
            .and_then(|oldest| self.rule.closes_at(oldest));
        let next = [wake_up, self.stop, tick, age].into_iter().flatten().min();
        Next::Wait(next.map_or(self.rule.wait, |time| time.saturating_duration_since(now)))
    }

    /// Fills batches from the queues and closes full ones, as long as the outbox has room.
    fn collect(&mut self, now: Instant) -> Round {
        if !self.close_if_full() {
            return Round::Interrupted;
        }
        let mut found = self.in_round;
        if !self.in_round {
            self.drain.start_round();
            self.round_began = now;
        }
        loop {
            let builder = &mut self.builder;
            let pushed = self.drain.next_row(|row| {
                let result = builder.push_row(row.schema, row.timestamp, row.fields);
                result.map_err(|error| refused(builder, &row, error))
            });
            match pushed {
                None => break,
                Some(Ok(())) => self.batched = self.batched.saturating_add(1),
                Some(Err(refused)) => self.refuse_row(refused),
            }
            found = true;
            self.oldest.get_or_insert(self.drained_at);
            if !self.close_if_full() {
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

    /// Closes the batch if it is full; `false` when it cannot be, because the outbox is full.
    fn close_if_full(&mut self) -> bool {
        match self.rule.full(self.batched, self.builder.estimated_bytes()) {
            Some(reason) if self.outbox.has_room() => {
                self.close(reason, false);
                // Gives the writer its work while the next batch is filled.
                let now = monotonic();
                self.drive(now);
                self.outbox.has_room()
            }
            Some(_) => false,
            None => self.outbox.has_room(),
        }
    }

    fn close_if_old(&mut self, now: Instant) {
        let due = self.oldest.and_then(|oldest| self.rule.closes_at(oldest));
        if due.is_some_and(|due| due <= now) && self.batched > 0 && self.outbox.has_room() {
            self.close(ClosedBy::Age, false);
        }
    }

    /// Makes a chunk, or several, of what was batched.
    fn close(&mut self, reason: ClosedBy, last: bool) {
        if self.batched == 0 {
            return;
        }
        let row_bytes = self.builder.estimated_bytes();
        self.shared.ledger.closed(reason, row_bytes);
        self.batched = 0;
        self.oldest = None;
        let (losses, limit) = (self.losses(), self.limit());
        match self
            .encoder
            .encode(self.builder.batch(), losses, last, limit)
        {
            Ok(chunk) => {
                self.builder.clear();
                self.rule.learn(row_bytes, chunk.bytes.len());
                self.send(chunk, last);
            }
            Err(problem) => {
                let batch = self.builder.take();
                if let Problem::TooLarge { bytes, .. } = problem {
                    self.rule.learn(row_bytes, bytes);
                }
                self.take_apart(batch, problem, last);
            }
        }
    }

    /// Makes the chunks that can be made of a batch that cannot be one.
    fn take_apart(&mut self, batch: RecordBatch, problem: Problem, last: bool) {
        let mut todo = Vec::new();
        self.reduce(batch, problem, &mut todo);
        while let Some(batch) = todo.pop() {
            let (losses, limit) = (self.losses(), self.limit());
            let last = last && todo.is_empty();
            match self.encoder.encode(&batch, losses, last, limit) {
                Ok(chunk) => self.send(chunk, last),
                Err(problem) => self.reduce(batch, problem, &mut todo),
            }
        }
    }

    /// Pushes the parts that are to be tried next, the first one on top; puts the rest aside.
    fn reduce(&mut self, batch: RecordBatch, problem: Problem, todo: &mut Vec<RecordBatch>) {
        match problem {
            Problem::TooLarge {
                bytes,
                limit,
                chunk,
            } => {
                if batch.len() > 1
                    && let Ok((first, second)) = halves(&batch)
                {
                    self.shared.ledger.split();
                    todo.push(second);
                    todo.push(first);
                } else {
                    self.put_aside(&batch, LossReason::TooLarge, bytes, limit, chunk);
                }
            }
            Problem::Unsupported { record } => match apart(&batch, &record) {
                Ok((others, of_type)) if !of_type.is_empty() => {
                    let chunk = self.encoder.for_inspection(&of_type);
                    let (size, limit) = (chunk.len(), self.limit());
                    self.put_aside(&of_type, LossReason::NotEncodable, size, limit, chunk);
                    if !others.is_empty() {
                        todo.push(others);
                    }
                }
                _ => self.put_all_aside(&batch),
            },
            Problem::Failed => self.put_all_aside(&batch),
            Problem::Panicked => {
                self.shared.ledger.panicked();
                let records = count(batch.len());
                let place = "the serializer";
                self.put_all_aside(&batch);
                self.hooks.tell(&Event::Panicked { place, records });
            }
        }
    }

    fn put_all_aside(&mut self, batch: &RecordBatch) {
        let limit = self.limit();
        self.put_aside(batch, LossReason::NotEncodable, 0, limit, Bytes::new());
    }

    /// Counts records that cannot be sent, and hands them to who wants to know.
    fn put_aside(
        &mut self,
        batch: &RecordBatch,
        reason: LossReason,
        size_bytes: usize,
        limit_bytes: usize,
        chunk: Bytes,
    ) {
        let name = batch.records().next();
        let name = name.map_or("", |record| record.schema().name());
        self.quarantine(Quarantined {
            record: name.into(),
            records: count(batch.len()),
            reason,
            size_bytes,
            limit_bytes,
            chunk,
        });
    }

    fn quarantine(&mut self, quarantined: Quarantined) {
        let Quarantined {
            records, reason, ..
        } = quarantined;
        self.shared.ledger.lost(reason, records);
        self.shared.ledger.quarantined(records);
        self.hooks.tell(&Event::Quarantined(quarantined));
    }

    fn refuse_row(&mut self, refused: RefusedRow) {
        match refused {
            RefusedRow::BatchFull(row) => {
                // Four billion values: closed far earlier by any sensible threshold.
                self.close(ClosedBy::Bytes, false);
                match self.builder.push_row(&row.0, row.1, &row.2) {
                    Ok(()) => self.batched = 1,
                    Err(_) => self.quarantine(Quarantined {
                        record: row.0.name().into(),
                        records: 1,
                        reason: LossReason::TooLarge,
                        size_bytes: row.2.len(),
                        limit_bytes: self.limit(),
                        chunk: Bytes::new(),
                    }),
                }
            }
            RefusedRow::Malformed { record, bytes } => self.quarantine(Quarantined {
                record,
                records: 1,
                reason: LossReason::NotEncodable,
                size_bytes: bytes,
                limit_bytes: self.limit(),
                chunk: Bytes::new(),
            }),
        }
    }

    fn send(&mut self, chunk: Chunk, last: bool) {
        self.shared.ledger.encoded(chunk.bytes.len());
        self.sent_last |= last;
        self.outbox.push(chunk, monotonic());
    }

    /// The hard cap of a chunk: ours or the medium's.
    fn limit(&self) -> usize {
        let medium = self.outbox.capability().max_chunk_bytes.get();
        self.max_chunk_bytes.min(medium)
    }

    /// Records lost so far, before the collector and by it.
    fn losses(&self) -> Losses {
        let mut losses = self.shared.queues.counts().lost;
        for (code, records) in self.shared.ledger.losses().iter() {
            losses.add_code(code, records);
        }
        losses
    }

    /// Lets the outbox do what it can, and accounts for it.
    fn drive(&mut self, now: Instant) -> Option<Instant> {
        let mut fates = std::mem::take(&mut self.fates);
        let wake_up = self.outbox.drive(now, self.stop, &mut fates);
        for fate in fates.drain(..) {
            self.settle(fate);
        }
        self.fates = fates;
        self.tell_connection();
        wake_up
    }

    fn tell_connection(&mut self) {
        let stats = self.outbox.stats();
        if stats.broken != self.seen.broken
            && let Some(error) = &stats.last_error
        {
            self.hooks.tell(&Event::Disconnected {
                error: Arc::clone(error),
                retries: stats.connection != Connection::Failed,
            });
        }
        let again = stats.broken != self.seen.broken;
        if stats.connection == Connection::Open
            && (again || self.seen.connection != Connection::Open)
        {
            let medium = self.outbox.capability().medium;
            self.hooks.tell(&Event::Connected { medium });
        }
        self.seen = Seen {
            connection: stats.connection,
            broken: stats.broken,
        };
        self.shared.ledger.outbox(stats);
    }

    fn settle(&mut self, Fate { chunk, end }: Fate) {
        let (reason, error) = match end {
            End::Confirmed => {
                let (records, bytes) = (chunk.meta.records, chunk.bytes.len());
                self.shared.ledger.delivered(records, bytes);
                return;
            }
            End::TooLarge { max_chunk_bytes } => {
                self.encoder.list_as_lost(chunk.meta.identity.sequence);
                self.split_chunk(&chunk, max_chunk_bytes);
                return;
            }
            End::Refused(error) => (LossReason::Refused, Some(error)),
            End::Undelivered(error) => (LossReason::Undelivered, error),
        };
        let records = chunk.meta.records;
        let sequence = chunk.meta.identity.sequence;
        self.encoder.list_as_lost(sequence);
        self.shared.ledger.lost(reason, u64::from(records));
        self.hooks.tell(&Event::Lost {
            sequence,
            records,
            reason,
            error,
        });
    }

    /// Sends the records of a chunk anew, in smaller ones: the medium takes less than it said.
    fn split_chunk(&mut self, chunk: &Chunk, limit: usize) {
        let bytes = chunk.bytes.len();
        self.max_chunk_bytes = self.max_chunk_bytes.min(limit);
        match ChunkDecoder::default().decode(&chunk.bytes) {
            Ok(decoded) => {
                let problem = Problem::TooLarge {
                    bytes,
                    limit,
                    chunk: chunk.bytes.clone(),
                };
                self.take_apart(decoded.batch, problem, false);
            }
            Err(_) => self.quarantine(Quarantined {
                record: "".into(),
                records: u64::from(chunk.meta.records),
                reason: LossReason::TooLarge,
                size_bytes: bytes,
                limit_bytes: limit,
                chunk: chunk.bytes.clone(),
            }),
        }
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
                && self.outbox.has_room()
            {
                self.close(ClosedBy::Flush, false);
                flush.stage = FlushStage::Confirming(self.encoder.next_sequence());
            }
        }
        let first = self.outbox.first_ticket();
        flushes.retain(|flush| match flush.stage {
            FlushStage::Confirming(below) if first.is_none_or(|first| first >= below) => {
                let lost = self.shared.ledger.losses().total();
                let lost = lost.saturating_sub(flush.lost_before);
                // Who asked may have stopped waiting.
                flush.done.try_send(FlushEnd { lost }).unwrap_or_default();
                false
            }
            _ => true,
        });
        self.flushes = flushes;
    }

    /// Sends the epoch's last chunk, once all before it have their fates and its losses are
    /// complete.
    fn close_epoch(&mut self) {
        if self.sent_last || !self.outbox.is_empty() {
            return;
        }
        self.close(ClosedBy::Flush, true);
        if self.sent_last {
            return;
        }
        if self.encoder.container() == ContainerKind::Native {
            let (losses, limit) = (self.losses(), self.limit());
            let empty = RecordBatch::default();
            if let Ok(chunk) = self.encoder.encode(&empty, losses, true, limit) {
                self.send(chunk, true);
            }
        }
        // Kieker's container says nothing of epochs, and a serializer that fails says nothing.
        self.sent_last = true;
    }

    /// Goes on after a panic in the collector itself.
    fn recover(&mut self) {
        let records = count(self.batched);
        self.builder = BatchBuilder::new();
        self.batched = 0;
        self.oldest = None;
        self.shared.ledger.panicked();
        self.shared.ledger.lost(LossReason::NotEncodable, records);
        let place = "the collector";
        self.hooks.tell(&Event::Panicked { place, records });
    }

    fn finish(mut self) {
        let by = self.stop.unwrap_or_else(monotonic);
        let on_time = self.sent_last && self.outbox.is_empty();
        let mut stats = self.outbox.stats();
        let mut fates = Vec::new();
        let error = self.outbox.close(by, &mut fates);
        stats.connection = Connection::Closed;
        stats.in_flight_chunks = 0;
        stats.in_flight_bytes = 0;
        stats.unconfirmed_chunks = 0;
        stats.unconfirmed_bytes = 0;
        self.shared.ledger.outbox(stats);
        for Fate { chunk, end } in fates {
            let ledger = &self.shared.ledger;
            let records = chunk.meta.records;
            match end {
                End::Confirmed => ledger.delivered(records, chunk.bytes.len()),
                End::TooLarge { .. } => ledger.lost(LossReason::TooLarge, u64::from(records)),
                End::Refused(_) => ledger.lost(LossReason::Refused, u64::from(records)),
                End::Undelivered(_) => ledger.lost(LossReason::Undelivered, u64::from(records)),
            }
        }
        self.flushes.clear();
        let error = error.map(|error| error.to_string().into());
        self.shared
            .ledger
            .finish(&self.shared.queues, on_time, error);
    }
}

/// A row that the batch did not take.
enum RefusedRow {
    /// The batch has no room for it.
    BatchFull((Arc<baler_common::record::Schema>, i64, Vec<u8>)),
    /// It does not follow its schema.
    Malformed { record: Box<str>, bytes: usize },
}

fn refused(builder: &BatchBuilder, row: &Row<'_>, error: PushError) -> RefusedRow {
    match error {
        PushError::Full if !builder.is_empty() => {
            RefusedRow::BatchFull((Arc::clone(row.schema), row.timestamp, row.fields.to_vec()))
        }
        _ => RefusedRow::Malformed {
            record: row.schema.name().into(),
            bytes: row.fields.len(),
        },
    }
}

/// Lets nobody wait for a collector that has ended, however it ended.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.collector_ended();
    }
}

fn count(records: usize) -> u64 {
    u64::try_from(records).unwrap_or(u64::MAX)
}
