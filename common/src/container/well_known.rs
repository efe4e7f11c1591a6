//! The types that chunks name by number; FORMAT.md, "Well-known types".

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::number::to_usize;
use crate::record::{Fingerprint, Schema};

/// A table of types that writer and reader both know. A native chunk names such a type by its
/// number, and contains no schema of it.
///
/// # Design
///
/// Such a table is a static of its crate. Both ends name it:
/// [`NativeSerializer::with_well_known_types`](super::NativeSerializer::with_well_known_types) and
/// [`ChunkDecoder::with_well_known_types`](super::ChunkDecoder::with_well_known_types).
/// All chunks that meet share one table: Kieker's types, in `baler-connector-kieker`.
#[derive(Debug)]
pub struct WellKnownTypes {
    types: &'static [fn() -> &'static Arc<Schema>],
    calls: Option<u64>,
    /// Made when the first schema is written.
    numbers: OnceLock<HashMap<Fingerprint, u64>>,
}

impl WellKnownTypes {
    /// Creates a table. The first type has the number 1. A later version may append types.
    pub const fn new(types: &'static [fn() -> &'static Arc<Schema>]) -> Self {
        Self {
            types,
            calls: None,
            numbers: OnceLock::new(),
        }
    }

    /// Sets the number of the type for operation executions, whose tables have the layout "Calls" of
    /// FORMAT.md. It has no effect on a type whose fields are not those of the layout.
    #[must_use]
    pub const fn with_calls(mut self, number: u64) -> Self {
        self.calls = Some(number);
        self
    }

    /// The type with this number.
    pub(super) fn get(&self, number: u64) -> Option<&'static Arc<Schema>> {
        let index = to_usize(number.checked_sub(1)?);
        self.types.get(index).map(|schema| schema())
    }

    /// The number of a type that is equal to a well-known one in name, fields and roles.
    pub(super) fn number(&self, of: &Schema) -> Option<u64> {
        let numbers = self.numbers.get_or_init(|| {
            let numbers = (1..).zip(self.types);
            let numbers = numbers.map(|(number, schema)| (schema().fingerprint(), number));
            numbers.collect()
        });
        let number = *numbers.get(&of.fingerprint())?;
        let known = self.get(number).filter(|known| ***known == *of);
        known.map(|_| number)
    }

    /// The number of the type whose tables may have the layout of calls.
    pub(super) fn calls(&self) -> Option<u64> {
        self.calls
    }
}

#[cfg(test)]
mod tests;
