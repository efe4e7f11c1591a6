//! A record of a flat type as 64-bit words: what a thread writes straight into its queue.
//!
//! A type is flat when each of its fields has one width. Its rows begin with the fields by
//! descending width, each aligned to its own, and end with the text of those strings that are not
//! interned, in the order of the fields, each padded with zeros to whole words:
//!
//! ```text
//! u64 a | u32 b, u32 length of s | u16 c, bool d, 0 ... | s s s s s s s s | s s s 0 0 0 0 0
//! ```
//!
//! Where a field lies is known to the compiler and takes it a shift at most, so that a record goes
//! from its fields to the queue without memory between them. Like the rows of bytes
//! ([`RowWriter`](super::RowWriter)), these never leave the process.

use super::FieldValue;
use super::row::INTERNED;
use super::schema::{FieldType, Schema};

/// Types with more fields than this are written as bytes: the compiler would unroll too much.
const MAX_FLAT_FIELDS: usize = 32;

/// How a field lies in a row of words.
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
    /// The length of text that follows, in four bytes.
    Text,
    /// The number of an [`Interned`](super::Interned) string, in four bytes.
    Interned,
}

impl Width {
    /// How many bytes; 0 if that varies.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Varies => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Four | Self::Text | Self::Interned => 4,
            Self::Eight => 8,
        }
    }

    /// As many of the lowest bits.
    pub(super) const fn mask(self) -> u64 {
        match self {
            Self::Varies => 0,
            Self::One => 0xff,
            Self::Two => 0xffff,
            Self::Four | Self::Text | Self::Interned => 0xffff_ffff,
            Self::Eight => u64::MAX,
        }
    }

    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Text)
    }

    /// The width of fields of this type; of strings that of [`Width::Text`].
    const fn of(field_type: &FieldType) -> Self {
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
            | FieldType::Record(_) => Self::Varies,
        }
    }
}

/// Whether a type with such fields is flat.
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

/// How many words the fields of a flat type take; 0 of one that is not.
pub const fn fixed_words(widths: &[Width]) -> usize {
    let (mut bytes, mut rest) = (0, widths);
    while let (true, Some((width, others))) = (is_flat(widths), rest.split_first()) {
        bytes += width.bytes();
        rest = others;
    }
    bytes.div_ceil(8)
}

/// How many of the first fields, so many, are texts.
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

/// At which byte a field of a flat type lies: the wider ones first, among those of one width the last
/// one first.
///
/// In the other order neighbours of a `struct` would be neighbours in a word, and compilers read them
/// with one load. The fields of a record were most often written a moment ago and one by one, and a
/// processor that reads two such writes at once waits until both have left its store buffer: half of
/// what `emit` took.
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
    /// What came of it.
    type Output;

    /// Takes the fields, and the texts among them, in the order of the fields.
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        words: [u64; WORDS],
        texts: [&str; TEXTS],
    ) -> Self::Output;
}

/// A record on its way to a [`WordSink`].
#[derive(Debug)]
pub struct WordRow<'a, const WORDS: usize, const TEXTS: usize> {
    words: [u64; WORDS],
    texts: [&'a str; TEXTS],
}

impl<'a, const WORDS: usize, const TEXTS: usize> WordRow<'a, WORDS, TEXTS> {
    /// All zero.
    #[expect(clippy::new_without_default, reason = "for generated code alone")]
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            words: [0; WORDS],
            texts: [""; TEXTS],
        }
    }

    /// Sets the field at this byte, and the text of this number if it is one.
    #[inline(always)]
    pub fn set<const OFFSET: usize, const TEXT: usize, F: FieldValue>(&mut self, field: &'a F) {
        if let Some(word) = self.words.get_mut(OFFSET / 8) {
            // A field that was written by hand must not spoil its neighbours.
            let bits = field.bits() & F::WIDTH.mask();
            *word |= bits << (OFFSET % 8 * 8);
        }
        if F::WIDTH.is_text()
            && let Some(text) = self.texts.get_mut(TEXT)
        {
            *text = field.text();
        }
    }

    /// Hands the record over.
    #[inline(always)]
    pub fn put<S: WordSink>(self, sink: S) -> S::Output {
        sink.put(self.words, self.texts)
    }
}

