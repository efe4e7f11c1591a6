//! A block of rows, each behind its length, its time and its type.

use std::sync::Arc;

use baler_common::record::Schema;

/// More types than this in one block would make the search for a type's number slow; the block is
/// then as good as full.
const MAX_TYPES: usize = 64;

/// Length, time and number of the type.
const ROW_HEADER_BYTES: usize = 4 + 8 + 1;

/// Rows of one thread in order.
#[derive(Debug)]
pub(crate) struct Block {
    data: Vec<u8>,
    /// How far `data` may grow: what was charged to the budget.
    limit: usize,
    types: Vec<Arc<Schema>>,
    /// The number of the type of the row before: mostly that of the next one, too.
    last_type: u8,
    records: u64,
    read: usize,
}

/// A row as it lies in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The record's type.
    pub(crate) schema: &'a Arc<Schema>,
    /// Nanoseconds since the Unix epoch, or `NO_TIMESTAMP`.
    pub(crate) timestamp: i64,
    /// The fields.
    pub(crate) fields: &'a [u8],
}

impl Block {
    /// An empty block that holds so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            data: Vec::with_capacity(limit),
            limit,
            types: Vec::new(),
            last_type: 0,
            records: 0,
            read: 0,
        }
    }

    /// How many bytes a block must have for a row with fields of this length.
    pub(super) fn needed(fields: usize) -> usize {
        fields.saturating_add(ROW_HEADER_BYTES)
    }

    /// What was charged for it.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// How many rows were appended.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Forgets its rows, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.types.clear();
        self.last_type = 0;
        self.records = 0;
        self.read = 0;
    }

    /// Appends a row; `false` when it does not fit.
    pub(super) fn append(&mut self, schema: &Arc<Schema>, timestamp: i64, fields: &[u8]) -> bool {
        let left = self.limit.saturating_sub(self.data.len());
        let (Ok(length), true) = (
            u32::try_from(fields.len()),
            Self::needed(fields.len()) <= left,
        ) else {
            return false;
        };
        let Some(number) = self.number_of(schema) else {
            return false;
        };
        self.data.extend_from_slice(&length.to_le_bytes());
        self.data.extend_from_slice(&timestamp.to_le_bytes());
        self.data.push(number);
        self.data.extend_from_slice(fields);
        self.records = self.records.saturating_add(1);
        true
    }

    /// Takes the next row that was not taken yet.
    pub(crate) fn next_row(&mut self) -> Option<Row<'_>> {
        let rest = self.data.get(self.read..)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (timestamp, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let fields = rest.get(..length)?;
        self.read = self.read.saturating_add(Self::needed(length));
        Some(Row {
            schema: self.types.get(usize::from(*number))?,
            timestamp: i64::from_le_bytes(*timestamp),
            fields,
        })
    }

    fn number_of(&mut self, schema: &Arc<Schema>) -> Option<u8> {
        let is_it = |known: &Arc<Schema>| Arc::ptr_eq(known, schema);
        if self
            .types
            .get(usize::from(self.last_type))
            .is_some_and(is_it)
        {
            return Some(self.last_type);
        }
        let position = match self.types.iter().position(is_it) {
            Some(position) => position,
            None if self.types.len() < MAX_TYPES => {
                self.types.push(Arc::clone(schema));
                self.types.len().saturating_sub(1)
            }
            None => return None,
        };
        self.last_type = u8::try_from(position).ok()?;
        Some(self.last_type)
    }
}
