//! A block of rows, written by one thread while the collector reads it.
//!
//! A block is a list of 64-bit words. The first word holds the number of committed rows and words.
//! The owner, a single thread, writes a row after the last one with plain stores and commits it
//! with one release store. The collector loads the first word with acquire and then sees all
//! committed rows. The second word says whether another thread has sealed the block, and at which
//! row.
//!
//! ```text
//! committed      sealed  call                                      record
//! rows | words   at      header, trace, tin, tout, eoi|ess         header, timestamp, bytes...   ...
//! ```
//!
//! There are three forms of rows: a call of fixed length, a record of a flat type as words (see
//! `flat_rows`), and any other record as bytes. A record that is larger than a block gets a block
//! of its own size.
//!
//! Next: `collector/queue_reader.rs`, which takes the rows out.

use std::sync::{Arc, PoisonError};

use baler_common::number::to_usize;
use baler_common::record::Schema;

use super::barrier;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The words of a call: header, trace, when it began (tin) and ended (tout), and one word for its
/// number in the order of its trace (eoi) and its depth on the stack (ess).
pub(crate) const CALL_WORDS: usize = 5;

/// The lowest byte of a header: the kind of the row. The rest of a call's header is the number of
/// its site. A record's header has the number of its type in the second byte and its length in the
/// upper half.
pub(crate) const KIND: u64 = 0xff;
/// A call that becomes an operation execution record.
pub(crate) const KIND_CALL: u64 = 1;
/// A call that becomes a duration record.
pub(crate) const KIND_DURATION: u64 = 3;
/// A record as bytes. Only the kinds of calls have 1 in the lowest bit.
const KIND_RECORD: u64 = 2;
/// A record of a flat type as words; its length is in words.
pub(super) const KIND_WORDS: u64 = 4;

/// Header and timestamp of a record.
pub(super) const RECORD_HEADER_WORDS: usize = 2;

/// The lowest bits of the first word: the number of words in use, including the first two.
const WORDS_IN_USE: u64 = 0xffff_ffff;

/// The bit at which the number of rows begins.
const ROWS_FROM: u32 = 32;

/// The words of a block before its rows.
pub(super) const HEAD_WORDS: usize = 2;

/// The first word of a block without a row.
const EMPTY: u64 = HEAD_WORDS as u64;

/// One row, in the first word.
pub(super) const ROW: u64 = 1 << ROWS_FROM;

/// Set in the first word when the block takes no more rows. The bit is part of the number of words,
/// so the owner finds no room and needs no check of its own.
pub(super) const SEALED: u64 = 1 << 31;

/// The second word of a block that no other thread has sealed.
const OPEN: u64 = 0;

/// The second word while another thread seals the block. Afterwards it holds the first word of that
/// moment, which is never so small.
const SEALING: u64 = 1;

/// More types than this in one block would make the search for a type's number slow. The block then
/// counts as full.
const MAX_TYPES: usize = 64;

/// A row on its way into a block, or out of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueRow<'a> {
    /// A call, as a probe writes it.
    Call([u64; CALL_WORDS]),
    /// A record as a row of its schema.
    Record {
        schema: &'a Arc<Schema>,
        /// Nanoseconds since the Unix epoch, or `NO_TIMESTAMP`.
        timestamp: i64,
        fields: &'a [u8],
    },
}

impl QueueRow<'_> {
    /// Returns how many words of a block it takes.
    pub(super) fn words(&self) -> usize {
        match self {
            Self::Call(_) => CALL_WORDS,
            Self::Record { fields, .. } => record_words(fields.len()),
        }
    }
}

/// Returns how many words of a block a record of `bytes` bytes takes.
pub(super) fn record_words(bytes: usize) -> usize {
    bytes.div_ceil(8) + RECORD_HEADER_WORDS
}

/// Rows of one thread in order.
#[derive(Debug)]
pub(crate) struct Block {
    words: Box<[AtomicU64]>,
    /// The types of the records. The owner locks them to add one. The reader locks them to look up
    /// a number that it does not know.
    types: Mutex<Vec<Arc<Schema>>>,
}