/// How many words a text of so many bytes takes.
#[inline]
pub const fn text_words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// The words of a text, the last one padded with zeros.
#[inline]
pub fn words_of_text(text: &str) -> impl Iterator<Item = u64> {
    let bytes = text.as_bytes();
    let (whole, rest) = bytes.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| last_word(bytes, rest));
    let whole = whole.iter().map(|word| u64::from_le_bytes(*word));
    whole.chain(last)
}

/// The last word of a text that does not end with a whole one.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk::<8>() {
        // Some of them for a second time, instead of one by one.
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

/// Words that somebody else owns: a thread's queue.
pub trait Words {
    /// The word there; `None` behind the last one.
    fn word(&self, at: usize) -> Option<u64>;

    /// The words from there on, so many; `None` if there are fewer.
    fn words<const N: usize>(&self, at: usize) -> Option<[u64; N]>;

    /// Whether so many words from these two places on are the same; not if there are fewer.
    fn are_equal(&self, one: usize, other: usize, count: usize) -> bool;
}

impl Words for [u64] {
    #[inline]
    fn word(&self, at: usize) -> Option<u64> {
        self.get(at).copied()
    }

    #[inline]
    fn words<const N: usize>(&self, at: usize) -> Option<[u64; N]> {
        self.get(at..)?.first_chunk().copied()
    }

    #[inline]
    fn are_equal(&self, one: usize, other: usize, count: usize) -> bool {
        let from = |at: usize| self.get(at..)?.get(..count);
        from(one).is_some_and(|words| Some(words) == from(other))
    }
}

/// A row among [`Words`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordSpan {
    /// Where its first word is.
    pub at: usize,
    /// How many words it has, those of texts included.
    pub words: usize,
    /// When it was logged, in nanoseconds since the Unix epoch, or
    /// [`NO_TIMESTAMP`](super::NO_TIMESTAMP).
    pub timestamp: i64,
}

/// Where the fields of a flat type lie.
#[derive(Debug, Clone)]
pub struct WordLayout {
    fields: Box<[Place]>,
    words: usize,
}

/// Where a field lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) word: usize,
    pub(super) shift: u32,
    pub(super) width: Width,
}

impl Place {
    /// The field's bits in the row that begins there, narrower ones with others above them.
    #[inline(always)]
    pub(super) fn bits(self, words: &(impl Words + ?Sized), row: usize) -> u64 {
        words.word(row.wrapping_add(self.word)).unwrap_or(0) >> self.shift
    }
}

impl WordLayout {
    /// The layout of a type, if it is flat.
    pub fn of(schema: &Schema) -> Option<Self> {
        let fields = schema.fields().iter();
        let widths: Vec<_> = fields.map(|field| Width::of(field.field_type())).collect();
        let place = |(field, width): (usize, &Width)| {
            let offset = offset(&widths, field);
            Place {
                word: offset / 8,
                shift: u32::try_from(offset % 8 * 8).unwrap_or(0),
                width: *width,
            }
        };
        is_flat(&widths).then(|| Self {
            fields: widths.iter().enumerate().map(place).collect(),
            words: fixed_words(&widths),
        })
    }

    /// Whether a Rust type with fields of these widths writes rows of this schema's layout: not if
    /// one of them was written by hand and is wrong.
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

    /// How many words there are before the texts.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Where each field lies, in their order.
    pub(super) fn fields(&self) -> &[Place] {
        &self.fields
    }

    /// Appends a row as bytes, as a `RowWriter` would have written it; whether it followed the
    /// layout.
    pub fn write_row(
        &self,
        words: &(impl Words + ?Sized),
        row: &WordSpan,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut text_at = row.at.saturating_add(self.words);
        let end = row.at.saturating_add(row.words);
        for place in &self.fields {
            let bits = place.bits(words, row.at).to_le_bytes();
            out.extend(bits.iter().take(place.width.bytes()));
            let [a, b, c, d, ..] = bits;
            let length = u32::from_le_bytes([a, b, c, d]);
            if !place.width.is_text() || length & INTERNED != 0 {
                continue;
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let behind = text_at.saturating_add(text_words(length));
            if behind > end {
                return false;
            }
            let whole = out.len().saturating_add(length);
            for at in text_at..behind {
                out.extend(words.word(at).unwrap_or(0).to_le_bytes());
            }
            out.truncate(whole);
            text_at = behind;
        }
        text_at == end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Interned, Record, RowWriter};

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(crate = "crate")]
    enum Colour {
        Red,
        Green,
    }

