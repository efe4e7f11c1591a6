//! Which types a batch had lately.

use std::sync::Arc;

use crate::record::schema::Schema;

/// How many types are remembered.
const RECENT: usize = 16;

/// Finds the table of a type by the address of its schema, while a batch is filled.
#[derive(Debug, Default)]
pub(super) struct TypeIndex {
    /// By a few bits of the address. The schema is held, so that no other one gets its address.
    recent: [Option<(Arc<Schema>, usize)>; RECENT],
}

impl TypeIndex {
    /// The position of the type's table, if it was found lately under this address.
    pub(super) fn recent(&self, schema: &Arc<Schema>) -> Option<usize> {
        match self.recent.get(place(schema)) {
            Some(Some((recent, position))) if Arc::ptr_eq(recent, schema) => Some(*position),
            _ => None,
        }
    }

    /// Remembers the position of the type's table.
    pub(super) fn remember(&mut self, schema: &Arc<Schema>, position: usize) {
        if let Some(recent) = self.recent.get_mut(place(schema)) {
            *recent = Some((Arc::clone(schema), position));
        }
    }

    /// Forgets every type.
    pub(super) fn clear(&mut self) {
        self.recent.fill(None);
    }
}

/// Schemas lie at least 64 bytes apart.
fn place(schema: &Arc<Schema>) -> usize {
    (Arc::as_ptr(schema).addr() / 64) % RECENT
}
