//! A record of a flat type as 64-bit words. A thread writes this form straight into its queue.
//!
//! A type is flat if each of its fields has one width. A row contains the fields by descending
//! width, each aligned to its own width. A string that is not interned has only the position of its
//! text in the row. The text, padded with zeros to whole words, follows the row, unless an earlier
//! row already has the same text:
//!
//! ```text
//! u64 a | u32 b, u16 length of s, u16 place of s | u16 c, bool d, 0 ...     s s s s s s s s | s s s 0 0 0 0 0
//! ```
//!
//! The compiler knows the position of each field, which takes at most a shift. So a record goes
//! from its fields to the queue without a buffer in between. Like the rows of bytes
//! ([`RowWriter`](super::RowWriter)), these rows never leave the process.

use super::FieldValue;
use super::intern::INTERNED;
use super::schema::{FieldType, Schema};
use crate::number::to_usize;

/// Types with more fields are written as bytes: the compiler would unroll too much.
const MAX_FLAT_FIELDS: usize = 32;

/// The layout of a field in a row of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Width {
    /// Its size depends on the value: the type is not flat.
    Varies,
    /// One byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
    /// The length and the position of a text, in four bytes.
    Text,
    /// The number of an [`Interned`](super::Interned) string, in four bytes.
    Interned,
}

impl Width {
    /// Returns the number of bytes; 0 if it varies.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Varies => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Four | Self::Text | Self::Interned => 4,
            Self::Eight => 8,
        }
    }

    /// Returns a mask of the field's bits.
    pub(super) const fn mask(self) -> u64 {
        match self.bytes() {
            0 => 0,
            bytes => u64::MAX >> (64 - 8 * bytes),
        }
    }

    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Text)
    }

    /// Returns the width of fields of this type; [`Width::Text`] for strings.
    pub(super) const fn of(field_type: &FieldType) -> Self {
        match field_type {
            FieldType::Bool | FieldType::I8 | FieldType::U8 => Self::One,
            FieldType::I16 | FieldType::U16 => Self::Two,
            FieldType::I32 | FieldType::U32 | FieldType::F32 => Self::Four,
            FieldType::Char | FieldType::Enum(_) => Self::Four,
            FieldType::I64 | FieldType::U64 | FieldType::F64 => Self::Eight,
            FieldType::String => Self::Text,
            FieldType::Bytes
            | FieldType::Optional(_)
            | FieldType::List(_)
            | FieldType::Map(_)
            | FieldType::Record(_) => Self::Varies,
        }
    }
}

/// Whether a type with these fields is flat.
pub const fn is_flat(widths: &[Width]) -> bool {
    let mut rest = widths;
    while let Some((width, others)) = rest.split_first() {
        if width.bytes() == 0 {
            return false;
        }
        rest = others;
    }
    widths.len() <= MAX_FLAT_FIELDS
}

/// Returns the words of a flat type's fields; 0 if the type is not flat.
pub const fn fixed_words(widths: &[Width]) -> usize {
    let (mut bytes, mut rest) = (0, widths);
    while let (true, Some((width, others))) = (is_flat(widths), rest.split_first()) {
        bytes += width.bytes();
        rest = others;
    }
    bytes.div_ceil(8)
}

/// Returns how many of the first `fields` fields are texts.
pub const fn texts(widths: &[Width], fields: usize) -> usize {
    let (mut texts, mut at, mut rest) = (0, 0, widths);
    while let (true, Some((width, others))) = (at < fields, rest.split_first()) {
        if width.is_text() {
            texts += 1;
        }
        at += 1;
        rest = others;
    }
    texts
}

/// Returns the byte position of a field of a flat type. Wider fields come first. Among fields of
/// one width, the last one comes first.
///
/// In the other order, neighbours in a `struct` would be neighbours in a word, and compilers would
/// read them with one load. But the fields of a record were usually written just before, one by
/// one. A processor that reads two such writes at once waits until both have left its store buffer.
/// That took half of the time of `emit`.
pub const fn offset(widths: &[Width], field: usize) -> usize {
    let own = match widths.split_at_checked(field) {
        Some((_, [own, ..])) => own.bytes(),
        _ => return 0,
    };
    let (mut offset, mut at, mut rest) = (0, 0, widths);
    while let Some((width, others)) = rest.split_first() {
        let bytes = width.bytes();
        if bytes > own || (bytes == own && at > field) {
            offset += bytes;
        }
        at += 1;
        rest = others;
    }
    offset
}

