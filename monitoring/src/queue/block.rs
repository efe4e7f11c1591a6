//! A block of rows, written by one thread while another one reads.
//!
//! A block is a row of 64-bit words. The first one says what is committed; the owner, a single
//! thread, writes a row behind the last one with plain stores and then commits it with one release
//! store. Whoever loads that word with acquire sees all rows below it, while the owner goes on.
//!
//! ```text
//! committed      row                        row                      row
//! rows | words   header, time, bytes...     header, time, words...   header, trace, tin, tout, eoi and ess   ...
//! ```

use std::sync::{Arc, PoisonError};

use baler_common::record::{Schema, WordLayout, WordSpan, Words, text_words, words_of_text};

use super::hot::zeroed;
use super::sync::{AtomicU64, Mutex, Ordering};

/// The lowest bits of the first word: how many words are in use, the first one included. So few
/// bits that what a row adds to the first word fits an instruction.
const WORDS_IN_USE: u64 = 0xffff;

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
const KIND_WORDS: u64 = 4;
const KIND_WORDS_TICKS: u64 = 6;
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
    stamp: Stamp,
    fields: [u64; WORDS],
    texts: [&str; TEXTS],
) -> Option<(&'a AtomicU64, u64)> {
    let head = words.first()?;
    let committed = head.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS_IN_USE).ok()?;
    // No text is so long that the sum of so few could overflow.
    let behind = texts.iter().fold(0, |sum: usize, text| {
        sum.wrapping_add(text_words(text.len()))
    });
    let needed = behind.wrapping_add(FIELDS_HEADER_WORDS + WORDS);
    let slots = words.get(at..)?.get(..needed)?;
    let (kind, time) = match stamp {
        Stamp::UnixNs(time) => (KIND_WORDS, time.cast_unsigned()),
        Stamp::Ticks(ticks) => (KIND_WORDS_TICKS, ticks),
    };
    let ([header, stamp], slots) = slots.split_first_chunk()?;
    let (places, mut slots) = slots.split_first_chunk::<WORDS>()?;
    let needed = u64::try_from(needed).ok()?;
    header.store(
        kind | (u64::from(number) << 8) | (needed << 32),
        Ordering::Relaxed,
    );
    stamp.store(time, Ordering::Relaxed);
    for (slot, word) in places.iter().zip(fields) {
        slot.store(word, Ordering::Relaxed);
    }
    for text in texts {
        let (places, rest) = slots.split_at_checked(text_words(text.len()))?;
        slots = rest;
        for (slot, word) in places.iter().zip(words_of_text(text)) {
            slot.store(word, Ordering::Relaxed);
        }
    }
    Some((head, committed.wrapping_add(ROW).wrapping_add(needed)))
}

