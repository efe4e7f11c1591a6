use super::super::split::words;
use super::*;

const DOCUMENT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/FORMAT.md"));

#[test]
fn the_document_has_the_same_words() {
    let (_, behind) = DOCUMENT.split_once("### Well-known words").unwrap();
    let block = behind.split("```text\n").nth(1).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut parts = block.split('`');
    for (number, token) in TOKENS.iter().enumerate() {
        let documented = parts.next().unwrap().trim().parse();
        assert_eq!((documented, parts.next()), (Ok(number), Some(*token)));
    }
    assert_eq!(parts.next().map(str::trim), Some(""));
}

#[test]
fn every_token_is_a_word_of_its_own_and_there_once() {
    let mut sorted = TOKENS.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), TOKENS.len());
    for token in TOKENS {
        let mut found = 0;
        let text = match token.contains(['(', ')', ',']) {
            true => format!("({token}"),
            false => token.to_owned(),
        };
        words(text.as_bytes(), |_| found += 1);
        let expected = if text == token { 1 } else { 2 };
        assert!(found <= expected, "{token}");
    }
}