/// Takes a record as words; see [`Record::write_words`](super::Record::write_words).
pub trait WordSink {
    /// The result.
    type Output;

    /// Takes the texts, in the order of their fields, and then all fields. The fields of texts are
    /// empty until the texts are [placed](WordText::place).
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) -> Self::Output;
}

/// The text of a field.
#[derive(Debug, Clone, Copy)]
pub struct WordText<'a> {
    text: &'a str,
    /// The byte position of its field in the row.
    offset: usize,
}

impl<'a> WordText<'a> {
    /// The text itself.
    #[inline(always)]
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Stores in the fields that the text begins at this word. Returns `false` if that is too far
    /// away, or the text is too long for a row of words.
    #[inline(always)]
    pub fn place(&self, words: &mut [u64], at: usize) -> bool {
        let fits = self.text.len() <= LONGEST_TEXT && at <= FARTHEST_TEXT;
        let tag = (at << PLACE_FROM) | self.text.len();
        if let (Some(word), Ok(tag)) = (words.get_mut(self.offset / 8), u64::try_from(tag)) {
            *word |= tag << (self.offset % 8 * 8);
        }
        fits
    }
}

/// The bit at which the position of a text begins in its field; its length is below.
const PLACE_FROM: u32 = 16;

/// The most bytes of a text in a row of words.
const LONGEST_TEXT: usize = 0xffff;

/// The last word at which a text may begin; the bit above marks interned strings.
const FARTHEST_TEXT: usize = 0x7fff;

/// Returns the position and the bytes of a text, from its field.
#[inline]
pub(super) fn text_place(tag: u32) -> (usize, u32) {
    let place = to_usize(tag >> PLACE_FROM);
    (place, tag & 0xffff)
}

/// The fields of a record on their way to a [`WordSink`].
#[derive(Debug)]
pub struct WordFields<const WORDS: usize>(pub [u64; WORDS]);

impl<const WORDS: usize> WordFields<WORDS> {
    /// Sets the field at this byte, unless it is a text.
    #[inline(always)]
    pub fn set<const OFFSET: usize, F: FieldValue>(&mut self, field: &F) {
        if let (false, Some(word)) = (F::WIDTH.is_text(), self.0.get_mut(OFFSET / 8)) {
            // A hand-written field must not overwrite its neighbours.
            let bits = field.bits() & F::WIDTH.mask();
            *word |= bits << (OFFSET % 8 * 8);
        }
    }
}

/// The texts of a record on their way to a [`WordSink`].
#[derive(Debug)]
pub struct WordTexts<'a, const TEXTS: usize>(pub [WordText<'a>; TEXTS]);

impl<'a, const TEXTS: usize> WordTexts<'a, TEXTS> {
    /// Creates empty texts.
    #[expect(clippy::new_without_default, reason = "for generated code alone")]
    #[inline(always)]
    pub const fn new() -> Self {
        Self(
            [WordText {
                text: "",
                offset: 0,
            }; TEXTS],
        )
    }

    /// Sets the text with this number, if the field at this byte is one.
    #[inline(always)]
    pub fn set<const OFFSET: usize, const TEXT: usize, F: FieldValue>(&mut self, field: &'a F) {
        if let (true, Some(text)) = (F::WIDTH.is_text(), self.0.get_mut(TEXT)) {
            *text = WordText {
                text: field.text(),
                offset: OFFSET,
            };
        }
    }
}

/// Returns how many words a text of `bytes` bytes takes.
#[inline]
pub const fn text_words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Returns the words of a text; the last one is padded with zeros.
#[inline]
pub fn words_of_text(text: &str) -> impl Iterator<Item = u64> {
    let bytes = text.as_bytes();
    let whole = bytes.chunks_exact(8);
    let rest = whole.remainder();
    let last = (!rest.is_empty()).then(|| last_word(bytes, rest));
    let whole = whole.filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
    whole.chain(last)
}

/// Returns the last word of a text that ends within a word.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk::<8>() {
        // Read some of the bytes twice, instead of one by one.
        return u64::from_le_bytes(*last) >> ((8 - rest.len()) * 8);
    }
    if let (Some(first), Some(last)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | last << ((rest.len() - 4) * 8);
    }
    let mut word = 0;
    for byte in rest.iter().rev() {
        word = word << 8 | u64::from(*byte);
    }
    word
}

