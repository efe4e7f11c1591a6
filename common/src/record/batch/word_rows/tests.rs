//! Rows of words make the same batches as records.

use proptest::prelude::*;

use crate::record::words::{WordRows, WordSink, WordText, words_of_text};
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

/// Appends the row and its texts to the rows before it, after its timestamp.
struct Rows<'a>(&'a mut Vec<u64>, i64);

impl WordSink for Rows<'_> {
    type Output = u32;

    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) -> u32 {
        let (Self(all, timestamp), mut row) = (self, words());
        let at = all.len();
        all.push(timestamp.cast_unsigned());
        all.resize(at + 1 + WORDS, 0);
        for text in texts {
            assert!(text.place(&mut row, all.len()));
            all.extend(words_of_text(text.text()));
        }
        all[at + 1..][..WORDS].copy_from_slice(&row);
        u32::try_from(at).unwrap()
    }
}

/// Returns the start of the row.
fn add<R: Record>(record: &R, words: &mut Vec<u64>) -> u32 {
    let sink = Rows(words, record.timestamp().unwrap_or(-1));
    record.write_words(sink).unwrap()
}

fn rows<'a>(words: &[u64], starts: &'a [u32]) -> WordRows<'a> {
    WordRows {
        starts,
        end: words.len(),
        head: 1,
        time: 0,
    }
}

/// Returns the records as text (their strings may have other numbers), and the strings.
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
                let starts: Vec<_> =
                    records.iter().map(|record| add(record, &mut words)).collect();
                let mut run = by_words.words(Flat::schema()).unwrap();
                for part in starts.chunks(2) {
                    let added = run.extend(words.as_slice(), &rows(&words, part), u64::cast_signed);
                    prop_assert_eq!(added, (part.len(), Ok(())));
                }
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

fn added(
    builder: &mut BatchBuilder,
    (words, rows): (&[u64], WordRows<'_>),
) -> (usize, Result<(), PushError>) {
    let mut run = builder.words(Other::schema()).unwrap();
    run.extend(words, &rows, u64::cast_signed)
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let good = Other {
        name: "a name".into(),
        count: 4,
    };
    let mut words = Vec::new();
    let mut starts = [(); 3].map(|()| add(&good, &mut words));
    let there = rows(&words, &starts);
    let (end, last) = (words.len(), there.starts[2]);
    let refused = (0, Err(PushError::Malformed));
    // Without room for fields, time or head, or after all words.
    for wrong in [
        WordRows {
            end: end + 1,
            ..there
        },
        WordRows {
            end: end - 2,
            ..there
        },
        WordRows { time: 3, ..there },
        WordRows { head: 3, ..there },
    ] {
        let mut builder = BatchBuilder::new();
        assert_eq!(added(&mut builder, (&words, wrong)), refused, "{wrong:?}");
        assert_eq!(added(&mut builder, (&words, there)), (3, Ok(())));
    }
    let mut builder = BatchBuilder::new();
    assert_eq!(
        added(&mut builder, (&words, rows(&words, &[]))),
        (0, Ok(()))
    );
    starts[1] = last + 3;
    assert_eq!(
        added(&mut builder, (&words, rows(&words, &starts))),
        refused
    );
}

#[test]
fn rows_before_a_text_that_is_none_are_added_and_it_leaves_nothing() {
    let records = ["one", "another", "third"].map(|name| Other {
        name: name.into(),
        count: 4,
    });
    let mut words = Vec::new();
    let starts = records.each_ref().map(|it| add(it, &mut words));
    let second = usize::try_from(starts[1]).unwrap();
    let (fields, text) = (second + 1, second + 2);
    // Not UTF-8, and after all words.
    for (at, word) in [(text, u64::MAX), (fields, words[fields] | 0x7fff << 48)] {
        let mut broken = words.clone();
        broken[at] = word;
        let mut builder = BatchBuilder::new();
        let refused = (1, Err(PushError::Malformed));
        let rows = rows(&words, &starts);
        assert_eq!(added(&mut builder, (&broken, rows)), refused);
        assert_eq!(builder.len(), 1);
        assert_eq!(builder.estimated_bytes(), 16 + 8 + "one".len());
        assert_eq!(added(&mut builder, (&words, rows)), (3, Ok(())));
        let names = builder.batch().read::<Other>().map(|it| it.unwrap().name);
        assert!(names.eq(["one", "one", "another", "third"]));
    }
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
    let starts = [add(&record, &mut words)];
    // A surrogate, a third variant, a bool of two.
    for (word, bits) in [(1, 0xd800 << 32), (1, 2), (2, 2)] {
        let mut wrong = words.clone();
        wrong[word] = bits;
        let mut builder = BatchBuilder::new();
        let mut run = builder.words(Checked::schema()).unwrap();
        let refused = (0, Err(PushError::Malformed));
        let mut add = |words: &[u64]| run.extend(words, &rows(words, &starts), u64::cast_signed);
        assert_eq!(add(&wrong), refused, "{bits:x}");
        assert_eq!(add(&words), (1, Ok(())));
    }
}