/// A part of a block whose rows are committed.
#[derive(Debug)]
pub(crate) struct BlockPart {
    pub(super) block: Arc<Block>,
    pub(super) from: usize,
    pub(super) until: usize,
}

/// A fill position or a read position in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) rows: u64,
    pub(super) words: usize,
}

impl Extent {
    /// The position in a block without a row.
    pub(super) const NONE: Self = Self {
        rows: 0,
        words: HEAD_WORDS,
    };

    fn of(committed: u64) -> Self {
        Self {
            rows: committed >> ROWS_FROM,
            words: to_usize(committed & WORDS_IN_USE & !SEALED),
        }
    }
}

impl Block {
    /// An empty block of `words` words.
    pub(super) fn new(words: usize) -> Self {
        let words: Box<[AtomicU64]> = std::iter::repeat_with(AtomicU64::default)
            .take(words)
            .collect();
        if let Some(head) = words.first() {
            head.store(EMPTY, Ordering::Relaxed);
        }
        Self {
            words,
            types: Mutex::new(Vec::new()),
        }
    }

    /// Returns a block that has exactly the size of this row and holds it.
    pub(super) fn with(row: &QueueRow<'_>) -> Self {
        let block = Self::new(row.words() + HEAD_WORDS);
        // The row and its type always fit.
        block.append(row);
        block
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Returns how many rows and words are committed.
    pub(super) fn committed(&self) -> Extent {
        let head = self.words.first();
        Extent::of(head.map_or(EMPTY, |head| head.load(Ordering::Acquire)))
    }

    /// Prevents further appends, and returns the extent that was committed before. Only for the
    /// owner itself, or when the owner is gone.
    pub(super) fn seal(&self) -> Extent {
        let head = self.words.first();
        Extent::of(head.map_or(EMPTY, |head| head.fetch_or(SEALED, Ordering::AcqRel)))
    }

    /// As [`Self::seal`], while the owner may be appending.
    ///
    /// An owner that was just about to commit may still do so; the returned extent does not change.
    /// Only one thread may call it, and once.
    pub(super) fn seal_as_non_owner(&self) -> Extent {
        let Some([committed, sealed]) = self.words.first_chunk::<HEAD_WORDS>() else {
            return Extent::NONE;
        };
        sealed.store(SEALING, Ordering::Relaxed);
        barrier::heavy();
        let end = committed.fetch_or(SEALED, Ordering::AcqRel) & !SEALED;
        let first = sealed.compare_exchange(SEALING, end, Ordering::AcqRel, Ordering::Acquire);
        Extent::of(first.map_or_else(|owners| owners, |_| end))
    }

    /// Removes its rows. No other thread may be using the block.
    pub(super) fn clear(&self) {
        if let Some([committed, sealed]) = self.words.first_chunk::<HEAD_WORDS>() {
            committed.store(EMPTY, Ordering::Relaxed);
            sealed.store(OPEN, Ordering::Relaxed);
        }
        self.lock_types().clear();
    }

    /// Appends a row if there is room; returns whether it did. Only the block's owner may call it.
    pub(super) fn append(&self, row: &QueueRow<'_>) -> bool {
        match row {
            QueueRow::Call(call) => append_call(&self.words, || *call),
            QueueRow::Record {
                schema,
                timestamp,
                fields,
            } => self
                .number_of(schema)
                .is_some_and(|number| append_record(&self.words, number, *timestamp, fields)),
        }
    }

    /// Returns the number of a type in this block; `None` if the block has too many types.
    pub(super) fn number_of(&self, schema: &Arc<Schema>) -> Option<u8> {
        let mut types = self.lock_types();
        let known = types.iter().position(|known| Arc::ptr_eq(known, schema));
        let number = match known {
            Some(number) => number,
            None if types.len() < MAX_TYPES => {
                types.push(Arc::clone(schema));
                types.len() - 1
            }
            None => return None,
        };
        u8::try_from(number).ok()
    }

    /// Returns the type of a record with this header. `known` caches the types of this block that
    /// were needed so far.
    pub(super) fn type_of<'a>(
        &self,
        header: u64,
        known: &'a mut Vec<Arc<Schema>>,
    ) -> Option<&'a Arc<Schema>> {
        let [_, number, ..] = header.to_le_bytes();
        let number = usize::from(number);
        if number >= known.len() {
            known.clone_from(&self.lock_types());
        }
        known.get(number)
    }

    fn lock_types(&self) -> MutexGuard<'_, Vec<Arc<Schema>>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a call if there is room and the block is not sealed, not even by another thread. This is