/// Words of another owner: a thread's queue.
pub trait Words {
    /// The stored form of a word.
    type Word;

    /// Returns all words.
    fn all(&self) -> &[Self::Word];

    /// Returns the value of a word.
    fn value(word: &Self::Word) -> u64;

    /// Returns the word at this position; `None` after the last one.
    #[inline(always)]
    fn word(&self, at: usize) -> Option<u64> {
        self.all().get(at).map(Self::value)
    }

    /// Returns the next `N` words from this position; `None` if there are fewer.
    #[inline(always)]
    fn words<const N: usize>(&self, at: usize) -> Option<[u64; N]> {
        let words = self.all().get(at..)?.first_chunk::<N>()?;
        Some(words.each_ref().map(Self::value))
    }
}

impl Words for [u64] {
    type Word = u64;

    #[inline(always)]
    fn all(&self) -> &[u64] {
        self
    }

    #[inline(always)]
    fn value(word: &u64) -> u64 {
        *word
    }
}

/// Rows of one type among [`Words`], in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordRows<'a> {
    /// The start of each row.
    pub starts: &'a [u32],
    /// The end of the last row.
    pub end: usize,
    /// The number of words of each row before its fields.
    pub head: usize,
    /// The position of the logging time in a row.
    pub time: usize,
}

/// The positions of a flat type's fields.
#[derive(Debug, Clone)]
pub struct WordLayout {
    fields: Box<[Place]>,
    words: usize,
}

/// The position of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) word: usize,
    pub(super) shift: u32,
    pub(super) width: Width,
}

impl Place {
    /// Returns the field's bits in the row at this position, if the words reach that far. Above a
    /// narrower field there are other bits.
    #[inline(always)]
    fn bits(self, words: &(impl Words + ?Sized), row: usize) -> Option<u64> {
        Some(words.word(row.wrapping_add(self.word))? >> self.shift)
    }
}

impl WordLayout {
    /// Returns the layout of a type, if it is flat.
    pub fn of(schema: &Schema) -> Option<Self> {
        let fields = schema.fields().iter();
        let widths: Vec<_> = fields.map(|field| Width::of(field.field_type())).collect();
        let place = |(field, width): (usize, &Width)| {
            let offset = offset(&widths, field);
            let [low, ..] = offset.to_le_bytes();
            Place {
                word: offset / 8,
                shift: u32::from(low % 8 * 8),
                width: *width,
            }
        };
        is_flat(&widths).then(|| Self {
            fields: widths.iter().enumerate().map(place).collect(),
            words: fixed_words(&widths),
        })
    }

    /// Whether a Rust type with fields of these widths writes rows in this schema's layout. A wrong
    /// hand-written field may prevent that.
    pub fn is_of(schema: &Schema, widths: &[Width]) -> bool {
        let fields = schema.fields();
        is_flat(widths)
            && fields.len() == widths.len()
            && fields.iter().zip(widths).all(|(field, width)| {
                let width = match width {
                    Width::Interned => Width::Text,
                    other => *other,
                };
                Width::of(field.field_type()) == width
            })
    }

    /// Returns the number of words before the texts.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns the position of each field, in their order.
    pub(super) fn fields(&self) -> &[Place] {
        &self.fields
    }

    /// Appends a row as bytes, as a `RowWriter` would have written it. `row` is the position of its
    /// fields. Returns whether the row followed the layout.
    pub fn write_row<W: Words + ?Sized>(&self, words: &W, row: usize, out: &mut Vec<u8>) -> bool {
        for place in &self.fields {
            let Some(bits) = place.bits(words, row) else {
                return false;
            };
            let tag = low_half(bits);
            if !place.width.is_text() || tag & INTERNED != 0 {
                out.extend(bits.to_le_bytes().iter().take(place.width.bytes()));
                continue;
            }
            let (at, length) = text_place(tag);
            out.extend(length.to_le_bytes());
            let length = to_usize(length);
            let text = words.all().get(at..);
            let Some(text) = text.and_then(|text| text.get(..text_words(length))) else {
                return false;
            };
            let whole = out.len() + length;
            for word in text {
                out.extend(W::value(word).to_le_bytes());
            }
            out.truncate(whole);
        }
        true
    }
}

/// The lower half of a word.
#[expect(clippy::cast_possible_truncation, reason = "the upper half is cut off")]
#[inline(always)]
pub(super) fn low_half(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests;
