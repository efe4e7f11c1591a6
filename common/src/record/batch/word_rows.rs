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
    /// The fields that are strings, in their order.
    strings: Box<[Strings]>,
    /// What to check, and where.
    checks: Box<[(Place, Check)]>,
    /// Where the next text of each row begins.
    texts_at: Vec<usize>,
}

/// One field of the rows being added, a string.
#[derive(Debug)]
struct Strings {
    place: Place,
    /// Of each row.
    ids: Vec<u32>,
}

/// Adds rows of words of one type; see [`BatchBuilder::words`](super::BatchBuilder::words).
#[derive(Debug)]
pub struct WordRun<'a>(pub(super) Run<'a>);

impl WordRows {
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let layout = WordLayout::of(schema)?;
        let places = || layout.fields().iter().copied();
        let fields = || places().zip(schema.fields());
        let strings = places().filter(|place| place.width.is_text());
        Some(Self {
            strings: strings
                .map(|place| Strings {
                    place,
                    ids: Vec::new(),
                })
                .collect(),
            checks: fields()
                .filter_map(|(place, field)| Some((place, Check::of(field.field_type())?)))
                .collect(),
            texts_at: Vec::new(),
            layout,
        })
    }
}

impl WordRun<'_> {
    /// Adds these rows; yields how many were added, and why the one behind them was not.
    ///
    /// The batch is then as it was before that one, but that it may know strings of those behind.
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
        let (rows, result) = known.check(words, rows, run.strings, run.index);
        let mut strings = known.strings.iter();
        let fields = run.table.schema.fields().iter();
        let columns = run.table.columns.iter_mut();
        for ((column, field), place) in columns.zip(fields).zip(known.layout.fields()) {
            if let (Column::String(ids), true) = (&mut *column, place.width.is_text()) {
                let known = strings.next().map(|strings| strings.ids.as_slice());
                ids.extend_from_slice(known.unwrap_or_default());
                continue;
            }
            let values = Values {
                words,
                rows,
                place: *place,
            };
            values.append_to(column, field.field_type());
        }
        let times = rows.iter().map(|row| row.timestamp);
        run.table.timestamps.extend(times);
        let bytes = rows.iter().map(|row| row.words * 8 + TIME_BYTES);
        *run.row_bytes = run.row_bytes.saturating_add(bytes.sum());
        *run.records = run.records.wrapping_add(rows.len());
        if let Some((number, order)) = &mut run.order {
            order.resize(*run.records, *number);
        }
        (rows.len(), result)
    }
}

impl WordRows {
    /// Finds the ids of the rows' strings and yields the rows before the first one that is malformed,
    /// or for which there is no room, with the reason.
    ///
    /// Field by field, so that what is known of a field is looked up once.
    fn check<'a>(
        &mut self,
        words: &(impl Words + ?Sized),
        rows: &'a [WordSpan],
        table: &mut StringTable,
        index: &mut StringIndex,
    ) -> (&'a [WordSpan], Result<(), PushError>) {
        let mut good = Good {
            rows,
            result: Ok(()),
        };
        let fixed = self.layout.words();
        good.end_at(
            |row| match words.word(row.at.wrapping_add(row.words.saturating_sub(1))) {
                Some(_) if row.words >= fixed => Ok(()),
                // It has no word at all.
                None if row.words == 0 && fixed == 0 => Ok(()),
                _ => Err(PushError::Malformed),
            },
        );
        for (place, check) in &self.checks {
            good.end_at(|row| {
                let bits = place.bits(words, row.at) & place.width.mask();
                let allowed = check.allows(low_half(bits));
                allowed.then_some(()).ok_or(PushError::Malformed)
            });
        }
        self.texts_at.clear();
        self.texts_at
            .extend(rows.iter().map(|row| row.at.wrapping_add(fixed)));
        for strings in &mut self.strings {
            strings.find(&mut good, words, &mut self.texts_at, (table, index));
        }
        let mut ends = self.texts_at.iter();
        good.end_at(|row| {
            let end = row.at.wrapping_add(row.words);
            let is_end = ends.next() == Some(&end);
            is_end.then_some(()).ok_or(PushError::Malformed)
        });
        for strings in &mut self.strings {
            strings.ids.truncate(good.rows.len());
        }
        (good.rows, good.result)
    }
}

