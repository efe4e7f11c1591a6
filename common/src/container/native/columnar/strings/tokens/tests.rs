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
        split_words(text.as_bytes(), |_| found += 1);
        let expected = if text == token { 1 } else { 2 };
        assert!(found <= expected, "{token}");
    }
}

#[test]
fn every_byte_is_spelled_and_found_again() {
    let bytes: Vec<u8> = (0..=255).collect();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (mut packed, mut unpacked) = (vec![0; 256], vec![0; 512]);
    assert!(pack_hex(text.as_bytes(), &mut packed));
    assert_eq!(packed, bytes);
    unpack_hex(&packed, &mut unpacked);
    assert_eq!(unpacked, text.as_bytes());
    unpack_hex(&bytes[250..255], &mut unpacked[..10]);
    assert_eq!(unpacked[..10], *b"fafbfcfdfe");
}

#[test]
fn what_is_no_lowercase_digit_is_left_alone() {
    let mut out = [0; 16];
    for byte in (0..=255_u8).filter(|byte| !b"0123456789abcdef".contains(byte)) {
        for at in 0..16 {
            let mut text = *b"0123456789abcdef";
            text[at] = byte;
            assert!(!pack_hex(&text, &mut out), "{byte}");
        }
    }
    assert!(!pack_hex(b"01234567", &mut out) && !pack_hex(b"0123456789abcde", &mut out));
    assert!(!pack_hex(b"0123456789abcdef01", &mut out));
}

fn cut(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    split_words(text.as_bytes(), |word| {
        found.push(std::str::from_utf8(word).unwrap());
    });
    assert_eq!(found.concat(), text);
    found
}

#[test]
fn signatures_are_cut_into_words_with_what_separates_them() {
    assert_eq!(
        cut("public void org.shop.Order17.findAll(java.lang.String, int)"),
        [
            "public ",
            "void ",
            "org.",
            "shop.",
            "Order",
            "1",
            "7.",
            "find",
            "All(",
            "java.lang.String, ",
            "int)"
        ]
    );
    assert_eq!(
        cut("shop::cart::add_item"),
        ["shop::", "cart::", "add_", "item"]
    );
    assert_eq!(cut("<no-session-id>"), ["<", "no-", "session-", "id>"]);
    assert_eq!(cut(""), Vec::<&str>::new());
}

#[test]
fn short_numbers_are_cut_into_digits() {
    assert_eq!(cut("Order17.find9("), ["Order", "1", "7.", "find", "9("]);
    assert_eq!(cut("v2026-11"), ["v", "2", "0", "2", "6-", "1", "1"]);
    assert_eq!(cut("id12345x"), ["id", "12345", "x"]);
    assert_eq!(cut("f(a17, b)"), ["f(", "a17, ", "b)"]);
}

#[test]
fn words_are_no_longer_than_they_may_be() {
    let lengths = |text: &str| cut(text).iter().map(|word| word.len()).collect::<Vec<_>>();
    assert_eq!(lengths(&"a".repeat(70)), [32, 32, 6]);
    assert_eq!(lengths(&".".repeat(32)), [32]);
}
