//! A block of rows, written by one thread while another one reads.
//!
//! A block is a row of 64-bit words. The first one says what is committed; the owner, a single
//! thread, writes a row behind the last one with plain stores and then commits it with one release
//! store. Whoever loads that word with acquire sees all rows below it, while the owner goes on.
//!
//! ```text
//! committed      row                         row
//! rows | words   header, time, fields...     header, trace, tin, tout, eoi and ess   ...
//! ```

use std::sync::{Arc, PoisonError};

use baler_common::record::Schema;

use super::hot::zeroed;
use super::sync::{AtomicU64, Mutex, Ordering};

/// The lowest bits of the first word: how many words are in use, the first one included. So few
/// bits that what a row adds to the first word fits an instruction.
const WORDS: u64 = 0xffff;

/// Where the number of rows begins.
const ROWS_FROM: u32 = 16;

/// No block may have as many words as this.
pub(super) const WORDS_BELOW: usize = 1 << 15;

/// The first word of a block without a row.
const EMPTY: u64 = 1;

/// One row, in the first word.
const ROW: u64 = 1 << ROWS_FROM;

/// Set in the first word when nothing is taken any more. It stands where the number of words is, so
/// that the owner finds no room and needs no check of its own.
const SEALED: u64 = 1 << 15;

/// More types than this in one block would make the search for a type's number slow; the block is
/// then as good as full.
const MAX_TYPES: usize = 64;

/// The words of a call: header, trace, tin, tout, eoi and ess. No other compact row has more.
#[cfg(feature = "enable")]
pub(crate) const CALL_WORDS: usize = 5;

/// The words of a duration: header, tin, tout.
#[cfg(feature = "enable")]
pub(crate) const DURATION_WORDS: usize = 3;

/// The words of an event: header, trace, time, order index.
#[cfg(feature = "enable")]
const EVENT_WORDS: usize = 4;

/// In the lowest bits of a header, what the row is. Those of compact rows are odd, so that the
/// header is known not to be 0.
pub(crate) const KIND: u64 = 0x0f;
#[cfg(feature = "enable")]
pub(crate) const KIND_CALL: u64 = 1;
const KIND_FIELDS: u64 = 2;
const KIND_FIELDS_TICKS: u64 = 3;
#[cfg(feature = "enable")]
pub(crate) const KIND_DURATION: u64 = 5;
#[cfg(feature = "enable")]
pub(crate) const KIND_TRACE: u64 = 7;
#[cfg(feature = "enable")]
pub(crate) const KIND_BEFORE: u64 = 9;
#[cfg(feature = "enable")]
pub(crate) const KIND_AFTER: u64 = 11;

/// Added to the kind of a row that began or ended by a clock in nanoseconds rather than ticks; the
/// times of calls and durations have a mark of their own.
#[cfg(feature = "enable")]
pub(crate) const TIN_UNIX_NS: u64 = 0x10;
#[cfg(feature = "enable")]
pub(crate) const TOUT_UNIX_NS: u64 = 0x20;

/// Header and time of a row with fields.
const FIELDS_HEADER_WORDS: usize = 2;

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

/// When a record with fields was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Nanoseconds since the Unix epoch, or `NO_TIMESTAMP`.
    UnixNs(i64),
    /// Ticks of the processor's counter, which the collector converts.
    Ticks(u64),
}

/// How many words a compact row with this header has; `None` for a row with fields.
#[cfg(feature = "enable")]
const fn compact_words(header: u64) -> Option<usize> {
    match header & KIND {
        KIND_CALL | KIND_TRACE => Some(CALL_WORDS),
        KIND_DURATION => Some(DURATION_WORDS),
        KIND_BEFORE | KIND_AFTER => Some(EVENT_WORDS),
        _ => None,
    }
}

/// A row on its way into a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowRef<'a> {
    /// A call, as a probe writes it, or another compact row with words left over.
    #[cfg(feature = "enable")]
    Call([u64; CALL_WORDS]),
    /// A record as a row of the schema.
    Fields {
        schema: &'a Arc<Schema>,
        stamp: Stamp,
        fields: &'a [u8],
    },
}

