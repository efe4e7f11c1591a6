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

mod read;

use std::sync::{Arc, PoisonError};

use baler_common::record::{Schema, WordText, text_words, words_of_text};

use super::barrier;
use super::hot::zeroed;
use super::prefetch::prefetch_to_write;
use super::sync::{AtomicU64, Mutex, Ordering};
use super::texts;
pub(super) use read::BlockReader;
pub(crate) use read::{BlockWords, ReadBuffer};

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
const KIND_WORDS: u64 = 4;
const KIND_WORDS_TICKS: u64 = 6;
/// The row's time is one of its fields; the third byte says in which word.
const KIND_WORDS_TIMED: u64 = 8;
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

/// Header and time of a row with fields, as bytes or as words.
const FIELDS_HEADER_WORDS: usize = 2;

/// The header of a row of words whose time is among its fields.
const TIMED_HEADER_WORDS: usize = 1;

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

/// When a row of words was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowTime {
    /// The row says so by itself.
    Own(Stamp),
    /// The word of this number among its fields says so.
    Field(usize),
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
    let at = usize::try_from(committed & WORDS_IN_USE).unwrap_or(usize::MAX);
    // One comparison: `at` is so small that the sum cannot overflow.
    let slots = words.get(at..at.wrapping_add(N));
    let Some(slots) = slots.and_then(|slots| slots.first_chunk::<N>()) else {
        return false;
    };
    prefetch_to_write(words, at);
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

/// The words before the rows.
type Head = [AtomicU64; HEAD_WORDS];

/// Writes a row with fields behind the last one, without committing it; the word to commit with.
fn write_fields<'a>(
    words: &'a [AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: &[u8],
) -> Option<(&'a Head, u64)> {
    let head: &Head = words.first_chunk()?;
    let [committed, _] = head;
    let committed = committed.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS_IN_USE).ok()?;
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
    match write_fields(words, number, stamp, fields) {
        Some((head, commit)) => commit_truly(head, commit),
        None => Appended::No,
    }
}

/// Writes a row of words behind the last one, without committing it; the word to commit with.
#[inline(always)]
fn write_words<'a, const WORDS: usize, const TEXTS: usize>(
    words: &'a [AtomicU64],
    number: u8,
    time: RowTime,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> Option<(&'a Head, u64)> {
    let head: &Head = words.first_chunk()?;
    let [committed, _] = head;
    let committed = committed.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS_IN_USE).ok()?;
    let (kind, time, head_words) = match time {
        RowTime::Own(Stamp::UnixNs(time)) => {
            let time = Some(time.cast_unsigned());
            (KIND_WORDS, time, FIELDS_HEADER_WORDS)
        }
        RowTime::Own(Stamp::Ticks(ticks)) => (KIND_WORDS_TICKS, Some(ticks), FIELDS_HEADER_WORDS),
        RowTime::Field(word) => {
            let word = u64::try_from(word).ok()?;
            (KIND_WORDS_TIMED | word << 16, None, TIMED_HEADER_WORDS)
        }
    };
    let texts_at = at.wrapping_add(head_words + WORDS);
    let mut end = texts_at;
    let mut places = [0; TEXTS];
    for (text, place) in texts.iter().zip(&mut places) {
        *place = texts::place(words, at, text.text(), end);
        if *place == end {
            // No text is so long that the sum of so few could overflow.
            end = end.wrapping_add(text_words(text.text().len()));
        }
    }
    prefetch_to_write(words, at);
    let slots = words.get(at..end)?;
    let needed = u64::try_from(slots.len()).ok()?;
    let (header, mut slots) = slots.split_first()?;
    let mut fields = fields();
    for (text, place) in texts.iter().zip(places) {
        if !text.place(&mut fields, place) {
            return None;
        }
    }
    header.store(
        kind | (u64::from(number) << 8) | (needed << 32),
        Ordering::Relaxed,
    );
    if let Some(time) = time {
        let (slot, behind) = slots.split_first()?;
        slot.store(time, Ordering::Relaxed);
        slots = behind;
    }
    for (slot, word) in slots.first_chunk::<WORDS>()?.iter().zip(fields) {
        slot.store(word, Ordering::Relaxed);
    }
    for (text, place) in texts.iter().zip(places) {
        if place >= texts_at {
            write_text(words.get(place..)?, text.text());
        }
    }
    Some((head, committed.wrapping_add(ROW).wrapping_add(needed)))
}

/// Writes a text that is not in the block; there is room for it.
#[inline(never)]
fn write_text(slots: &[AtomicU64], text: &str) {
    for (slot, word) in slots.iter().zip(words_of_text(text)) {
        slot.store(word, Ordering::Relaxed);
    }
}

/// Appends a row of words whose type has this number, and says truly whether it came before the
/// block was sealed. Only the block's owner may call it.
#[inline(always)]
pub(super) fn append_row<const WORDS: usize, const TEXTS: usize>(
    words: &[AtomicU64],
    number: u8,
    time: RowTime,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> Appended {
    match write_words(words, number, time, texts, fields) {
        Some((head, commit)) => commit_truly(head, commit),
        None => Appended::No,
    }
}

/// Commits what was written, unless the block was sealed meanwhile.
#[inline(always)]
fn commit_truly(head: &Head, commit: u64) -> Appended {
    let [committed, sealed] = head;
    committed.store(commit, Ordering::Release);
    // Who seals does the same in the opposite order, so one of the two sees the other.
    // Probes tell nobody whether their record was taken and do without this.
    barrier::light();
    if sealed.load(Ordering::Relaxed) == OPEN {
        Appended::Yes
    } else {
        settle(head, commit)
    }
}

/// Whether what was committed is before the end of a block that somebody else seals: the first of the
/// two to say where that is decides it.
#[cold]
fn settle([committed, sealed]: &Head, commit: u64) -> Appended {
    // The commit has overwritten what keeps the owner from appending.
    committed.fetch_or(SEALED, Ordering::Relaxed);
    let end = match sealed.compare_exchange(SEALING, commit, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => commit,
        Err(end) => end,
    };
    if Extent::of(commit).words <= Extent::of(end).words {
        Appended::Yes
    } else {
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
