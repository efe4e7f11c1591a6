//! Records of flat types as words: from the record's fields straight into the block, and from there
//! column by column into the batch.
//!
//! This path exists for speed alone. Without it, `emit` of such a record, its batch and its chunk cost
//! about twice the CPU time (a record of eight fields, one of them a text that is not interned).
//! A type is flat if each of its fields has one width; see `baler_common::record::WordSink`.

use std::sync::Arc;

use baler_common::number::to_usize;
use baler_common::record::{
    Record, Schema, WordLayout, WordRows, WordSink, WordText, Words, text_words, words_of_text,
};

use super::block::{
    Block, BlockPart, KIND_WORDS, RECORD_HEADER_WORDS, ROW, commit_exactly, words_in_use,
};
use super::sync::{AtomicU64, Ordering};
use super::thread_block;

/// The most rows of one run: enough for a loop over a column to pay, and few enough to stay in the
/// processor's first-level cache.
pub(crate) const MAX_ROWS: usize = 128;

/// Appends a record to the thread's block, if its type is flat. Returns `None` if it is not flat,
/// and `false` if the block has no room or does not know the type yet.
///
/// Not inlined, so that everything below is: the compiler then knows where the record is.
#[inline(never)]
pub(super) fn append<R: Record>(key: u64, record: &R, timestamp: i64) -> Option<bool> {
    record.write_words(ThreadBlockSink {
        key,
        schema: R::schema(),
        timestamp,
    })
}

/// Remembers the number of a flat type in the thread's block, if it belongs to the set with this
/// key.
#[cold]
pub(super) fn learn_type<R: Record>(key: u64) -> bool {
    WordLayout::is_of(R::schema(), R::WIDTHS)
        && thread_block::learn_type(key, R::schema(), thread_block::FLAT)
}

/// Puts a record into the thread's block.
struct ThreadBlockSink<'a> {
    key: u64,
    schema: &'a Arc<Schema>,
    timestamp: i64,
}

impl WordSink for ThreadBlockSink<'_> {
    type Output = bool;

    #[inline(always)]
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) -> bool {
        let Self {
            key,
            schema,
            timestamp,
        } = self;
        thread_block::append_with(key, schema, thread_block::FLAT, |block, number| {
            append_row(block, number, timestamp, texts, words)
        })
    }
}

/// Appends a row whose type has this number, if there is room and the block is not sealed, not even
/// by another thread. Only the block's owner may call it.
#[inline(always)]
pub(super) fn append_row<const WORDS: usize, const TEXTS: usize>(
    block: &[AtomicU64],
    number: u8,
    timestamp: i64,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> bool {
    write_row(block, number, timestamp, texts, fields)
        .is_some_and(|commit| commit_exactly(block, commit))
}

/// Writes a row after the last one, without committing it. Returns the word to commit with.
#[inline(always)]
fn write_row<const WORDS: usize, const TEXTS: usize>(
    block: &[AtomicU64],
    number: u8,
    timestamp: i64,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> Option<u64> {
    let committed = block.first()?.load(Ordering::Relaxed);
    let at = words_in_use(committed);
    let mut end = at.wrapping_add(RECORD_HEADER_WORDS + WORDS);
    let mut places = [0; TEXTS];
    for (text, place) in texts.iter().zip(&mut places) {
        *place = end;
        // No text is long enough for the sum to overflow.
        end = end.wrapping_add(text_words(text.text().len()));
    }
    let slots = block.get(at..end)?;
    let needed = u64::try_from(slots.len()).ok()?;
    let ([header, time], slots) = slots.split_first_chunk()?;
    let mut fields = fields();
    for (text, place) in texts.iter().zip(places) {
        if !text.place(&mut fields, place) {
            return None;
        }
    }
    header.store(
        KIND_WORDS | (u64::from(number) << 8) | (needed << 32),
        Ordering::Relaxed,
    );
    time.store(timestamp as u64, Ordering::Relaxed);
    for (slot, word) in slots.first_chunk::<WORDS>()?.iter().zip(fields) {
        slot.store(word, Ordering::Relaxed);
    }
    for (text, place) in texts.iter().zip(places) {
        write_text(block.get(place..)?, text.text());
    }
    Some(committed.wrapping_add(ROW).wrapping_add(needed))
}

/// Writes a text. There is room for it.
#[inline(never)]
fn write_text(slots: &[AtomicU64], text: &str) {
    for (slot, word) in slots.iter().zip(words_of_text(text)) {
        slot.store(word, Ordering::Relaxed);
    }
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

/// The buffers of a [`BlockReader`](super::BlockReader) for flat records.
#[derive(Debug, Default)]
pub(super) struct FlatReader {
    /// The positions at which the passed rows begin.
    starts: Vec<u32>,
    /// The last type whose words had to be converted to bytes.
    layout: Option<(Arc<Schema>, Option<WordLayout>)>,
}

impl FlatReader {
    /// Passes the next run of flat records of one type to `take`; see [`BlockReader::flat_rows`].
    ///
    /// [`BlockReader::flat_rows`]: super::BlockReader::flat_rows
    pub(super) fn rows(
        &mut self,
        part: &mut BlockPart,
        types: &mut Vec<Arc<Schema>>,
        (max_rows, max_bytes): (usize, usize),
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &WordRows<'_>) -> usize,
    ) {
        let Some(words) = part.block.words().get(..part.until).map(BlockWords) else {
            return;
        };
        let Some(first) = words.word(part.from).filter(|header| is_flat(*header)) else {
            return;
        };
        let limit = part.from + max_bytes.div_ceil(8);
        let mut at = part.from;
        self.starts.clear();
        let max_rows = max_rows.min(MAX_ROWS);
        while self.starts.len() < max_rows && at < limit {
            let Some(header) = words.word(at).filter(|header| is_alike(*header, first)) else {
                break;
            };
            // Cannot fail: a block with several rows has fewer words.
            self.starts.extend(u32::try_from(at));
            at += length(header);
        }
        part.from = at;
        let Some(schema) = part.block.type_of(first, types) else {
            return;
        };
        let rows = WordRows {
            starts: &self.starts,
            end: at,
            head: RECORD_HEADER_WORDS,
            time: 1,
        };
        let taken = take(schema, words, &rows);
        if let Some(next) = self.starts.get(taken) {
            part.from = to_usize(*next);
        }
    }

    /// Writes the fields of a flat record as the bytes of a row.
    pub(super) fn write_fields(
        &mut self,
        block: &Block,
        at: usize,
        schema: &Arc<Schema>,
        fields: &mut Vec<u8>,
    ) {
        if !matches!(&self.layout, Some((known, _)) if Arc::ptr_eq(known, schema)) {
            self.layout = Some((Arc::clone(schema), WordLayout::of(schema)));
        }
        let layout = self.layout.as_ref().and_then(|(_, layout)| layout.as_ref());
        let first = at + RECORD_HEADER_WORDS;
        let words = BlockWords(block.words());
        fields.clear();
        if !layout.is_some_and(|layout| layout.write_row(&words, first, fields)) {
            // No type has such a row: the batch refuses it, and it is counted.
            fields.push(0);
        }
    }
}

/// Whether a row with this header is a flat record.
pub(super) fn is_flat(header: u64) -> bool {
    header & super::block::KIND == KIND_WORDS
}

/// Whether rows with these headers have the same kind and type.
fn is_alike(one: u64, other: u64) -> bool {
    (one ^ other) & 0xffff == 0
}

/// Returns how many words a flat record with this header has.
pub(super) fn length(header: u64) -> usize {
    to_usize(header >> 32)
}
