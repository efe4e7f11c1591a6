//! Rounds over the queues: append rows to batches, and make chunks of full batches.
//!
//! Next: `dispatch`, where a full batch becomes a chunk.

use std::time::Instant;

use baler_common::container::LossReason;
use baler_common::number::to_u64;
use baler_common::record::{PushError, RecordBatch};
use bytes::Bytes;

use super::calls;
use super::closing::ClosedBy;
use super::encoder::EncodeProblem;
use super::event::Quarantined;
use super::thread::{Collector, LONGEST_STEP, Round, SEND_EVERY};
use crate::clock::monotonic;
use crate::queue::QueueRow;
use crate::queue::{CALL_WORDS, MAX_ROWS};

impl Collector {
    /// Fills batches from the queues and closes full ones, as long as the outbox has room.
    pub(super) fn collect(&mut self, now: Instant) -> Round {
        for lane in 0..self.lanes.len() {
            if !self.close_if_full(lane) {
                return Round::Interrupted;
            }
        }
        let mut found = self.in_round;
        if !self.in_round {
            self.queues.start_round();
            self.calls.refresh(now);
            self.round_began = now;
        }
        while self.queues.has_row() {
            let Some(lane) = self.take_rows() else {
                break;
            };
            found = true;
            if !self.close_if_full(lane) {
                self.in_round = true;
                return Round::Interrupted;
            }
        }
        self.in_round = false;
        if let Some(batch) = self.queues.take_batch() {
            found = true;
            self.close(0, ClosedBy::Flush, false);
            self.ship_whole(batch);
        }
        self.drained_at = self.round_began;
        let enough = self.rule.tick() / 2;
        self.rate
            .observe(self.taken(), self.round_began, enough, self.rule.records);
        if found { Round::Found } else { Round::Empty }
    }

    /// Chooses anew after a poll of the queues.
    pub(super) fn tune(&mut self) {
        let taken = self.taken();
        let Some(tuner) = &mut self.tuner else {
            return;
        };
        let has_changed = tuner.polled(taken, monotonic());
        let choice = tuner.choice();
        self.rule.records = choice.records;
        self.rule.wait = choice.wait;
        // A chunk that the medium finds too large must be made twice, so stay below its limit.
        self.rule.bytes = tuner
            .tuning
            .chunk_bytes
            .min(self.dispatch.limit() / 8 * 7)
            .max(1);
        if has_changed {
            self.shared.ledger.chosen(choice.expected, choice.wait);
        }
    }

    /// Takes the next rows of one type and lane, at most as many as fit into the batch. Returns the
    /// lane, or `None` if there is nothing to take.
    fn take_rows(&mut self) -> Option<usize> {
        if let Some(call) = self.queues.block.next_call() {
            return self.take_calls(call);
        }
        if self.lanes.len() == 1 && self.queues.block.is_flat_next() {
            return self.take_flat_rows();
        }
        let QueueRow::Record {
            schema,
            timestamp,
            fields,
        } = self.queues.block.next_row()?
        else {
            return None;
        };
        let number = self.router.lane_of_record(schema, fields);
        // The router knows no other lanes. Whatever happens, a row that was taken is counted.
        let pushed = match self.lanes.get_mut(number) {
            Some(lane) => {
                lane.oldest.get_or_insert(self.drained_at);
                lane.builder.push_row(schema, timestamp, fields)
            }
            None => Err(PushError::Malformed),
        };
        if let Err(error) = pushed {
            let (name, bytes) = (schema.name().into(), fields.len());
            self.refuse(name, 1, bytes, error);
        }
        Some(number)
    }

    /// Takes `first` and the calls after it of the same record type and lane.
    fn take_calls(&mut self, first: [u64; CALL_WORDS]) -> Option<usize> {
        let number = self.router.lane_of_call(first);
        let lane = self.lanes.get_mut(number)?;
        lane.oldest.get_or_insert(self.drained_at);
        let (max_rows, max_bytes) = self
            .rule
            .left(lane.builder.len(), lane.builder.estimated_bytes());
        let (router, calls) = (&self.router, &mut self.calls);
        calls.clear();
        self.queues.block.calls(max_rows.min(MAX_ROWS), |call| {
            let is_next = calls.len().1 < max_bytes
                && calls::is_duration(call) == calls::is_duration(first)
                && router.lane_of_call(call) == number;
            if is_next {
                calls.add(call);
            }
            is_next
        });
        let schema = calls::record_type(first);
        let (rows, bytes) = calls.len();
        let (added, result) = calls.append_to(&mut lane.builder, schema);
        if let Err(error) = result {
            let refused = to_u64(rows - added);
            self.refuse(schema.name().into(), refused, bytes, error);
        }
        Some(number)
    }