/// The rows before the first one that is not.
struct Good<'a> {
    rows: &'a [WordSpan],
    result: Result<(), PushError>,
}

impl Good<'_> {
    /// Ends them before the first one that this refuses.
    #[inline(always)]
    fn end_at(&mut self, mut refuse: impl FnMut(&WordSpan) -> Result<(), PushError>) {
        for (at, row) in self.rows.iter().enumerate() {
            if let Err(error) = refuse(row) {
                self.rows = self.rows.get(..at).unwrap_or_default();
                self.result = Err(error);
                return;
            }
        }
    }
}

impl Strings {
    /// Finds the ids of this field's strings, and where the texts behind them begin.
    #[inline]
    fn find(
        &mut self,
        good: &mut Good<'_>,
        words: &(impl Words + ?Sized),
        texts_at: &mut [usize],
        (table, index): (&mut StringTable, &mut StringIndex),
    ) {
        let Self { place, ids } = self;
        ids.clear();
        ids.reserve(good.rows.len());
        let mut texts_at = texts_at.iter_mut();
        // Most often a text is that of the row before: where that begins, its length and id.
        let mut before = None;
        good.end_at(|row| {
            let tag = low_half(place.bits(words, row.at));
            let text_at = texts_at.next().ok_or(PushError::Malformed)?;
            let id = if tag & INTERNED != 0 {
                index.interned_id(Interned::from_number(tag & !INTERNED), table)?
            } else {
                let count = usize::try_from(tag).map_or(usize::MAX, text_words);
                let at = *text_at;
                *text_at = at.wrapping_add(count);
                if *text_at > row.at.wrapping_add(row.words) {
                    return Err(PushError::Malformed);
                }
                match before {
                    Some((other, length, id))
                        if length == tag && words.are_equal(at, other, count) =>
                    {
                        id
                    }
                    _ => {
                        let id = index.id_of_words(words, at, tag, table)?;
                        before = Some((at, tag, id));
                        id
                    }
                }
            };
            ids.push(id);
            Ok(())
        });
    }
}

fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// One field of many rows, no string.
struct Values<'a, W: ?Sized> {
    words: &'a W,
    rows: &'a [WordSpan],
    place: Place,
}

impl<W: Words + ?Sized> Values<'_, W> {
    fn append_to(&self, column: &mut Column, field_type: &FieldType) {
        match column {
            Column::Bool(values) => self.extend(values, |bits| bits & 1 != 0),
            Column::Char(values) => self.extend(values, |bits| {
                char::from_u32(low_half(bits)).unwrap_or_default()
            }),
            Column::Enum(values) | Column::F32(values) => self.extend(values, low_half),
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
            // Strings were added; types with the others are not flat.
            Column::String(_)
            | Column::Bytes(_)
            | Column::List(_)
            | Column::Optional(_)
            | Column::Record(_) => {}
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
        let Self { words, rows, place } = *self;
        let word = |row: &WordSpan| words.word(row.at.wrapping_add(place.word)).unwrap_or(0);
        to.extend(rows.iter().map(|row| value(word(row))));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::record::words::{WordSink, WordSpan, words_of_text};
    use crate::record::{BatchBuilder, Interned, PushError, Record, RecordBatch};

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

    /// What its records say; their strings may have other numbers. And which strings there are.
    fn said(batch: &RecordBatch) -> (Vec<String>, Vec<String>) {
        let records = batch.records().map(|record| {
            let fields: Vec<_> = record
                .fields()
                .values()
                .map(|(_, value)| value.to_value())
                .collect();
            format!(
                "{:?} {:?} {fields:?}",
                record.schema().name(),
                record.timestamp()
            )
        });
        let mut strings: Vec<_> = batch.strings().iter().map(str::to_owned).collect();
        strings.sort_unstable();
        (records.collect(), strings)
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
                prop_assert_eq!(said(by_words.batch()), said(by_record.batch()));
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
        for (word, bits) in [(0, 0xd800 << 32), (0, 2), (1, 2)] {
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
