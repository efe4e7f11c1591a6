//! The parts of strings: words that a chunk names by number instead of spelling them (FORMAT.md,
//! "Well-known words", holds the same table), strings of hexadecimal digits, of which two take one
//! byte, and the rules that cut a string into words, so that strings share words.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The words by number. They are part of the format: new words may only be appended, and there is
/// room for 256.
#[rustfmt::skip]
pub(super) const TOKENS: [&str; 242] = [
    // Signatures of Java.
    "public ", "private ", "protected ", "static ", "final ", "abstract ", "synchronized ",
    "void ", "boolean ", "int ", "long ", "double ", "java.", "javax.", "jakarta.", "lang.",
    "util.", "io.", "net.", "sql.", "time.", "Object ", "String ", "Integer ", "Long ", "Boolean ",
    "List ", "Map ", "Set ", "Optional ", "Collection ", "init>", "int)", "int, ", "long)",
    "long, ", "boolean)", "boolean, ", "double)", "double, ", "java.lang.Object)",
    "java.lang.Object, ", "java.lang.String)", "java.lang.String, ", "java.lang.Long)",
    "java.lang.Long, ", "java.lang.Integer)", "java.lang.Integer, ", "java.util.List)",
    "java.util.List, ", "java.util.Map)", "java.util.Map, ",
    // Packages and modules.
    "com.", "org.", "de.", "dev.", "example.", "apache.", "springframework.", "kieker.", "app.",
    "api.", "web.", "rest.", "core.", "common.", "internal.", "impl.", "config.", "client.",
    "server.", "service.", "services.", "repository.", "controller.", "controllers.", "gateway.",
    "model.", "domain.", "data.", "dao.", "dto.", "entity.", "handler.", "event.", "security.",
    "auth.", "account.", "user.", "customer.", "session.", "shop.", "store.", "catalog.",
    "product.", "inventory.", "cart.", "order.", "orders.", "checkout.", "payment.", "billing.",
    "shipping.", "search.", "notification.", "report.",
    "std::", "core::", "alloc::", "tokio::", "main::", "lib::", "app::", "api::", "web::",
    "client::", "server::", "service::", "services::", "repository::", "handler::", "handlers::",
    "routes::", "model::", "models::", "domain::", "db::", "auth::", "account::", "user::",
    "session::", "shop::", "catalog::", "product::", "inventory::", "cart::", "order::",
    "checkout::", "payment::", "shipping::", "search::",
    // Parts of names.
    "Service", "Service.", "Services", "Controller", "Controller.", "Repository", "Repository.",
    "Gateway", "Gateway.", "Handler", "Handler.", "Factory", "Factory.", "Client", "Client.",
    "Impl", "Impl.", "Order", "Order(", "Order.", "Product", "Product(", "Product.", "Customer",
    "Customer(", "Customer.", "User", "User(", "User.", "Account", "Account(", "Account.", "Item",
    "Item(", "Cart", "Cart(", "Invoice", "Invoice(", "Payment", "Payment(", "Stock", "Stock(",
    "Session", "Session(", "Address", "Address(", "Discount", "Discount(", "Price", "Price(",
    "Name", "Name(", "Id", "Id(", "All", "All(", "By", "get", "set", "is", "has", "find", "load",
    "save", "add", "remove", "create", "update", "delete", "validate", "calculate", "process",
    "handle", "execute", "run(", "close(", "read", "write", "send", "publish", "reserve", "merge",
    "get_", "set_", "find_", "load_", "add_", "remove_", "create_", "update_", "delete_", "by_",
    "id",
    // Kieker's values for unknown names.
    "<", "no-", "session-", "id>", "trace-", "default-", "host>", "localhost",
];

/// The numbers of the well-known words.
static NUMBERS: LazyLock<HashMap<&[u8], u8>> = LazyLock::new(|| {
    let words = TOKENS.iter().map(|word| word.as_bytes());
    words.zip(0..=u8::MAX).collect()
});

/// Returns the number of a well-known word.
pub(super) fn token(word: &[u8]) -> Option<u8> {
    NUMBERS.get(word).copied()
}

/// The least digits of a packed string of digits.
const LEAST_DIGITS: usize = 16;

/// Stands for a character that is no lowercase hexadecimal digit.
const NO_DIGIT: u8 = 0x10;

/// Whether it is a lowercase hexadecimal digit.
pub(super) fn is_hex_digit(byte: u8) -> bool {
    hex_value(byte) != NO_DIGIT
}

/// Writes the bytes of a string of lowercase hexadecimal digits to the front of `out`, as far as
/// there is room. Returns `false` if the string has other characters, or its length is not a
/// multiple of eight of at least 16; the content of `out` is then undefined.
pub(super) fn pack_hex(text: &[u8], out: &mut [u8]) -> bool {
    if text.len() < LEAST_DIGITS || text.len() % 8 != 0 {
        return false;
    }
    let mut all = 0;
    for (pair, byte) in text.chunks_exact(2).zip(out) {
        let [upper, lower] = *pair else { continue };
        let (upper, lower) = (hex_value(upper), hex_value(lower));
        *byte = upper << 4 | lower;
        all |= upper | lower;
    }
    all < NO_DIGIT
}

/// Writes each byte as two digits, as far as there is room.
pub(super) fn unpack_hex(bytes: &[u8], out: &mut [u8]) {
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[byte >> 4, byte & 0x0f].map(hex_digit));
    }
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => NO_DIGIT,
    }
}

fn hex_digit(value: u8) -> u8 {
    value + if value > 9 { b'a' - 10 } else { b'0' }
}

/// The most bytes of a word.
pub(super) const MAX_WORD_BYTES: usize = 32;

/// The most digits of a number that is cut into digits. For a longer number, a word of its own is
/// about as short.
const MAX_APART: usize = 4;

/// The kind of a byte for the cuts.
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
            // Bytes of other scripts also make words.
            b'a'..=b'z' | 0x80.. => Self::Lower,
            _ => Self::Separator,
        }
    }
}

/// Passes the words of a text to `take`. Joined, they are the text.
///
/// A word includes the separators after it. It ends before a capital, between letters and digits,
/// and between the digits of a short number. When most numbers are new, their single digits mostly
/// have a number in the chunk. Between parentheses, cuts are only between parameters, because their
/// paths recur again and again. A reader does not depend on the positions of the cuts.
pub(super) fn split_words<'a>(text: &'a [u8], mut take: impl FnMut(&'a [u8])) {
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

/// Whether the number around this position should be cut. It has digits on both sides of the
/// position.
fn is_short_number(text: &[u8], at: usize) -> bool {
    let (before, behind) = text.split_at_checked(at).unwrap_or((text, &[]));
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let before = before.iter().rev().take(MAX_APART).take_while(is_digit);
    let behind = behind.iter().take(MAX_APART).take_while(is_digit);
    before.count() + behind.count() <= MAX_APART
}

#[cfg(test)]
mod tests;
