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
mod tests;
