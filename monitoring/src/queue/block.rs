//! A block of rows, written by one thread while another one reads.
//!
//! A block is a row of 64-bit words. The first one says what is committed; the owner, a single
//! thread, writes a row behind the last one with plain stores and then commits it with one release
//! store. Whoever loads that word with acquire sees all rows below it, while the owner goes on.
//! The second one says whether somebody else has ended the block, and where.
//!
//! ```text
//! committed      sealed   row                        row                             row
//! rows | words   at       header, time, bytes...     header, time, words, texts...   header, trace, tin, tout, eoi and ess   ...
//! ```
//!
//! A row of words has no time of its own where one of its fields is its time, and no text that a row
//! before it has put into the block: it says where that is.

mod append;
mod read;
mod row;

use std::sync::{Arc, PoisonError};

use baler_common::record::Schema;

use super::barrier;
use super::hot::zeroed;
use super::sync::{AtomicU64, Mutex, Ordering};
pub(super) use append::{Appended, append_fields, append_row, words_in_use};
#[cfg(feature = "enable")]
pub(super) use append::{append_compact, append_words};
pub(super) use read::BlockReader;
pub(crate) use read::{BlockWords, ReadBuffer};
#[cfg(feature = "enable")]
pub(crate) use row::{
    CALL_WORDS, DURATION_WORDS, KIND, KIND_AFTER, KIND_BEFORE, KIND_CALL, KIND_DURATION,
    KIND_TRACE, TIN_UNIX_NS, TOUT_UNIX_NS,
};
pub(crate) use row::{RowRef, Stamp, Stored};
pub(super) use row::{RowTime, words_for};

/// The lowest bits of the first word: how many words are in use, the first ones included. So few
/// bits that what a row adds to the first word fits an instruction.
const WORDS_IN_USE: u64 = 0xffff;

/// Where the number of rows begins.
const ROWS_FROM: u32 = 16;

/// No block may have as many words as this.
pub(super) const WORDS_BELOW: usize = 1 << 15;

/// The words of a block before its rows.
pub(super) const HEAD_WORDS: usize = 2;

/// The first word of a block without a row.
const EMPTY: u64 = HEAD_WORDS as u64;

/// One row, in the first word.
const ROW: u64 = 1 << ROWS_FROM;

/// Set in the first word when nothing is taken any more. It stands where the number of words is, so
/// that the owner finds no room and needs no check of its own.
pub(super) const SEALED: u64 = 1 << 15;

/// The second word of a block that nobody has ended but its owner.
const OPEN: u64 = 0;

/// The second word while somebody else ends the block; afterwards it is what the first word was at the
/// end, which is never so little.
const SEALING: u64 = 1;

/// More types than this in one block would make the search for a type's number slow; the block is
/// then as good as full.
const MAX_TYPES: usize = 64;

/// Rows of one thread in order.
#[derive(Debug)]
pub(crate) struct Block {
    words: Box<[AtomicU64]>,
    /// The types of the rows with fields. Locked by the owner when one is new in this block, and by
    /// the reader when it meets a number that it does not know.
    types: Mutex<Vec<Arc<Schema>>>,
}

/// How far a block is filled or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) rows: u64,
    pub(super) words: usize,
}

impl Extent {
    /// That of a block without a row.
    pub(super) const NONE: Self = Self {
        rows: 0,
        words: HEAD_WORDS,
    };

    fn of(committed: u64) -> Self {
        Self {
            rows: committed >> ROWS_FROM,
            words: usize::try_from(committed & WORDS_IN_USE & !SEALED).unwrap_or(usize::MAX),
        }
    }
}

impl Block {
    /// An empty block of so many words.
    pub(super) fn new(words: usize) -> Self {
        let words = zeroed(words);
        if let Some(head) = words.first() {
            head.store(EMPTY, Ordering::Relaxed);
        }
        Self {
            words,
            types: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// How many words it has.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// How many bytes these are.
    pub(super) fn bytes(&self) -> usize {
        self.words.len().saturating_mul(8)
    }

    /// How many rows and words are committed.
    pub(super) fn committed(&self) -> Extent {
        let head = self.words.first();
        Extent::of(head.map_or(EMPTY, |head| head.load(Ordering::Acquire)))
    }

    /// Keeps the owner from appending, and says what was committed before: for the owner itself, or
    /// when it is gone.
    pub(super) fn seal(&self) -> Extent {
        let head = self.words.first();
        Extent::of(head.map_or(EMPTY, |head| head.fetch_or(SEALED, Ordering::AcqRel)))
    }

    /// As [`Self::seal`], while the owner may be appending.
    ///
    /// An owner that was just about to commit may still do so; what is said here does not change.
    /// Only one may call it, once.
    pub(super) fn seal_from_afar(&self) -> Extent {
        let Some([committed, sealed]) = self.words.first_chunk::<HEAD_WORDS>() else {
            return Extent::NONE;
        };
        sealed.store(SEALING, Ordering::Relaxed);
        barrier::heavy();
        let end = committed.fetch_or(SEALED, Ordering::AcqRel) & !SEALED;
        let first = sealed.compare_exchange(SEALING, end, Ordering::AcqRel, Ordering::Acquire);
        Extent::of(first.map_or_else(|owners| owners, |_| end))
    }

    /// Forgets its rows. Nobody else may be using it.
    pub(super) fn clear(&self) {
        if let Some([committed, sealed]) = self.words.first_chunk::<HEAD_WORDS>() {
            committed.store(EMPTY, Ordering::Relaxed);
            sealed.store(OPEN, Ordering::Relaxed);
        }
        self.lock_types().clear();
    }

    /// Appends a row, if there is room. Only the block's owner may call it.
    pub(super) fn append(&self, row: &RowRef<'_>) -> bool {
        match row {
            #[cfg(feature = "enable")]
            RowRef::Call(call) => append_compact(&self.words, *call),
            RowRef::Fields {
                schema,
                stamp,
                fields,
            } => self.number_of(schema).is_some_and(|number| {
                append_fields(&self.words, number, *stamp, fields) == Appended::Yes
            }),
        }
    }

    /// The number of a type in this block; `None` when it has too many.
    pub(super) fn number_of(&self, schema: &Arc<Schema>) -> Option<u8> {
        let mut types = self.lock_types();
        let known = types.iter().position(|known| Arc::ptr_eq(known, schema));
        let number = match known {
            Some(number) => number,
            None if types.len() < MAX_TYPES => {
                types.push(Arc::clone(schema));
                types.len().saturating_sub(1)
            }
            None => return None,
        };
        u8::try_from(number).ok()
    }

    fn lock_types(&self) -> super::sync::MutexGuard<'_, Vec<Arc<Schema>>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