/// the hot path of probes. `call` is evaluated only if there is room.
///
/// Only the block's owner may call it.
#[inline(always)]
pub(super) fn append_call(words: &[AtomicU64], call: impl FnOnce() -> [u64; CALL_WORDS]) -> bool {
    let Some(head) = words.first() else {
        return false;
    };
    let committed = head.load(Ordering::Relaxed);
    let at = words_in_use(committed);
    // `at` is so small that the sum cannot overflow.
    let slots = words.get(at..at.wrapping_add(CALL_WORDS));
    let Some(slots) = slots.and_then(<[_]>::first_chunk::<CALL_WORDS>) else {
        return false;
    };
    for (slot, word) in slots.iter().zip(call()) {
        slot.store(word, Ordering::Relaxed);
    }
    commit_exactly(words, committed.wrapping_add(ROW | CALL_WORDS as u64))
}

/// Appends a record whose type has this number, if there is room and the block is not sealed, not
/// even by another thread. Only the block's owner may call it.
pub(super) fn append_record(
    words: &[AtomicU64],
    number: u8,
    timestamp: i64,
    fields: &[u8],
) -> bool {
    write_record(words, number, timestamp, fields)
        .is_some_and(|commit| commit_exactly(words, commit))
}

/// Writes a record after the last row, without committing it. Returns the word to commit with.
fn write_record(words: &[AtomicU64], number: u8, timestamp: i64, fields: &[u8]) -> Option<u64> {
    let committed = words.first()?.load(Ordering::Relaxed);
    let needed = record_words(fields.len());
    let slots = words.get(words_in_use(committed)..)?.get(..needed)?;
    let ([header, time], slots) = slots.split_first_chunk()?;
    let length = u64::try_from(fields.len()).ok()?;
    header.store(
        KIND_RECORD | (u64::from(number) << 8) | (length << 32),
        Ordering::Relaxed,
    );
    time.store(timestamp as u64, Ordering::Relaxed);
    let whole = fields.chunks_exact(8);
    let rest = whole.remainder();
    for (slot, bytes) in slots
        .iter()
        .zip(whole.filter_map(|bytes| bytes.first_chunk()))
    {
        slot.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if let (false, Some(last)) = (rest.is_empty(), slots.last()) {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(rest) {
            *to = *from;
        }
        last.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
    let needed = u64::try_from(needed).ok()?;
    Some(committed.wrapping_add(ROW).wrapping_add(needed))
}

/// Returns how many words are in use. For a sealed block this is more than any block has.
#[inline(always)]
pub(super) fn words_in_use(committed: u64) -> usize {
    to_usize(committed & WORDS_IN_USE)
}

/// Commits the written row, unless the block was sealed meanwhile; returns whether it was
/// committed.
#[inline(always)]
pub(super) fn commit_exactly(words: &[AtomicU64], commit: u64) -> bool {
    let Some(head @ [committed, sealed]) = words.first_chunk::<HEAD_WORDS>() else {
        return false;
    };
    committed.store(commit, Ordering::Release);
    // The sealing thread does the same in the opposite order, so one of the two sees the other.
    barrier::light();
    sealed.load(Ordering::Relaxed) == OPEN || agree_on_end(head, commit)
}

/// Returns whether the committed row is before the end of a block that another thread seals. The
/// first of the two threads to write the end decides it.
#[cold]
fn agree_on_end([committed, sealed]: &[AtomicU64; HEAD_WORDS], commit: u64) -> bool {
    // The commit has overwritten the bit that prevents the owner from appending.
    committed.fetch_or(SEALED, Ordering::Relaxed);
    let end = match sealed.compare_exchange(SEALING, commit, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => commit,
        Err(end) => end,
    };
    Extent::of(commit).words <= Extent::of(end).words
}
