//! Splits a batch that cannot be one chunk, and remembers the types that this needs.
//!
//! Next: `dispatch`, which makes chunks of the pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use baler_common::record::{BatchBuilder, Catalog, PushError, RecordBatch, RecordRef, Schema};
use baler_connector_kieker::types;

/// Returns the first and the second half of the records, in order.
///
/// The OpenTelemetry Collector also halves payloads that are too large as often as necessary
/// (opentelemetry-collector-contrib, pull request 48090).
///
/// # Errors
///
/// [`PushError`] when a record of the batch cannot be added to another one. That cannot happen with
/// a batch that was built or decoded.
pub(super) fn halves(batch: &RecordBatch) -> Result<(RecordBatch, RecordBatch), PushError> {
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
pub(super) fn apart(
    batch: &RecordBatch,
    record: &str,
) -> Result<(RecordBatch, RecordBatch), PushError> {
    partition(batch, |candidate| candidate.schema().name() != record)
}

/// Splits off the records whose schema differs from the first schema of this name. Both parts keep
/// their order.
///
/// # Errors
///
/// As [`halves`].
pub(super) fn versions(
    batch: &RecordBatch,
    record: &str,
) -> Result<(RecordBatch, RecordBatch), PushError> {
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
        let mut catalog = types::catalog();
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
