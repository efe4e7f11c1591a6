//! Which types a batch has already.

use std::sync::Arc;

use super::Table;
use crate::record::schema::{Fingerprint, Schema};

/// How many types are found by their address.
const RECENT: usize = 16;

/// Finds the tables of types while a batch is filled.
#[derive(Debug, Default)]
pub(super) struct TypeIndex {
    /// By a few bits of a schema's address. Held, so that no other schema comes to have it.
    recent: [Option<(Arc<Schema>, usize)>; RECENT],
    /// Positions of tables, sorted; two have one fingerprint only when fingerprints collide.
    known: Vec<(Fingerprint, usize)>,
}

impl TypeIndex {
    /// The position of the type's table, if it was found lately under this address.
    pub(super) fn recent(&self, schema: &Arc<Schema>) -> Option<usize> {
        match self.recent.get(place(schema)) {
            Some(Some((recent, position))) if Arc::ptr_eq(recent, schema) => Some(*position),
            _ => None,
        }
    }

    /// The position of the type's table, if there is one.
    pub(super) fn find(&mut self, schema: &Arc<Schema>, tables: &[Table]) -> Option<usize> {
        let fingerprint = schema.fingerprint();
        let start = self
            .known
            .partition_point(|(known, _)| *known < fingerprint);
        let alike = self.known.get(start..)?.iter();
        let position = alike
            .take_while(|(known, _)| *known == fingerprint)
            .map(|(_, position)| *position)
            .find(|position| {
                let table = tables.get(*position);
                table.is_some_and(|table| table.schema == *schema)
            })?;
        self.remember(schema, position);
        Some(position)
    }

    /// Adds a type that was not found.
    pub(super) fn add(&mut self, schema: &Arc<Schema>, position: usize) {
        let entry = (schema.fingerprint(), position);
        let at = self.known.partition_point(|known| *known < entry);
        self.known.insert(at, entry);
        self.remember(schema, position);
    }

    fn remember(&mut self, schema: &Arc<Schema>, position: usize) {
        if let Some(recent) = self.recent.get_mut(place(schema)) {
            *recent = Some((Arc::clone(schema), position));
        }
    }

    /// Forgets every type.
    pub(super) fn clear(&mut self) {
        self.recent.fill(None);
        self.known.clear();
    }
}

/// Schemas lie at least 64 bytes apart.
fn place(schema: &Arc<Schema>) -> usize {
    (Arc::as_ptr(schema).addr() / 64) % RECENT
}
