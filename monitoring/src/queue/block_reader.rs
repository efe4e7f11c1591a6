//! The collector's side of a block: its rows, in order.

use std::sync::Arc;

use baler_common::record::{Schema, WordRows};

use super::block::{BlockPart, CALL_WORDS, QueueRow, RECORD_HEADER_WORDS, record_words};
use super::flat_rows::{self, BlockWords, FlatReader};
use super::sync::{AtomicU64, Ordering};

/// Reads one part of a block after the other.
#[derive(Debug, Default)]
pub(crate) struct BlockReader {
    part: Option<BlockPart>,
    /// The types of the block that were needed so far.
    types: Vec<Arc<Schema>>,
    /// The bytes of the last record.
    fields: Vec<u8>,
    flat: FlatReader,
}

impl BlockReader {
    /// Continues with this part.
    pub(crate) fn read(&mut self, part: BlockPart) {
        self.part = Some(part);
        self.types.clear();
    }

    /// Whether there is another row. Releases the part if there is none.
    #[inline]
    pub(crate) fn has_row(&mut self) -> bool {
        match &self.part {
            Some(part) if part.from < part.until => true,
            _ => {
                self.part = None;
                false
            }
        }
    }

    /// Whether a part is being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.part.is_some()
    }

    /// Returns the next row if it is a call, without consuming it.
    #[inline]
    pub(crate) fn next_call(&self) -> Option<[u64; CALL_WORDS]> {
        let BlockPart { block, from, until } = self.part.as_ref()?;
        let words = block.words().get(*from..*until)?;
        words.first_chunk().and_then(call_in)
    }

    /// Passes the next calls to `take`, at most `max_rows` calls, until `take` returns `false`.
    /// That call stays. The others count as taken even if `take` panics.
    #[inline]
    pub(crate) fn calls(
        &mut self,
        max_rows: usize,
        mut take: impl FnMut([u64; CALL_WORDS]) -> bool,
    ) {
        let Some(BlockPart { block, from, until }) = &mut self.part else {
            return;
        };
        let Some(words) = block.words().get(*from..*until) else {
            return;
        };
        for row in words.chunks_exact(CALL_WORDS).take(max_rows) {
            let Some(call) = row.first_chunk().and_then(call_in) else {
                return;
            };
            let next = *from + CALL_WORDS;
            let this = std::mem::replace(from, next);
            if !take(call) {
                *from = this;
                return;
            }
        }
    }

    /// Takes the next row.
    pub(crate) fn next_row(&mut self) -> Option<QueueRow<'_>> {
        let Self {
            part,
            types,
            fields,
            flat,
        } = self;
        let BlockPart { block, from, until } = part.as_mut()?;
        // If this is not a valid row, the rest of the part cannot be read.
        let at = std::mem::replace(from, *until);
        let words = block.words().get(at..*until)?;
        if let Some(call) = words.first_chunk().and_then(call_in) {
            *from = at + CALL_WORDS;
            return Some(QueueRow::Call(call));
        }
        let header = words.first()?.load(Ordering::Relaxed);
        let timestamp = words.get(1)?.load(Ordering::Relaxed) as i64;
        let schema = block.type_of(header, types)?;
        let length = usize::try_from(header >> 32).ok()?;
        if flat_rows::is_flat(header) {
            flat.write_fields(block, at, schema, fields);
            *from = at + length;
        } else {
            let needed = record_words(length);
            let slots = words.get(RECORD_HEADER_WORDS..needed)?;
            fields.clear();
            fields.reserve(slots.len() * 8);
            for slot in slots {
                fields.extend_from_slice(&slot.load(Ordering::Relaxed).to_le_bytes());
            }
            fields.truncate(length);
            *from = at + needed;
        }
        Some(QueueRow::Record {
            schema,
            timestamp,
            fields,
        })
    }

    /// Whether the next row is a flat record.
    #[inline]
    pub(crate) fn is_flat_next(&self) -> bool {
        let header = self.part.as_ref().and_then(|part| {
            let words = part.block.words().get(part.from..part.until)?;
            Some(words.first()?.load(Ordering::Relaxed))
        });
        header.is_some_and(flat_rows::is_flat)
    }

    /// Passes the next run of flat records of one type to `take`, at most `max.0` records and about
    /// `max.1` bytes. `take` returns how many it consumed; the rest stay queued.
    ///
    /// All of them count as consumed if `take` panics.
    pub(crate) fn flat_rows(
        &mut self,
        max: (usize, usize),
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &WordRows<'_>) -> usize,
    ) {
        if let Some(part) = &mut self.part {
            self.flat.rows(part, &mut self.types, max, take);
        }
    }
}

/// Returns the call in these words, if they are one.
#[inline]
fn call_in(words: &[AtomicU64; CALL_WORDS]) -> Option<[u64; CALL_WORDS]> {
    let call = words.each_ref().map(|word| word.load(Ordering::Relaxed));
    let [header, ..] = call;
    (header & 1 != 0).then_some(call)
}