    #[derive(Debug, Clone, Record)]
    #[record(crate = "crate")]
    struct Flat {
        yes: bool,
        name: String,
        small: i8,
        site: Interned,
        letter: char,
        number: i64,
        colour: Colour,
        half: i16,
        more: Box<str>,
        float: f32,
        double: f64,
        last: u8,
    }

    #[derive(Record)]
    #[record(crate = "crate")]
    struct Listed {
        values: Vec<u8>,
    }

    #[derive(Record)]
    #[record(crate = "crate")]
    struct Nothing {}

    /// Keeps the words.
    struct Kept;

    impl WordSink for Kept {
        type Output = Vec<u64>;

        fn put<const WORDS: usize, const TEXTS: usize>(
            self,
            words: [u64; WORDS],
            texts: [&str; TEXTS],
        ) -> Vec<u64> {
            let texts = texts.into_iter().flat_map(words_of_text);
            words.into_iter().chain(texts).collect()
        }
    }

    fn flat(name: String, more: String, number: i64, half: i16, letter: char) -> Flat {
        Flat {
            yes: half > 0,
            name,
            small: -3,
            site: Interned::new("words::tests"),
            letter,
            number,
            colour: if number % 2 == 0 {
                Colour::Red
            } else {
                Colour::Green
            },
            half,
            more: more.into(),
            float: 1.5,
            double: f64::NAN,
            last: 255,
        }
    }

    fn span(words: &[u64]) -> WordSpan {
        WordSpan {
            at: 0,
            words: words.len(),
            timestamp: 0,
        }
    }

    proptest! {
        #[test]
        fn words_say_what_bytes_say(
            name in ".{0,20}", more in ".{0,20}", number: i64, half: i16, letter: char,
        ) {
            let record = flat(name, more, number, half, letter);
            let mut bytes = Vec::new();
            record.write_fields(&mut RowWriter::new(&mut bytes));
            let words = record.write_words(Kept).unwrap();
            let layout = WordLayout::of(Flat::schema()).unwrap();
            let mut written = Vec::new();
            prop_assert!(layout.write_row(words.as_slice(), &span(&words), &mut written));
            prop_assert_eq!(written, bytes);
        }
    }

    #[test]
    fn fields_lie_by_width_without_a_gap() {
        let widths = Flat::WIDTHS;
        assert!(WordLayout::is_of(Flat::schema(), widths));
        let mut ends: Vec<_> = (0..widths.len())
            .map(|field| (offset(widths, field), widths[field].bytes()))
            .collect();
        ends.sort_unstable();
        let mut end = 0;
        for (offset, bytes) in ends {
            assert_eq!((offset, offset % bytes), (end, 0));
            end += bytes;
        }
        assert_eq!(fixed_words(widths), end.div_ceil(8));
        assert_eq!(texts(widths, widths.len()), 2);
    }

    #[test]
    fn type_that_varies_has_no_words_and_one_without_fields_has_none() {
        assert!(Listed { values: vec![1] }.write_words(Kept).is_none());
        assert!(WordLayout::of(Listed::schema()).is_none());
        assert!(!WordLayout::is_of(Listed::schema(), Listed::WIDTHS));
        assert_eq!(Nothing {}.write_words(Kept), Some(Vec::new()));
    }

    #[test]
    fn layout_of_another_type_is_told() {
        assert!(!WordLayout::is_of(Nothing::schema(), Flat::WIDTHS));
        assert!(!WordLayout::is_of(Flat::schema(), Nothing::WIDTHS));
    }

    #[test]
    fn row_whose_texts_do_not_end_with_it_is_told() {
        let words = flat("a name".into(), String::new(), 1, 1, 'x')
            .write_words(Kept)
            .unwrap();
        let layout = WordLayout::of(Flat::schema()).unwrap();
        let longer: Vec<u64> = words.iter().copied().chain([0]).collect();
        for wrong in [&words[..words.len() - 1], &longer] {
            assert!(!layout.write_row(wrong, &span(wrong), &mut Vec::new()));
        }
    }

    #[test]
    fn text_is_padded_with_zeros_whatever_its_length() {
        let text = "0123456789abcdefg";
        for length in 0..=text.len() {
            let bytes: Vec<u8> = words_of_text(text.get(..length).unwrap())
                .flat_map(u64::to_le_bytes)
                .collect();
            assert_eq!(bytes.len(), text_words(length) * 8);
            assert_eq!(&bytes[..length], &text.as_bytes()[..length]);
            assert!(bytes[length..].iter().all(|byte| *byte == 0), "{length}");
        }
    }
}
