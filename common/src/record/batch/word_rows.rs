//! Rows of words into columns, many of one type at a time and column by column.

use super::builder::{PushError, Run, TIME_BYTES};
use super::column::Column;
use super::flat::Check;
use super::string_index::StringIndex;
use super::strings::StringTable;
use crate::record::intern::Interned;
use crate::record::row::INTERNED;
use crate::record::schema::{FieldType, Schema};
use crate::record::words::{Place, WordLayout, WordSpan, Words, text_words};

/// What is known of a type's rows of words.
#[derive(Debug)]
pub(super) struct WordRows {
    layout: WordLayout,
    /// Where the strings are.
    strings: Box<[Place]>,
    /// What to check, and where.
    checks: Box<[(Place, Check)]>,
    /// The fields of the rows being added, row by row, with ids in the place of strings.
    rows: Vec<u64>,
}

/// Adds rows of words of one type; see [`BatchBuilder::words`](super::BatchBuilder::words).
#[derive(Debug)]
pub struct WordRun<'a>(pub(super) Run<'a>);

impl WordRows {
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let layout = WordLayout::of(schema)?;
        let places = || layout.fields().iter().copied();
        let fields = || places().zip(schema.fields());
        Some(Self {
            strings: places().filter(|place| place.width.is_text()).collect(),
            checks: fields()
                .filter_map(|(place, field)| Some((place, Check::of(field.field_type())?)))
                .collect(),
            rows: Vec::new(),
            layout,
        })
    }
}

impl WordRun<'_> {
    /// Adds these rows; yields how many were added, and why the one behind them was not.
    ///
    /// The batch is then as it was before that one.
    pub fn extend(
        &mut self,
        words: &(impl Words + ?Sized),
        rows: &[WordSpan],
    ) -> (usize, Result<(), PushError>) {
        let run = &mut self.0;
        // What was added as bytes comes first.
        run.rows.flush(run.table);
        let Some(known) = &mut run.rows.words else {
            return (0, Err(PushError::Malformed));
        };
        let stride = known.layout.words();
        let mut staged = std::mem::take(&mut known.rows);
        staged.resize(stride.saturating_mul(rows.len()), 0);
        let mut added = 0;
        let mut bytes = 0;
        let mut result = Ok(());
        let mut places = staged.chunks_exact_mut(stride.max(1));
        for row in rows {
            let fields = places.next().unwrap_or_default();
            if let Err(error) = known.take(fields, words, row, run.strings, run.index) {
                result = Err(error);
                break;
            }
            added += 1;
            bytes += row.words * 8 + TIME_BYTES;
        }
        staged.truncate(stride.saturating_mul(added));
        let rows = rows.get(..added).unwrap_or_default();
        let fields = run.table.schema.fields().iter();
        let columns = run.table.columns.iter_mut();
        for ((column, field), place) in columns.zip(fields).zip(known.layout.fields()) {
            let values = Values {
                rows: &staged,
                stride,
                place: *place,
            };
            values.append_to(column, field.field_type());
        }
        known.rows = staged;
        let times = rows.iter().map(|row| row.timestamp);
        run.table.timestamps.extend(times);
        *run.records = run.records.wrapping_add(added);
        *run.row_bytes = run.row_bytes.saturating_add(bytes);
        if let Some((number, order)) = &mut run.order {
            order.resize(*run.records, *number);
        }
        (added, result)
    }
}

impl WordRows {
    /// Takes a copy of a row's fields, checked and with the ids of its strings.
    #[inline(always)]
    fn take(
        &self,
        fields: &mut [u64],
        words: &(impl Words + ?Sized),
        row: &WordSpan,
        strings: &mut StringTable,
        index: &mut StringIndex,
    ) -> Result<(), PushError> {
        let copied = words.copy(row.at, fields);
        copied.ok_or(PushError::Malformed)?;
        for (place, check) in &self.checks {
            let bits = fields
                .get(place.word)
                .map_or(0, |word| *word >> place.shift);
            if !check.allows(low_half(bits & place.width.mask())) {
                return Err(PushError::Malformed);
            }
        }
        let mut text_at = row.at.wrapping_add(self.layout.words());
        let end = row.at.wrapping_add(row.words);
        for place in &self.strings {
            let word = fields.get_mut(place.word).ok_or(PushError::Malformed)?;
            let tag = low_half(*word >> place.shift);
            let id = if tag & INTERNED != 0 {
                index.interned_id(Interned::from_number(tag & !INTERNED), strings)?
            } else {
                let bytes = usize::try_from(tag).map_err(|_| PushError::Malformed)?;
                let at = text_at;
                text_at = at.wrapping_add(text_words(bytes));
                if text_at > end {
                    return Err(PushError::Malformed);
                }
                index.id_of_words(words, at, tag, strings)?
            };
            *word ^= u64::from(tag ^ id) << place.shift;
        }
        if text_at == end {
            Ok(())
        } else {
            Err(PushError::Malformed)
        }
    }
}

fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// One field of many rows.
struct Values<'a> {
    rows: &'a [u64],
    stride: usize,
    place: Place,
}

impl Values<'_> {
    fn append_to(&self, column: &mut Column, field_type: &FieldType) {
        match column {
            Column::Bool(values) => self.extend(values, |bits| bits & 1 != 0),
            Column::Char(values) => self.extend(values, |bits| {
                char::from_u32(low_half(bits)).unwrap_or_default()
            }),
            Column::Enum(values) | Column::F32(values) | Column::String(values) => {
                self.extend(values, low_half);
            }
            Column::F64(values) => self.extend_whole(values, |bits| bits),
            Column::Signed(values) => match field_type {
                FieldType::I64 => self.extend_whole(values, u64::cast_signed),
                FieldType::I32 => self.extend(values, |bits| low_half(bits).cast_signed().into()),
                _ => {
                    let unused = 64 - field_type.integer_bits().unwrap_or(64);
                    self.extend(values, |bits| (bits << unused).cast_signed() >> unused);
                }
            },
            Column::Unsigned(values) => match field_type {
                FieldType::U64 => self.extend_whole(values, |bits| bits),
                FieldType::U32 => self.extend(values, |bits| low_half(bits).into()),
                _ => {
                    let unused = 64 - field_type.integer_bits().unwrap_or(64);
                    self.extend(values, |bits| bits << unused >> unused);
                }
            },
            // Types with such columns are not flat.
            Column::Bytes(_) | Column::List(_) | Column::Optional(_) | Column::Record(_) => {}
        }
    }

    /// Appends values of which the lowest bits count.
    #[inline(always)]
    fn extend<T>(&self, to: &mut Vec<T>, value: impl Fn(u64) -> T) {
        let shift = self.place.shift;
        self.extend_whole(to, |word| value(word >> shift));
    }

    /// Appends values made of whole words.
    #[inline(always)]
    fn extend_whole<T>(&self, to: &mut Vec<T>, value: impl Fn(u64) -> T) {
        let Self {
            rows,
            stride,
            place,
        } = *self;
        if place.word >= stride {
            // Never; but the compiler need not check it in every row.
            return;
        }
        let words = rows.chunks_exact(stride);
        to.extend(words.map(|row| value(row.get(place.word).copied().unwrap_or(0))));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::record::words::{WordSink, WordSpan, words_of_text};
    use crate::record::{BatchBuilder, Interned, PushError, Record};

    #[derive(Debug, Clone, Copy, PartialEq, Record)]
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
        site: Interned,
        small: i8,
        letter: char,
        number: i64,
        colour: Colour,
        half: u16,
        more: String,
        short: i32,
        #[record(timestamp)]
        at: u64,
    }

    #[derive(Debug, Clone, Record)]
    #[record(crate = "crate")]
    struct Other {
        name: String,
        count: u32,
    }

    /// Appends the row to those before it.
    struct Rows<'a>(&'a mut Vec<u64>);

    impl WordSink for Rows<'_> {
        type Output = WordSpan;

        fn put<const WORDS: usize, const TEXTS: usize>(
            self,
            words: [u64; WORDS],
            texts: [&str; TEXTS],
        ) -> WordSpan {
            let at = self.0.len();
            self.0.extend(words);
            self.0.extend(texts.into_iter().flat_map(words_of_text));
            WordSpan {
                at,
                words: self.0.len() - at,
                timestamp: -1,
            }
        }
    }

    fn span<R: Record>(record: &R, words: &mut Vec<u64>) -> WordSpan {
        let span = record.write_words(Rows(words)).unwrap();
        WordSpan {
            timestamp: record.timestamp().unwrap_or(-1),
            ..span
        }
    }

    fn flat() -> impl Strategy<Value = Flat> {
        let texts = ("[a-c]{0,2}|.{0,60}", "[a-c]{30,45}|x");
        let numbers = (any::<i64>(), any::<i8>(), any::<u16>(), any::<i32>());
        (texts, numbers, any::<char>(), 0..i64::MAX.cast_unsigned()).prop_map(
            |((name, more), (number, small, half, short), letter, at)| Flat {
                yes: number > 0,
                name,
                site: Interned::new(if half % 3 == 0 { "one" } else { "another" }),
                small,
                letter,
                number,
                colour: if small > 0 {
                    Colour::Red
                } else {
                    Colour::Green
                },
                half,
                more,
                short,
                at,
            },
        )
    }

    proptest! {
        #[test]
        fn batch_of_words_is_the_one_of_records(
            batches in prop::collection::vec(
                prop::collection::vec((prop::collection::vec(flat(), 1..6), any::<bool>()), 1..6),
                1..4,
            ),
        ) {
            let (mut by_words, mut by_record) = (BatchBuilder::new(), BatchBuilder::new());
            for runs in batches {
                for (records, also_other) in runs {
                    let mut words = vec![7; 3];
                    let spans: Vec<_> =
                        records.iter().map(|record| span(record, &mut words)).collect();
                    let mut run = by_words.words(Flat::schema()).unwrap();
                    prop_assert_eq!(run.extend(words.as_slice(), &spans), (spans.len(), Ok(())));
                    for record in &records {
                        by_record.push(record).unwrap();
                    }
                    if also_other {
                        let other = Other { name: records[0].name.clone(), count: 1 };
                        by_words.push(&other).unwrap();
                        by_record.push(&other).unwrap();
                        // As bytes among words.
                        by_words.push(&records[0]).unwrap();
                        by_record.push(&records[0]).unwrap();
                    }
                }
                prop_assert_eq!(by_words.len(), by_record.len());
                prop_assert_eq!(by_words.batch(), by_record.batch());
                by_words.clear();
                by_record.clear();
            }
        }
    }

    #[test]
    fn rows_before_one_that_is_refused_are_added_and_it_leaves_nothing() {
        let good = Other {
            name: "a name".into(),
            count: 4,
        };
        let mut words = Vec::new();
        let spans: Vec<_> = (0..3).map(|_| span(&good, &mut words)).collect();
        for wrong in [
            // Its text would end behind it, before its end, and is no UTF-8.
            WordSpan {
                words: 1,
                ..spans[1]
            },
            WordSpan {
                words: 3,
                ..spans[1]
            },
            WordSpan {
                at: words.len(),
                ..spans[1]
            },
        ] {
            let mut builder = BatchBuilder::new();
            let mut run = builder.words(Other::schema()).unwrap();
            let rows = [spans[0], wrong, spans[2]];
            let result = run.extend(words.as_slice(), &rows);
            assert_eq!(result, (1, Err(PushError::Malformed)), "{wrong:?}");
            let result = run.extend(words.as_slice(), &rows[2..]);
            assert_eq!(result, (1, Ok(())));
            let read: Vec<_> = builder
                .batch()
                .read::<Other>()
                .map(|record| record.map(|it| (it.name, it.count)).unwrap())
                .collect();
            assert_eq!(read, vec![("a name".to_owned(), 4); 2]);
        }
        let mut broken = words;
        *broken.last_mut().unwrap() = u64::MAX;
        let mut builder = BatchBuilder::new();
        let mut run = builder.words(Other::schema()).unwrap();
        let result = run.extend(broken.as_slice(), &spans);
        assert_eq!(result, (2, Err(PushError::Malformed)));
    }

    #[test]
    fn values_that_a_type_does_not_have_are_refused() {
        #[derive(Record)]
        #[record(crate = "crate")]
        struct Checked {
            letter: char,
            colour: Colour,
            yes: bool,
        }
        let mut words = Vec::new();
        let record = Checked {
            letter: 'x',
            colour: Colour::Green,
            yes: true,
        };
        let row = span(&record, &mut words);
        // A surrogate, a third variant, a bool of two.
        for (word, bits) in [(0, 0xd800), (0, 2 << 32), (1, 2)] {
            let mut wrong = words.clone();
            wrong[word] = bits;
            let mut builder = BatchBuilder::new();
            let mut run = builder.words(Checked::schema()).unwrap();
            let refused = (0, Err(PushError::Malformed));
            assert_eq!(run.extend(wrong.as_slice(), &[row]), refused, "{bits:x}");
            assert_eq!(run.extend(words.as_slice(), &[row]), (1, Ok(())));
        }
    }
}