/// A row as it lies in a block.
#[derive(Debug)]
pub(crate) enum Stored<'a> {
    #[cfg(feature = "enable")]
    Call([u64; CALL_WORDS]),
    Fields {
        schema: &'a Arc<Schema>,
        stamp: Stamp,
        fields: &'a [u8],
    },
}

/// What became of a row whose owner asked for room without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    Yes,
    /// The block was sealed: the row was not emitted.
    Late,
    /// There is no room, or it is not known whether there is.
    No,
}

impl Extent {
    /// That of a block without a row.
    pub(super) const NONE: Self = Self { rows: 0, words: 1 };

    fn of(committed: u64) -> Self {
        Self {
            rows: committed >> ROWS_FROM,
            words: usize::try_from(committed & WORDS & !SEALED).unwrap_or(usize::MAX),
        }
    }
}

/// How many words of a block a row with so many bytes of fields takes.
pub(super) fn words_for(fields: usize) -> usize {
    fields.div_ceil(8).saturating_add(FIELDS_HEADER_WORDS)
}

/// Appends a row of so many words, if there is room: the hot path of probes.
///
/// Only the block's owner may call it. `row` is asked once there is room.
#[cfg(feature = "enable")]
#[inline]
pub(super) fn append_words<const N: usize>(
    words: &[AtomicU64],
    row: impl FnOnce() -> [u64; N],
) -> bool {
    let Some(head) = words.first() else {
        return false;
    };
    let committed = head.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS).unwrap_or(usize::MAX);
    // One comparison: `at` is so small that the sum cannot overflow.
    let slots = words.get(at..at.wrapping_add(N));
    let Some(slots) = slots.and_then(|slots| slots.first_chunk::<N>()) else {
        return false;
    };
    for (slot, word) in slots.iter().zip(row()) {
        slot.store(word, Ordering::Relaxed);
    }
    // Loaded again, so that it becomes one instruction: nobody else adds to it, and who seals the
    // block meanwhile is not heeded either way.
    let committed = head.load(Ordering::Relaxed);
    head.store(committed.wrapping_add(ROW | N as u64), Ordering::Release);
    true
}

/// Appends a compact row, of which some words may be left over, if there is room.
///
/// Only the block's owner may call it.
#[cfg(feature = "enable")]
pub(super) fn append_compact(words: &[AtomicU64], row: [u64; CALL_WORDS]) -> bool {
    let [header, first, second, third, _] = row;
    match compact_words(header) {
        Some(DURATION_WORDS) => append_words(words, || [header, first, second]),
        Some(EVENT_WORDS) => append_words(words, || [header, first, second, third]),
        _ => append_words(words, || row),
    }
}

/// Writes a row with fields behind the last one, without committing it; the word to commit with.
fn write_fields<'a>(
    words: &'a [AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: &[u8],
) -> Option<(&'a AtomicU64, u64)> {
    let head = words.first()?;
    let committed = head.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS).ok()?;
    let needed = words_for(fields.len());
    let slots = words.get(at..)?.get(..needed)?;
    let (kind, time) = match stamp {
        Stamp::UnixNs(time) => (KIND_FIELDS, time.cast_unsigned()),
        Stamp::Ticks(ticks) => (KIND_FIELDS_TICKS, ticks),
    };
    let ([header, stamp], slots) = slots.split_first_chunk()?;
    let length = u64::try_from(fields.len()).ok()?;
    header.store(
        kind | (u64::from(number) << 8) | (length << 32),
        Ordering::Relaxed,
    );
    stamp.store(time, Ordering::Relaxed);
    let (whole, rest) = fields.as_chunks::<8>();
    for (slot, bytes) in slots.iter().zip(whole) {
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
    Some((head, committed.wrapping_add(ROW).wrapping_add(needed)))
}

