use super::*;
use crate::container::varint;
use crate::number::{to_u64, to_usize};

/// Words whose numbers take one, two and three bytes.
const MANY: usize = 612;

fn spelled() -> Vec<String> {
    let words = (0..MANY).map(|number| format!("{number}{}", "x".repeat(number % 20)));
    words.collect()
}

/// A string of all words, each spelled, and one that names these words by their numbers. The
/// numbers take `more` words and bytes after them.
fn read_numbers(numbers: &[u64], more: &[u8], bytes: usize) -> Result<String, DecodeError> {
    let mut body = Vec::new();
    varint::write(&mut body, WORDS);
    varint::write(&mut body, to_u64(MANY));
    for word in spelled() {
        varint::write(&mut body, to_u64(word.len()) - 1);
        body.extend_from_slice(word.as_bytes());
    }
    varint::write(&mut body, WORDS);
    let words = numbers.len() + usize::from(!more.is_empty());
    varint::write(&mut body, to_u64(words));
    for number in numbers {
        varint::write(&mut body, OF_CHUNK + number);
    }
    body.extend_from_slice(more);
    let cursor = &mut Cursor::in_body(&body);
    let bytes = spelled().concat().len() + bytes;
    let (text, ends) = read(cursor, 2, bytes, "a test")?;
    let start = to_usize(ends[0]);
    assert_eq!(&text[..start], spelled().concat().as_bytes());
    Ok(String::from_utf8(text[start..].to_vec()).unwrap())
}

#[test]
fn words_of_any_number_are_found_again() {
    let words = spelled();
    let every: Vec<u64> = (0..to_u64(MANY)).rev().collect();
    let expected: String = words.iter().rev().map(String::as_str).collect();
    let found = read_numbers(&every, &[], expected.len()).unwrap();
    assert_eq!(found, expected);
    // Also without room after it.
    for number in [0, 94, 95, 478, 479, MANY - 1] {
        let bytes = words[number].len();
        let number = [to_u64(number)];
        let found = read_numbers(&number, &[], bytes).unwrap();
        assert_eq!(found.len(), bytes);
        let error = read_numbers(&number, &[], bytes - 1).unwrap_err();
        let limit = matches!(error.kind, DecodeErrorKind::Limit { .. });
        assert!(limit, "{error}");
    }
}

#[test]
fn numbers_that_no_word_has_are_refused() {
    let next = OF_CHUNK + to_u64(MANY);
    for (more, kind) in [
        (vec![0x80, 0], DecodeErrorKind::Varint),
        (vec![0xa1, 0x80, 0], DecodeErrorKind::Varint),
        (vec![0xa1], DecodeErrorKind::Ends { needed: 2, left: 1 }),
        (
            varint::encode(next).0[..2].to_vec(),
            DecodeErrorKind::Invalid { found: next },
        ),
    ] {
        let error = read_numbers(&[3, 200], &more, 1_000).unwrap_err();
        assert_eq!(error.kind, kind, "{more:?}");
    }
}
