use super::*;

fn cut(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    words(text.as_bytes(), |word| {
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
