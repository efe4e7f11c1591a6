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
        texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) -> Vec<u64> {
        let mut row = words().to_vec();
        for text in texts {
            let at = row.len();
            assert!(text.place(&mut row, at));
            row.extend(words_of_text(text.text()));
        }
        row
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
        prop_assert!(layout.write_row(words.as_slice(), 0, &mut written));
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
fn row_whose_texts_are_not_there_is_told() {
    let words = flat("a name".into(), String::new(), 1, 1, 'x')
        .write_words(Kept)
        .unwrap();
    let layout = WordLayout::of(Flat::schema()).unwrap();
    let shorter = &words[..words.len() - 1];
    assert!(!layout.write_row(shorter, 0, &mut Vec::new()));
}

#[test]
fn what_cannot_be_placed_is_told() {
    let text = |length| "x".repeat(length);
    let place = |text: &str, at| {
        let text = WordText { text, offset: 4 };
        let mut words = [0];
        let fits = text.place(&mut words, at);
        fits.then(|| text_place(u32::try_from(words[0] >> 32).unwrap()))
    };
    assert_eq!(place(&text(0xffff), 0x7fff), Some((0x7fff, 0xffff)));
    assert_eq!(place(&text(3), 0), Some((0, 3)));
    assert_eq!(place(&text(0x1_0000), 0), None);
    assert_eq!(place("", 0x8000), None);
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
