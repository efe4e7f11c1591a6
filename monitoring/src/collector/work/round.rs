//! Rounds over the queues: rows into batches, full batches into chunks.

use std::sync::Arc;
use std::time::Instant;

use baler_common::container::LossReason;
#[cfg(feature = "enable")]
use baler_common::record::Record as _;
#[cfg(feature = "enable")]
use baler_common::record::kieker::controlflow::OperationExecutionRecord;
use baler_common::record::{PushError, Schema, WordLayout, Words as _};
#[cfg(feature = "enable")]
use baler_common::record::{Run, timing::DurationRecord};
use bytes::Bytes;

use super::super::batch::ClosedBy;
use super::super::encoder::Problem;
use super::super::event::Quarantined;
#[cfg(feature = "enable")]
use super::super::expand::Expander;
use super::super::expand::Row;
use super::super::lanes::Lane;
use super::tuned::Made;
use super::{Collector, LONGEST_STEP, Round, SEND_EVERY, count};
use crate::clock::monotonic;
#[cfg(feature = "enable")]
use crate::queue::{CALL_WORDS, KIND_CALL, KIND_DURATION};

/// What a call is counted as in a batch: its fields and its timestamp.
#[cfg(feature = "enable")]
const CALL_BYTES: usize = 52;

/// The same of a duration.
#[cfg(feature = "enable")]
const DURATION_BYTES: usize = 28;

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
            self.drain.start_round(now);
            self.round_began = now;
        }
        loop {
            #[cfg(feature = "enable")]
            if self.take_calls() {
                found = true;
                if !self.close_if_full(0) {
                    self.in_round = true;
                    self.idle_ticks = 0;
                    return Round::Interrupted;
                }
                continue;
            }
            if self.take_words() {
                found = true;
                if !self.close_if_full(0) {
                    self.in_round = true;
                    self.idle_ticks = 0;
                    return Round::Interrupted;
                }
                continue;
            }
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
        let kept = self.lanes.iter().map(|lane| lane.batched).sum();
        self.filling.end_round(self.round_began, kept);
        if found {
            self.idle_ticks = 0;
            Round::Found
        } else {
            self.idle_ticks = self.idle_ticks.saturating_add(1);
            Round::Empty
        }
    }

    /// Takes the calls or durations that are next in what is being read, as many as the batch has
    /// room for: most records are such, and of these most is the same. Whether there was one.
    #[cfg(feature = "enable")]
    fn take_calls(&mut self) -> bool {
        match self.drain.next_kind() {
            KIND_CALL => self.take_run(
                KIND_CALL,
                OperationExecutionRecord::schema(),
                CALL_BYTES,
                Expander::push_call,
            ),
            KIND_DURATION => self.take_run(
                KIND_DURATION,
                DurationRecord::schema(),
                DURATION_BYTES,
                Expander::push_duration,
            ),
            _ => false,
        }
    }

    /// Takes the compact rows of a kind that are next.
    ///
    /// With several lanes each row may be for another one, so there is nothing to gain.
    #[cfg(feature = "enable")]
    #[inline(always)]
    fn take_run<const N: usize>(
        &mut self,
        kind: u64,
        schema: &Arc<Schema>,
        record_bytes: usize,
        push: impl Fn(&mut Expander, [u64; N], (usize, u64), &mut Run<'_>) -> Result<(), PushError>,
    ) -> bool {
        // A run makes a table in the batch, which others' records have no use for.
        let [lane] = self.lanes.as_mut_slice() else {
            return false;
        };
        let room = self
            .rule
            .room(lane.batched, lane.builder.estimated_bytes(), record_bytes);
        let batch = (0, lane.builder.batch_number());
        let before = lane.batched;
        let Some(mut run) = lane.builder.run(schema) else {
            return false;
        };
        let mut refused = None;
        self.drain.compact(kind, room, |expander, row: [u64; N]| {
            match push(expander, row, batch, &mut run) {
                Ok(()) => lane.batched = lane.batched.saturating_add(1),
                Err(error) => refused = Some((row, error)),
            }
            refused.is_none()
        });
        let found = lane.batched > before || refused.is_some();
        if found {
            lane.oldest.get_or_insert(self.drained_at);
        }
        if let Some((row, error)) = refused {
            let mut words = [0; CALL_WORDS];
            words.iter_mut().zip(row).for_each(|(to, word)| *to = word);
            let row = RefusedRow::new(&self.drain.expand(words), error);
            self.refuse_row(0, row);
        }
        found
    }

    /// Takes the rows of words that are next in what is being read, as many as the batch has room
    /// for and are of one type. Whether there was one.
    ///
    /// With several lanes each row may be for another one, so there is nothing to gain.
    fn take_words(&mut self) -> bool {
        let ([lane], true) = (self.lanes.as_mut_slice(), self.drain.are_words_next()) else {
            return false;
        };
        let most = self.rule.left(lane.batched, lane.builder.estimated_bytes());
        let mut is_flat = true;
        let mut refused = None;
        self.drain.words(most, |schema, words, rows, times| {
            let Some(mut run) = lane.builder.words(schema) else {
                is_flat = false;
                return 0;
            };
            let (added, result) = run.extend(&words, rows, |time| times.unix_ns(time));
            lane.batched = lane.batched.saturating_add(added);
            let row = rows.starts.get(added);
            let Some((error, row)) = result.err().zip(row) else {
                return added;
            };
            let row = usize::try_from(*row).unwrap_or(usize::MAX);
            let mut fields = Vec::new();
            if let Some(layout) = WordLayout::of(schema)
                && !layout.write_row(&words, row.saturating_add(rows.head), &mut fields)
            {
                fields.clear();
            }
            refused = Some(RefusedRow {
                schema: Arc::clone(schema),
                timestamp: times.unix_ns(words.word(row.saturating_add(rows.time)).unwrap_or(0)),
                fields,
                error,
            });
            added.saturating_add(1)
        });
        if is_flat {
            lane.oldest.get_or_insert(self.drained_at);
        }
        if let Some(refused) = refused {
            self.refuse_row(0, refused);
        }
        is_flat
    }

    /// Closes a lane's batch if it is full; `false` when the round has to be interrupted.
    fn close_if_full(&mut self, lane: usize) -> bool {
        let batch = self.lanes.get(lane);
        let full = batch.and_then(|it| self.rule.full(it.batched, it.builder.estimated_bytes()));
        match full {
            Some(reason) if self.dispatch.has_room() => {
                self.close(lane, reason, false);
                // Gives the writer its work while the next batches are filled.
                let now = monotonic();
                let unsent = now.saturating_duration_since(self.sent_at);
                let is_due = unsent >= SEND_EVERY || !self.dispatch.has_room();
                // When there is a backlog, find out at once whether the writer accepts the chunk.
                if is_due || self.shared.queues.is_backlog() {
                    self.dispatch.drive(now, self.stop);
                    self.sent_at = now;
                }
                let took = now.saturating_duration_since(self.step_began);
                self.dispatch.has_room() && took < LONGEST_STEP
            }
            Some(_) => false,
            None => self.dispatch.has_room(),
        }
    }

    pub(super) fn close_if_old(&mut self, now: Instant) {
        for lane in 0..self.lanes.len() {
            let oldest = self.lanes.get(lane).and_then(|lane| lane.oldest);
            let due = oldest.and_then(|oldest| self.rule.closes_at(oldest));
            if due.is_some_and(|due| due <= now) && self.dispatch.has_room() {
                self.close(lane, ClosedBy::Age, false);
            }
        }
    }

    /// Makes a chunk, or several, of what was batched in a lane.
    pub(super) fn close(&mut self, number: usize, reason: ClosedBy, last: bool) {
        let Some(lane) = self.lanes.get_mut(number) else {
            return;
        };
        // A row that was refused leaves its age without a record.
        let oldest = lane.oldest.take();
        let records = std::mem::take(&mut lane.batched);
        if records == 0 {
            return;
        }
        if let Some(tuned) = &mut self.tuned {
            tuned.left_batch(count(records));
        }
        let row_bytes = lane.builder.estimated_bytes();
        self.shared.ledger.closed(reason, row_bytes);
        self.filling.closed(reason, records);
        let ticket = self.dispatch.next_ticket();
        let is_only = self.dispatch.has_settled(ticket);
        match self.dispatch.ship(number, lane.builder.batch(), last) {
            Ok(bytes) => {
                lane.builder.clear();
                self.rule.learn(row_bytes, bytes);
                if let Some(tuned) = &mut self.tuned {
                    tuned.made(&Made {
                        records,
                        row_bytes,
                        bytes,
                        oldest,
                        ticket,
                        is_only,
                    });
                }
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

    pub(super) fn close_all(&mut self, reason: ClosedBy) {
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
