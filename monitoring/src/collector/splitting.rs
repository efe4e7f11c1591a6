//! Splits a batch that cannot be one chunk into smaller chunks, and puts records that cannot be
//! sent into quarantine.
//!
//! Next: `dispatch`, which makes chunks of the pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use baler_common::container::LossReason;
use baler_common::number::to_u64;
use baler_common::record::{BatchBuilder, Catalog, PushError, RecordBatch, RecordRef, Schema};
use bytes::Bytes;

use super::closing::ClosedBy;
use super::dispatch::Dispatch;
use super::encoder::EncodeProblem;
use super::event::{Event, Quarantined};

impl Dispatch {
    /// Makes as many chunks as possible of a batch that cannot be one chunk.
    pub(super) fn take_apart(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: EncodeProblem,
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

    /// Pushes the parts to try next, the first one on top; puts the rest into quarantine.
    fn reduce(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: EncodeProblem,
        todo: &mut Vec<RecordBatch>,
    ) {
        match problem {
            EncodeProblem::TooLarge {
                bytes,
                limit,
                chunk,
            } => {
                let halves = (batch.len() > 1).then(|| halves(&batch));
                if let Some(Ok((first, second))) = halves {
                    self.shared.ledger.split();
                    todo.push(second);
                    todo.push(first);
                } else {
                    let why = (LossReason::TooLarge, "".into());
                    self.put_aside(&batch, why, bytes, limit, chunk);
                }
            }
            EncodeProblem::Unsupported { record, message } => match apart(&batch, &record) {
                Ok((others, of_type)) if !of_type.is_empty() => {
                    let chunk = self.encoder.for_inspection(lane, &of_type);
                    let (size, limit) = (chunk.len(), self.limit());
                    let why = (LossReason::NotEncodable, message);
                    self.put_aside(&of_type, why, size, limit, chunk);
                    if !others.is_empty() {
                        todo.push(others);
                    }
                }
                _ => self.put_all_aside(&batch, message),
            },
            EncodeProblem::Ambiguous { record } => match versions(&batch, &record) {
                Ok((first, others)) if !others.is_empty() => {
                    todo.push(others);
                    todo.push(first);
                }
                _ => {
                    let message = format!("one chunk cannot hold two versions of {record}");
                    self.put_all_aside(&batch, message.into());
                }
            },
            EncodeProblem::Failed(message) => self.put_all_aside(&batch, message),
            EncodeProblem::Panicked => {
                self.put_all_aside(&batch, "the serializer panicked".into());
                self.shared.ledger.panicked();
                let (place, records) = ("the serializer", to_u64(batch.len()));
                self.hooks.report(&Event::Panicked { place, records });
            }
        }
    }

    fn put_all_aside(&mut self, batch: &RecordBatch, problem: Box<str>) {
        let (limit, why) = (self.limit(), (LossReason::NotEncodable, problem));
        self.put_aside(batch, why, 0, limit, Bytes::new());
    }

    fn put_aside(
        &mut self,
        batch: &RecordBatch,
        (reason, problem): (LossReason, Box<str>),
        size_bytes: usize,
        limit_bytes: usize,
        chunk: Bytes,
    ) {
        let name = batch.records().next();
        let name = name.map_or("", |record| record.schema().name());
        self.quarantine(Quarantined {
            record: name.into(),
            records: to_u64(batch.len()),
            reason,
            problem,
            size_bytes,
            limit_bytes,
            chunk,
        });
    }

    /// Counts records that cannot be sent, and passes them to the application's hook.
    pub(super) fn quarantine(&mut self, quarantined: Quarantined) {
        let Quarantined {
            records, reason, ..
        } = quarantined;
        self.shared.ledger.lost(reason, records);
        self.shared.ledger.quarantined(records);
        self.hooks.report(&Event::Quarantined(quarantined));
    }
}

/// Returns the first and the second half of the records, in order.
///
/// The OpenTelemetry Collector also halves payloads that are too large as often as necessary
/// (opentelemetry-collector-contrib, pull request 48090).
///
/// # Errors
///
/// [`PushError`] when a record of the batch cannot be added to another one. That cannot happen with
/// a batch that was built or decoded.
fn halves(batch: &RecordBatch) -> Result<(RecordBatch, RecordBatch), PushError> {
    let middle = batch.len() / 2;
    let mut index = 0_usize;
    partition(batch, |_| {
        let first = index < middle;
        index += 1;
        first
    })
}

/// Returns the records of other types, and the records of the type with this name, each in order.
///
/// # Errors
///
/// As [`halves`].
fn apart(batch: &RecordBatch, record: &str) -> Result<(RecordBatch, RecordBatch), PushError> {
    partition(batch, |candidate| candidate.schema().name() != record)
}

/// Splits off the records whose schema differs from the first schema of this name. Both parts keep
/// their order.
///
/// # Errors
///
/// As [`halves`].
fn versions(batch: &RecordBatch, record: &str) -> Result<(RecordBatch, RecordBatch), PushError> {
    let mut records = batch.records();
    let first = records.find(|candidate| candidate.schema().name() == record);
    partition(batch, |candidate| {
        let schema = candidate.schema();
        schema.name() != record || first.as_ref().is_none_or(|first| first.schema() == schema)
    })
}

fn partition(
    batch: &RecordBatch,
    mut in_first: impl FnMut(&RecordRef<'_>) -> bool,
) -> Result<(RecordBatch, RecordBatch), PushError> {
    let (mut first, mut second) = (BatchBuilder::new(), BatchBuilder::new());
    for record in batch.records() {
        let half = if in_first(&record) {
            &mut first
        } else {
            &mut second
        };
        half.push_ref(record)?;
    }
    Ok((first.take(), second.take()))
}

/// Remembers the types of unconfirmed chunks. The collector needs them to split a chunk that the
/// medium finds too large: Kieker's container holds only the names of its types.
#[derive(Debug, Default)]
pub(super) struct ChunkTypes {
    /// By ascending ticket.
    chunks: VecDeque<(u64, Vec<Arc<Schema>>)>,
}

impl ChunkTypes {
    /// Remembers the types of a chunk. Its ticket must be above all earlier ones.
    pub(super) fn remember(&mut self, ticket: u64, batch: &RecordBatch) {
        let tables = batch.tables().iter().filter(|table| !table.is_empty());
        let types = tables.map(|table| Arc::clone(table.schema())).collect();
        self.chunks.push_back((ticket, types));
    }

    /// Forgets the chunks below this ticket; all of them if it is `None`.
    pub(super) fn forget_below(&mut self, first: Option<u64>) {
        let is_below = |(ticket, _): &(_, _)| first.is_none_or(|first| *ticket < first);
        while self.chunks.front().is_some_and(is_below) {
            self.chunks.pop_front();
        }
    }

    /// Returns a catalog of Kieker's types and the types of this chunk.
    pub(super) fn catalog_of(&self, ticket: u64) -> Arc<Catalog> {
        let mut catalog = Catalog::kieker();
        let position = self.chunks.binary_search_by_key(&ticket, |(own, _)| *own);
        let types = position.ok().and_then(|at| self.chunks.get(at));
        for schema in types.into_iter().flat_map(|(_, types)| types) {
            catalog.register(Arc::clone(schema));
        }
        Arc::new(catalog)
    }
}

#[cfg(test)]
mod tests;
