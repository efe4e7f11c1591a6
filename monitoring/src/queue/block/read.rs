//! The collector's side of a block: its rows, in order.

use std::sync::Arc;

use baler_common::record::Schema;

#[cfg(feature = "enable")]
use super::super::sync::AtomicU64;
use super::super::sync::Ordering;
use super::{Block, QueueRow, record_words};
#[cfg(feature = "enable")]
use super::{CALL_WORDS, KIND, KIND_RECORD};

/// A part of a block whose rows are committed.
#[derive(Debug)]
pub(crate) struct BlockPart {
    pub(in super::super) block: Arc<Block>,
    pub(in super::super) from: usize,
    pub(in super::super) until: usize,
}

/// Reads one part of a block after the other.
#[derive(Debug, Default)]
pub(crate) struct BlockReader {
    part: Option<BlockPart>,
    /// The types of the block, as far as they were needed.
    types: Vec<Arc<Schema>>,
    /// The bytes of the last record.
    fields: Vec<u8>,
}

impl BlockReader {
    /// Goes on with this part.
    pub(crate) fn read(&mut self, part: BlockPart) {
        self.part = Some(part);
        self.types.clear();
    }

    /// Whether there is another row. Lets go of the part if there is none.
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

    /// The next row, if it is a call; it stays.
    #[cfg(feature = "enable")]
    #[inline]
    pub(crate) fn next_call(&self) -> Option<[u64; CALL_WORDS]> {
        let BlockPart { block, from, until } = self.part.as_ref()?;
        let words = block.words().get(*from..*until)?;
        words.first_chunk().and_then(call_in)
    }

    /// Passes the calls that are next to `take`, at most `max_rows` of them, until `take` returns
    /// `false`. That call stays. The others count as taken even if `take` panics.
    #[cfg(feature = "enable")]
    #[inline]
    pub(crate) fn calls(
        &mut self,
        max_rows: usize,
        mut take: impl FnMut([u64; CALL_WORDS]) -> bool,
    ) {
        let Some(BlockPart { block, from, until }) = &mut self.part else {
            return;
        };
        let words = block.words().get(*from..*until).unwrap_or_default();
        for row in words.as_chunks().0.iter().take(max_rows) {
            let Some(call) = call_in(row) else {
                return;
            };
            let next = from.saturating_add(CALL_WORDS);
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
        } = self;
        let BlockPart { block, from, until } = part.as_mut()?;
        // If this is no row, nothing of the part can be read.
        let at = std::mem::replace(from, *until);
        let words = block.words().get(at..*until)?;
        #[cfg(feature = "enable")]
        if let Some(call) = words.first_chunk().and_then(call_in) {
            *from = at.saturating_add(CALL_WORDS);
            return Some(QueueRow::Call(call));
        }
        let header = words.first()?.load(Ordering::Relaxed);
        let length = usize::try_from(header >> 32).ok()?;
        let needed = record_words(length);
        let ([_, time], slots) = words.get(..needed)?.split_first_chunk()?;
        let timestamp = time.load(Ordering::Relaxed).cast_signed();
        fields.clear();
        fields.reserve(slots.len().saturating_mul(8));
        for slot in slots {
            fields.extend_from_slice(&slot.load(Ordering::Relaxed).to_le_bytes());
        }
        fields.truncate(length);
        let [_, number, ..] = header.to_le_bytes();
        let number = usize::from(number);
        if number >= types.len() {
            types.clone_from(&block.lock_types());
        }
        *from = at.saturating_add(needed);
        Some(QueueRow::Record {
            schema: types.get(number)?,
            timestamp,
            fields,
        })
    }
}

/// The call in these words, if they are one.
#[cfg(feature = "enable")]
#[inline]
fn call_in(words: &[AtomicU64; CALL_WORDS]) -> Option<[u64; CALL_WORDS]> {
    let call = words.each_ref().map(|word| word.load(Ordering::Relaxed));
    let [header, ..] = call;
    (header & KIND != KIND_RECORD).then_some(call)
}