    /// Takes the next flat records of one type. With several lanes this path is not used: each
    /// record may belong to another lane, so records are taken one by one, as bytes.
    fn take_flat_rows(&mut self) -> Option<usize> {
        let lane = self.lanes.first_mut()?;
        lane.oldest.get_or_insert(self.drained_at);
        let (batched, row_bytes) = (lane.builder.len(), lane.builder.estimated_bytes());
        let max = self.rule.left(batched, row_bytes);
        let mut refused = None;
        self.queues.block.flat_rows(max, |schema, words, rows| {
            let Some(mut run) = lane.builder.words(schema) else {
                refused = Some((schema.name().into(), PushError::Malformed));
                return 1;
            };
            let (added, result) = run.extend(&words, rows, |bits| bits as i64);
            refused = result.err().map(|error| (schema.name().into(), error));
            added + usize::from(refused.is_some())
        });
        if let Some((record, error)) = refused {
            self.refuse(record, 1, 0, error);
        }
        Some(0)
    }

    /// Closes a lane's batch if it is full. Returns `false` when the round must be interrupted,
    /// because the outbox has no room or the step takes long.
    fn close_if_full(&mut self, lane: usize) -> bool {
        let batch = self.lanes.get(lane);
        let full = batch.and_then(|it| {
            self.rule
                .full(it.builder.len(), it.builder.estimated_bytes())
        });
        match full {
            Some(reason) if self.dispatch.outbox.has_room() => {
                self.close(lane, reason, false);
                // Give the writer its work while the next batches fill.
                let now = monotonic();
                let unsent = now.duration_since(self.sent_at);
                let is_due = unsent >= SEND_EVERY || !self.dispatch.outbox.has_room();
                // With a backlog, find out at once whether the writer accepts the chunk.
                if is_due || self.shared.queues.is_backlog() {
                    self.dispatch.drive(now, self.stop);
                    self.sent_at = now;
                }
                let took = now.duration_since(self.step_began);
                self.dispatch.outbox.has_room() && took < LONGEST_STEP
            }
            Some(_) => false,
            None => self.dispatch.outbox.has_room(),
        }
    }

    pub(super) fn close_if_old(&mut self, now: Instant) {
        for lane in 0..self.lanes.len() {
            let oldest = self.lanes.get(lane).and_then(|lane| lane.oldest);
            let due = oldest.and_then(|oldest| self.rule.closes_at(oldest));
            if due.is_some_and(|due| due <= now) && self.dispatch.outbox.has_room() {
                self.close(lane, ClosedBy::Age, false);
            }
        }
    }

    /// Makes a chunk, or several, of a lane's batch.
    pub(super) fn close(&mut self, number: usize, reason: ClosedBy, last: bool) {
        let Some(lane) = self.lanes.get_mut(number) else {
            return;
        };
        // A refused row has set an age without adding a record.
        lane.oldest = None;
        let records = lane.builder.len();
        if records == 0 {
            return;
        }
        self.closed += to_u64(records);
        let row_bytes = lane.builder.estimated_bytes();
        self.shared.ledger.closed(row_bytes);
        match self
            .dispatch
            .ship(number, lane.builder.batch(), reason, last)
        {
            Ok(bytes) => {
                lane.builder.clear();
                self.rule.learn(row_bytes, bytes);
                if let Some(tuner) = &mut self.tuner {
                    tuner.encoded(records, row_bytes, bytes);
                }
            }
            Err(problem) => {
                let batch = lane.builder.take();
                if let EncodeProblem::TooLarge { bytes, .. } = problem {
                    self.rule.learn(row_bytes, bytes);
                }
                self.dispatch
                    .take_apart(number, batch, problem, reason, last);
            }
        }
    }

    /// Makes a chunk of a whole batch.
    fn ship_whole(&mut self, batch: RecordBatch) {
        self.closed += to_u64(batch.len());
        self.shared.ledger.closed(batch.estimated_bytes());
        let reason = ClosedBy::Records;
        if let Err(problem) = self.dispatch.ship(0, &batch, reason, false) {
            self.dispatch.take_apart(0, batch, problem, reason, false);
        }
    }

    /// Returns the number of records taken from the queues so far.
    pub(super) fn taken(&self) -> u64 {
        self.closed + to_u64(self.batched())
    }

    /// Returns the number of records in batches.
    pub(super) fn batched(&self) -> usize {
        self.lanes.iter().map(|lane| lane.builder.len()).sum()
    }

    pub(super) fn close_all(&mut self, reason: ClosedBy) {
        (0..self.lanes.len()).for_each(|lane| self.close(lane, reason, false));
    }

    /// Puts records of one type into quarantine because the batch refused them.
    fn refuse(&mut self, record: Box<str>, records: u64, size_bytes: usize, error: PushError) {
        self.dispatch.quarantine(Quarantined {
            record,
            records,
            reason: match error {
                PushError::Full => LossReason::TooLarge,
                _ => LossReason::NotEncodable,
            },
            problem: error.to_string().into(),
            size_bytes,
            limit_bytes: self.dispatch.limit(),
            chunk: Bytes::new(),
        });
    }
}
