//! Batches into chunks, in pieces where one would be too large; the rest is put aside.

use baler_common::container::{LossReason, Losses};
use baler_common::record::RecordBatch;
use baler_common::transport::ContainerKind;
use bytes::Bytes;

use super::super::batch::ClosedBy;
use super::super::encoder::Problem;
use super::super::event::{Event, Quarantined};
use super::super::split::{apart, halves, versions};
use super::{Dispatch, count};
use crate::clock::monotonic;

impl Dispatch {
    /// Makes one chunk of these records and hands it to the outbox; its length in bytes.
    pub(in crate::collector) fn ship(
        &mut self,
        lane: usize,
        batch: &RecordBatch,
        closed_by: ClosedBy,
        last: bool,
    ) -> Result<usize, Problem> {
        let (losses, limit) = (self.losses(), self.limit());
        let chunk = self.encoder.encode(lane, batch, losses, last, limit)?;
        let bytes = chunk.bytes.len();
        self.shared.ledger.encoded(bytes, closed_by);
        if chunk.meta.container == ContainerKind::Kieker {
            self.types.remember(chunk.ticket, batch);
        }
        self.outbox.push(chunk, monotonic());
        Ok(bytes)
    }

    /// Makes the chunks that can be made of a batch that cannot be one.
    pub(in crate::collector) fn take_apart(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: Problem,
        closed_by: ClosedBy,
        last: bool,
    ) {
        let mut todo = Vec::new();
        self.reduce(lane, batch, problem, &mut todo);
        while let Some(batch) = todo.pop() {
            let last = last && todo.is_empty();
            if let Err(problem) = self.ship(lane, &batch, closed_by, last) {
                self.reduce(lane, batch, problem, &mut todo);
            }
        }
    }

    /// Pushes the parts that are to be tried next, the first one on top; puts the rest aside.
    fn reduce(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: Problem,
        todo: &mut Vec<RecordBatch>,
    ) {
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
                    let chunk = self.encoder.for_inspection(lane, &of_type);
                    let (size, limit) = (chunk.len(), self.limit());
                    self.put_aside(&of_type, LossReason::NotEncodable, size, limit, chunk);
                    if !others.is_empty() {
                        todo.push(others);
                    }
                }
                _ => self.put_all_aside(&batch),
            },
            Problem::Ambiguous { record } => match versions(&batch, &record) {
                Ok((first, others)) if !others.is_empty() => {
                    todo.push(others);
                    todo.push(first);
                }
                _ => self.put_all_aside(&batch),
            },
            Problem::Failed => self.put_all_aside(&batch),
            Problem::Panicked => {
                self.put_all_aside(&batch);
                self.shared.ledger.panicked();
                let (place, records) = ("the serializer", count(batch.len()));
                self.hooks.tell(&Event::Panicked { place, records });
            }
        }
    }

    fn put_all_aside(&mut self, batch: &RecordBatch) {
        let limit = self.limit();
        self.put_aside(batch, LossReason::NotEncodable, 0, limit, Bytes::new());
    }

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

    /// Counts what cannot be sent, and hands it to who wants to know.
    pub(in crate::collector) fn quarantine(&mut self, quarantined: Quarantined) {
        let Quarantined {
            records, reason, ..
        } = quarantined;
        self.shared.ledger.lost(reason, records);
        self.shared.ledger.quarantined(records);
        self.hooks.tell(&Event::Quarantined(quarantined));
    }

    /// The hard cap of a chunk: ours or the medium's.
    pub(in crate::collector) fn limit(&self) -> usize {
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

    /// Says with an empty chunk in each lane that the epoch is over, unless one has said so.
    pub(in crate::collector) fn ship_last(&mut self) {
        if !self.sent_last && self.encoder.container() == ContainerKind::Native {
            let empty = RecordBatch::default();
            for lane in self.encoder.without_last() {
                // A serializer that fails even now has nothing to say.
                self.ship(lane, &empty, ClosedBy::Flush, true)
                    .unwrap_or_default();
            }
        }
        // Kieker's container says nothing of epochs.
        self.sent_last = true;
    }
}
