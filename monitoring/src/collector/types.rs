//! The types in the chunks of a container that does not carry them.

use std::collections::VecDeque;
use std::sync::Arc;

use baler_common::record::{Catalog, RecordBatch, Schema};

/// Remembers the types of unconfirmed chunks, so that one that the medium finds too large can be
/// taken apart whatever container it is: Kieker's names its types only.
#[derive(Debug, Default)]
pub(super) struct ChunkTypes {
    /// By ascending ticket.
    chunks: VecDeque<(u64, Vec<Arc<Schema>>)>,
}

impl ChunkTypes {
    /// Remembers the types of a chunk; its ticket is above all before.
    pub(super) fn remember(&mut self, ticket: u64, batch: &RecordBatch) {
        let tables = batch.tables().iter().filter(|table| !table.is_empty());
        let types = tables.map(|table| Arc::clone(table.schema())).collect();
        self.chunks.push_back((ticket, types));
    }

    /// Forgets the chunks below this ticket, all if there is none.
    pub(super) fn forget_below(&mut self, first: Option<u64>) {
        while let Some((ticket, _)) = self.chunks.front()
            && first.is_none_or(|first| *ticket < first)
        {
            self.chunks.pop_front();
        }
    }

    /// The types of Kieker and those of this chunk.
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