/// Appends a row with fields whose type has this number, and says truly whether it came before the
/// block was sealed. Only the block's owner may call it.
pub(super) fn append_fields(
    words: &[AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: &[u8],
) -> Appended {
    let Some((head, commit)) = write_fields(words, number, stamp, fields) else {
        return Appended::No;
    };
    // The one who seals and this thread change the same word, so one of them comes first for both.
    // Probes tell nobody whether their record was taken and do without this.
    let before = head.swap(commit, Ordering::AcqRel);
    if before & SEALED == 0 {
        Appended::Yes
    } else {
        head.store(before, Ordering::Relaxed);
        Appended::Late
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

    /// Keeps the owner from appending, and says what was committed before.
    ///
    /// An owner that was just about to commit may still do so; what is said here does not change.
    pub(super) fn seal(&self) -> Extent {
        let head = self.words.first();
        Extent::of(head.map_or(EMPTY, |head| head.fetch_or(SEALED, Ordering::AcqRel)))
    }

    /// Forgets its rows. Nobody else may be using it.
    pub(super) fn clear(&self) {
        if let Some(head) = self.words.first() {
            head.store(EMPTY, Ordering::Relaxed);
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

/// Reads a part of a block that is committed.
#[derive(Debug)]
pub(super) struct BlockReader {
    block: Arc<Block>,
    at: usize,
    until: usize,
}

/// What a reader needs anew for each block, and keeps to use its memory again.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    types: Vec<Arc<Schema>>,
    fields: Vec<u8>,
}

impl BlockReader {
    /// Reads the words between two extents.
    pub(super) fn new(block: Arc<Block>, from: usize, until: usize) -> Self {
        Self {
            block,
            at: from,
            until,
        }
    }

    /// Whether a call is next.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn is_call_next(&self) -> bool {
        let next = (self.at < self.until).then(|| self.block.words.get(self.at));
        next.flatten()
            .is_some_and(|header| header.load(Ordering::Relaxed) & KIND == KIND_CALL)
    }

    /// Hands over calls as long as they are next, so many at most, and as long as `take` wants more.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn calls(&mut self, most: usize, mut take: impl FnMut([u64; CALL_WORDS]) -> bool) {
        let words = self
            .block
            .words
            .get(self.at..self.until)
            .unwrap_or_default();
        for slots in words.as_chunks::<CALL_WORDS>().0.iter().take(most) {
            let call = slots.each_ref().map(|slot| slot.load(Ordering::Relaxed));
            let [header, ..] = call;
            if header & KIND != KIND_CALL {
                break;
            }
            self.at = self.at.saturating_add(CALL_WORDS);
            if !take(call) {
                break;
            }
        }
    }

    /// Takes the next row; `buffer` must have been forgotten when this reader was made.
    pub(super) fn next_row<'a>(&mut self, buffer: &'a mut ReadBuffer) -> Option<Stored<'a>> {
        let words = self.block.words.get(self.at..self.until)?;
        let header = words.first()?.load(Ordering::Relaxed);
        let kind = header & KIND;
        #[cfg(feature = "enable")]
        if kind == KIND_CALL {
            let slots = words.first_chunk::<CALL_WORDS>()?;
            self.at = self.at.saturating_add(CALL_WORDS);
            let call = slots.each_ref().map(|slot| slot.load(Ordering::Relaxed));
            return Some(Stored::Call(call));
        } else if let Some(length) = compact_words(header) {
            let mut row = [0; CALL_WORDS];
            for (to, slot) in row.iter_mut().zip(words.get(..length)?) {
                *to = slot.load(Ordering::Relaxed);
            }
            self.at = self.at.saturating_add(length);
            return Some(Stored::Call(row));
        }
        let number = usize::from((header >> 8).to_le_bytes().first().copied()?);
        let length = usize::try_from(header >> 32).ok()?;
        let needed = words_for(length);
        let ([_, stamp], slots) = words.get(..needed)?.split_first_chunk()?;
        self.at = self.at.saturating_add(needed);
        buffer.fields.clear();
        for slot in slots {
            let bytes = slot.load(Ordering::Relaxed).to_le_bytes();
            buffer.fields.extend_from_slice(&bytes);
        }
        buffer.fields.truncate(length);
        if number >= buffer.types.len() {
            buffer.types.clone_from(&self.block.lock_types());
        }
        let stamp = stamp.load(Ordering::Relaxed);
        Some(Stored::Fields {
            schema: buffer.types.get(number)?,
            stamp: if kind == KIND_FIELDS_TICKS {
                Stamp::Ticks(stamp)
            } else {
                Stamp::UnixNs(stamp.cast_signed())
            },
            fields: &buffer.fields,
        })
    }
}

impl ReadBuffer {
    /// Forgets the types of the block before.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
    }
}
