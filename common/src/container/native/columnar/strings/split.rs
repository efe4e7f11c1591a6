//! Where a string is cut into words, so that strings share them.

/// The most bytes of a word.
pub(super) const MAX_WORD_BYTES: usize = 32;

/// The most digits of a number that is cut into digits. A longer number is hardly smaller in digits
/// than as a word of its own.
const MAX_APART: usize = 4;

/// What a byte is to the cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Digit,
    Lower,
    Separator,
    Upper,
}

impl Kind {
    fn of(byte: u8) -> Self {
        match byte {
            b'0'..=b'9' => Self::Digit,
            b'A'..=b'Z' => Self::Upper,
            // Bytes of other scripts make words, too.
            b'a'..=b'z' | 0x80.. => Self::Lower,
            _ => Self::Separator,
        }
    }
}

/// Passes the words of a text to `take`. Laid end to end they are the text.
///
/// A word keeps the separators after it. It ends before a capital, between letters and digits, and
/// between the digits of a short number: most digits have a number in the chunk when most numbers
/// are new.
/// Between parentheses the cuts are between parameters only: their paths recur again and again.
/// A reader does not care where the cuts are.
pub(super) fn words<'a>(text: &'a [u8], mut take: impl FnMut(&'a [u8])) {
    let mut start = 0;
    let mut in_parentheses = false;
    let pairs = text.iter().zip(text.iter().skip(1));
    for (end, (before, byte)) in (1..).zip(pairs) {
        match *before {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            _ => {}
        }
        let cut = match (Kind::of(*before), Kind::of(*byte)) {
            (Kind::Separator, Kind::Separator) => false,
            (Kind::Separator, _) if in_parentheses => matches!(*before, b'(' | b',' | b' '),
            (Kind::Separator, _) => true,
            _ if in_parentheses => false,
            (Kind::Digit | Kind::Lower, Kind::Upper) => true,
            (Kind::Lower | Kind::Upper, Kind::Digit) => true,
            (Kind::Digit, Kind::Lower) => true,
            (Kind::Digit, Kind::Digit) => is_short_number(text, end),
            _ => false,
        };
        if cut || end - start == MAX_WORD_BYTES {
            text.get(start..end).into_iter().for_each(&mut take);
            start = end;
        }
    }
    let last = text.get(start..).filter(|word| !word.is_empty());
    last.into_iter().for_each(take);
}

/// Whether the number in which there are digits on both sides of this place is to be cut.
fn is_short_number(text: &[u8], at: usize) -> bool {
    let (before, behind) = text.split_at_checked(at).unwrap_or((text, &[]));
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let before = before.iter().rev().take(MAX_APART).take_while(is_digit);
    let behind = behind.iter().take(MAX_APART).take_while(is_digit);
    before.count() + behind.count() <= MAX_APART
}

#[cfg(test)]
mod tests {
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
}
