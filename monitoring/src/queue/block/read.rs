//! The collector's side of a block: its rows, one by one or many of one type at once.

use std::sync::Arc;

use baler_common::record::{Schema, WordLayout, WordRows, Words};

use super::super::prefetch::prefetch;
use super::super::sync::{AtomicU64, Ordering};
use super::Block;
#[cfg(feature = "enable")]
use super::row::{CALL_WORDS, KIND_CALL, compact_words};
use super::row::{
    FIELDS_HEADER_WORDS, KIND, KIND_FIELDS_TICKS, KIND_WORDS, KIND_WORDS_TICKS, KIND_WORDS_TIMED,
    Stamp, Stored, TIMED_HEADER_WORDS, words_for,
};

/// Reads a part of a block that is committed.
#[derive(Debug)]
pub(in super::super) struct BlockReader {
    block: Arc<Block>,
    at: usize,
    until: usize,
    /// Up to here the words were asked for when those before were read.
    asked_for: usize,
}

/// What a reader needs anew for each block, and keeps to use its memory again.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    types: Vec<Arc<Schema>>,
    fields: Vec<u8>,
    /// Where the rows begin that are handed over.
    starts: Vec<u32>,
    /// Counts the blocks that were read, or parts of one.
    source: u64,
    /// The last type whose words had to become bytes.
    layout: Option<(Arc<Schema>, Option<WordLayout>)>,
}

/// The words of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockWords<'a>(&'a [AtomicU64]);

impl Words for BlockWords<'_> {
    type Word = AtomicU64;

    #[inline(always)]
    fn all(&self) -> &[AtomicU64] {
        self.0
    }

    #[inline(always)]
    fn value(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }
}