/// Appends a row of words whose type has this number, and says truly whether it came before the
/// block was sealed. Only the block's owner may call it.
#[inline(always)]
pub(super) fn append_row<const WORDS: usize, const TEXTS: usize>(
    words: &[AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: [u64; WORDS],
    texts: [&str; TEXTS],
) -> Appended {
    match write_words(words, number, stamp, fields, texts) {
        Some((head, commit)) => commit_truly(head, commit),
        None => Appended::No,
    }
}

/// Commits what was written, unless the block was sealed meanwhile.
#[inline(always)]
fn commit_truly(head: &AtomicU64, commit: u64) -> Appended {
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
    rows: Vec<WordSpan>,
    /// The last type whose words had to become bytes.
    layout: Option<(Arc<Schema>, Option<WordLayout>)>,
}

/// The words of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockWords<'a>(&'a [AtomicU64]);

impl Words for BlockWords<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> Option<u64> {
        self.0.get(at).map(|word| word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn words<const N: usize>(&self, at: usize) -> Option<[u64; N]> {
        let words = self.0.get(at..)?.first_chunk::<N>()?;
        Some(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn copy(&self, at: usize, to: &mut [u64]) -> Option<()> {
        let words = self.0.get(at..)?.get(..to.len())?;
        for (to, word) in to.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed);
        }
        Some(())
    }
}

impl BlockWords<'_> {
    /// Has so many words brought near, all at once: each row's header says where the next one is, so
    /// that one would be waited for after the other. They come from another processor's cache.
    #[inline]
    fn fetch(self, from: usize, count: usize) {
        let words = self.0.get(from..).unwrap_or_default();
        let words = words.get(..count).unwrap_or(words);
        let line = words.iter().step_by(LINE_WORDS);
        let sum = line.fold(0, |sum, word| sum | word.load(Ordering::Relaxed));
        std::hint::black_box(sum);
    }
}

/// How many words a line of the processor's cache has, or more.
const LINE_WORDS: usize = 8;

/// How many rows of words are handed over at once at most: so many that a column of them is worth
/// the while, and so few that they stay in the processor's first cache.
const ROWS_AT_ONCE: usize = 128;

impl BlockReader {
    /// Reads the words between two extents.
    pub(super) fn new(block: Arc<Block>, from: usize, until: usize) -> Self {
        Self {
            block,
            at: from,
            until,
        }
    }

    /// The kind of row that is next; 0 if none is.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn next_kind(&self) -> u64 {
        let next = (self.at < self.until).then(|| self.block.words.get(self.at));
        next.flatten()
            .map_or(0, |header| header.load(Ordering::Relaxed) & KIND)
    }

    /// Hands over compact rows of this kind, of so many words each, as long as they are next, so many
    /// at most, and as long as `take` wants more.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn compact<const N: usize>(
        &mut self,
        kind: u64,
        most: usize,
        mut take: impl FnMut([u64; N]) -> bool,
    ) {
        let words = self
            .block
            .words
            .get(self.at..self.until)
            .unwrap_or_default();
        let rows = words.as_chunks::<N>().0;
        let rows = rows.get(..most).unwrap_or(rows);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            BlockWords(rows.as_flattened()).fetch(0, usize::MAX);
            for slots in rows {
                let row = slots.each_ref().map(|slot| slot.load(Ordering::Relaxed));
                if row.first().is_none_or(|header| header & KIND != kind) {
                    return;
                }
                self.at = self.at.saturating_add(N);
                if !take(row) {
                    return;
                }
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
        let number = number_in(header);
        if is_words(header) {
            return self.next_as_bytes(number, buffer);
        }
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
        let stamp = stamp.load(Ordering::Relaxed);
        buffer.learn_types(number, &self.block);
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

impl BlockReader {
    /// Whether a row of words is next.
    #[inline]
    pub(super) fn are_words_next(&self) -> bool {
        let next = (self.at < self.until).then(|| self.block.words.get(self.at));
        next.flatten()
            .is_some_and(|header| is_words(header.load(Ordering::Relaxed)))
    }

    /// Hands over rows of words of one type that are next, so many at most and of hardly more bytes
    /// than these, and says that they are taken but for those behind the number that `take` yields.
    pub(super) fn words(
        &mut self,
        buffer: &mut ReadBuffer,
        (most_rows, most_bytes): (usize, usize),
        unix_ns: impl Fn(u64) -> i64,
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &[WordSpan]) -> usize,
    ) {
        let words = BlockWords(self.block.words.get(..self.until).unwrap_or_default());
        let kind_and_number = |header: u64| header & (KIND | 0xff00);
        let first = words.word(self.at).unwrap_or(0);
        let most_rows = most_rows.min(ROWS_AT_ONCE);
        words.fetch(self.at, words_in(first).saturating_mul(most_rows));
        buffer.rows.clear();
        let mut left = most_bytes;
        while let Some(header) = words.word(self.at)
            && kind_and_number(header) == kind_and_number(first)
            && buffer.rows.len() < most_rows
            && left > 0
        {
            let needed = words_in(header);
            let stamp = words.word(self.at.wrapping_add(1)).unwrap_or(0);
            buffer.rows.push(WordSpan {
                at: self.at.wrapping_add(FIELDS_HEADER_WORDS),
                words: needed.wrapping_sub(FIELDS_HEADER_WORDS),
                timestamp: if first & KIND == KIND_WORDS_TICKS {
                    unix_ns(stamp)
                } else {
                    stamp.cast_signed()
                },
            });
            left = left.saturating_sub(needed.saturating_mul(8));
            self.at = self.at.saturating_add(needed);
        }
        let number = number_in(first);
        buffer.learn_types(number, &self.block);
        let Some(schema) = buffer.types.get(number) else {
            return;
        };
        let taken = take(schema, words, &buffer.rows);
        if let Some(next) = buffer.rows.get(taken) {
            self.at = next.at.saturating_sub(FIELDS_HEADER_WORDS);
        }
    }

    /// Takes the next row, one of words, as the bytes of its fields.
    #[inline(never)]
    fn next_as_bytes<'a>(
        &mut self,
        number: usize,
        buffer: &'a mut ReadBuffer,
    ) -> Option<Stored<'a>> {
        let words = BlockWords(self.block.words.get(..self.until)?);
        let header = words.word(self.at)?;
        let needed = words_in(header);
        let stamp = words.word(self.at.saturating_add(1))?;
        let row = WordSpan {
            at: self.at.saturating_add(FIELDS_HEADER_WORDS),
            words: needed.checked_sub(FIELDS_HEADER_WORDS)?,
            timestamp: stamp.cast_signed(),
        };
        self.at = self.at.saturating_add(needed);
        buffer.learn_types(number, &self.block);
        let schema = buffer.types.get(number)?;
        if !matches!(&buffer.layout, Some((known, _)) if Arc::ptr_eq(known, schema)) {
            buffer.layout = Some((Arc::clone(schema), WordLayout::of(schema)));
        }
        buffer.fields.clear();
        let layout = buffer
            .layout
            .as_ref()
            .and_then(|(_, layout)| layout.as_ref());
        let follows =
            layout.is_some_and(|layout| layout.write_row(&words, &row, &mut buffer.fields));
        if !follows {
            // A row that no type has: the batch refuses it, and it is counted.
            buffer.fields.push(0);
        }
        Some(Stored::Fields {
            schema,
            stamp: if header & KIND == KIND_WORDS_TICKS {
                Stamp::Ticks(stamp)
            } else {
                Stamp::UnixNs(row.timestamp)
            },
            fields: &buffer.fields,
        })
    }
}

/// The number of a row's type in its block.
fn number_in(header: u64) -> usize {
    let [_, number, ..] = header.to_le_bytes();
    usize::from(number)
}

/// How many words a row of words with this header has.
fn words_in(header: u64) -> usize {
    usize::try_from(header >> 32).unwrap_or(usize::MAX)
}

/// Whether a row with this header is one of words.
fn is_words(header: u64) -> bool {
    matches!(header & KIND, KIND_WORDS | KIND_WORDS_TICKS)
}

impl ReadBuffer {
    /// Learns the types of a block if it knows none of this number.
    #[inline]
    fn learn_types(&mut self, number: usize, block: &Block) {
        if number >= self.types.len() {
            self.types.clone_from(&block.lock_types());
        }
    }

    /// Forgets the types of the block before.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
    }
}