impl BlockWords<'_> {
    /// Asks for words that will be read.
    #[inline(always)]
    fn ask_for(self, from: usize, until: usize) {
        let words = self.0.get(from..).unwrap_or_default();
        let count = until.saturating_sub(from);
        let words = words.get(..count).unwrap_or(words);
        words.iter().step_by(LINE_WORDS).for_each(prefetch);
    }

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
    pub(in super::super) fn new(block: Arc<Block>, from: usize, until: usize) -> Self {
        Self {
            block,
            at: from,
            until,
            asked_for: from,
        }
    }

    /// The kind of row that is next; 0 if none is.
    #[cfg(feature = "enable")]
    #[inline]
    pub(in super::super) fn next_kind(&self) -> u64 {
        let next = (self.at < self.until).then(|| self.block.words.get(self.at));
        next.flatten()
            .map_or(0, |header| header.load(Ordering::Relaxed) & KIND)
    }

    /// Hands over compact rows of this kind, of so many words each, as long as they are next, so many
    /// at most, and as long as `take` wants more.
    #[cfg(feature = "enable")]
    #[inline]
    pub(in super::super) fn compact<const N: usize>(
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
        let first = rows.get(..ROWS_AT_ONCE).unwrap_or(rows);
        BlockWords(first.as_flattened()).fetch(0, usize::MAX);
        let ahead = rows.get(ROWS_AT_ONCE..).unwrap_or_default();
        let mut ahead = ahead.iter().map(|row| row.first());
        for rows in rows.chunks(ROWS_AT_ONCE) {
            for slots in rows {
                if let Some(Some(word)) = ahead.next() {
                    prefetch(word);
                }
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
    pub(in super::super) fn next_row<'a>(
        &mut self,
        buffer: &'a mut ReadBuffer,
    ) -> Option<Stored<'a>> {
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
    pub(in super::super) fn are_words_next(&self) -> bool {
        let next = (self.at < self.until).then(|| self.block.words.get(self.at));
        next.flatten()
            .is_some_and(|header| is_words(header.load(Ordering::Relaxed)))
    }

    /// Hands over rows of words of one type that are next, so many at most and of hardly more bytes
    /// than these, and whether their times are ticks; says that they are taken but for those behind
    /// the number that `take` yields.
    pub(in super::super) fn words(
        &mut self,
        buffer: &mut ReadBuffer,
        (most_rows, most_bytes): (usize, usize),
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &WordRows<'_>, bool) -> usize,
    ) {
        let words = BlockWords(self.block.words.get(..self.until).unwrap_or_default());
        let first = words.word(self.at).unwrap_or(0);
        let Some(shape) = RowShape::of(first) else {
            return;
        };
        let most_rows = most_rows.min(ROWS_AT_ONCE);
        // About as many as are handed over now, for the next time.
        let ahead = words_in(first).saturating_mul(most_rows);
        if self.at >= self.asked_for {
            words.fetch(self.at, ahead);
        }
        let end = self.at.saturating_add(most_bytes.div_ceil(8));
        let mut at = self.at;
        buffer.starts.clear();
        while let Some(header) = words.word(at)
            && is_alike(header, first)
            && buffer.starts.len() < most_rows
            && at < end
        {
            // No block has so many words that this fails.
            buffer.starts.extend(u32::try_from(at));
            at = at.saturating_add(words_in(header));
        }
        self.at = at;
        let behind = self.at.saturating_add(ahead);
        words.ask_for(self.at.max(self.asked_for), behind);
        self.asked_for = behind;
        let number = number_in(first);
        buffer.learn_types(number, &self.block);
        let Some(schema) = buffer.types.get(number) else {
            return;
        };
        let rows = WordRows {
            starts: &buffer.starts,
            end: at,
            head: shape.head,
            time: shape.time,
            source: buffer.source,
        };
        let taken = take(schema, words, &rows, shape.is_in_ticks);
        if let Some(next) = buffer.starts.get(taken) {
            self.at = usize::try_from(*next).unwrap_or(usize::MAX);
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
        let shape = RowShape::of(header)?;
        let row = self.at;
        self.at = self.at.saturating_add(words_in(header));
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
        let fields = row.saturating_add(shape.head);
        let follows =
            layout.is_some_and(|layout| layout.write_row(&words, fields, &mut buffer.fields));
        if !follows {
            // A row that no type has: the batch refuses it, and it is counted.
            buffer.fields.push(0);
        }
        let time = words.word(row.saturating_add(shape.time))?;
        Some(Stored::Fields {
            schema,
            stamp: if shape.is_in_ticks {
                Stamp::Ticks(time)
            } else {
                Stamp::UnixNs(time.cast_signed())
            },
            fields: &buffer.fields,
        })
    }
}

/// What the header of a row of words says of it.
struct RowShape {
    /// How many words are before its fields.
    head: usize,
    /// Which word is its time.
    time: usize,
    is_in_ticks: bool,
}

impl RowShape {
    /// `None` if the row is another one.
    fn of(header: u64) -> Option<Self> {
        let (head, time) = match header & KIND {
            KIND_WORDS | KIND_WORDS_TICKS => (FIELDS_HEADER_WORDS, 1),
            KIND_WORDS_TIMED => {
                let [_, _, word, ..] = header.to_le_bytes();
                (TIMED_HEADER_WORDS, TIMED_HEADER_WORDS + usize::from(word))
            }
            _ => return None,
        };
        let is_in_ticks = header & KIND == KIND_WORDS_TICKS;
        Some(Self {
            head,
            time,
            is_in_ticks,
        })
    }
}

/// Whether rows with these headers are of one kind and type.
fn is_alike(one: u64, other: u64) -> bool {
    (one ^ other) & 0xffff_ffff == 0
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
    matches!(
        header & KIND,
        KIND_WORDS | KIND_WORDS_TICKS | KIND_WORDS_TIMED
    )
}

impl ReadBuffer {
    /// Learns the types of a block if it knows none of this number.
    #[inline]
    fn learn_types(&mut self, number: usize, block: &Block) {
        if number >= self.types.len() {
            self.types.clone_from(&block.lock_types());
        }
    }

    /// Forgets the types of the block before, since another one is read, or more of it.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
        self.source = self.source.wrapping_add(1);
    }
}
