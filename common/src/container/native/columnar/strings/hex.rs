//! Strings of hexadecimal digits, of which two take one byte.

/// How many digits a string of them has at least to be packed.
const LEAST_DIGITS: usize = 16;

/// Stands for a character that is no lowercase hexadecimal digit.
const NO_DIGIT: u8 = 0x10;

/// Whether it is a lowercase hexadecimal digit.
pub(super) fn is_digit(byte: u8) -> bool {
    value(byte) != NO_DIGIT
}

/// Writes the bytes of a string of lowercase hexadecimal digits to the front of `out`, as far as
/// there is room; `false`, and anything, if it is none, or has not a multiple of eight of at least
/// 16.
pub(super) fn pack(text: &[u8], out: &mut [u8]) -> bool {
    if text.len() < LEAST_DIGITS || text.len() % 8 != 0 {
        return false;
    }
    let mut all = 0;
    for (pair, byte) in text.chunks_exact(2).zip(out) {
        let [upper, lower] = *pair else { continue };
        let (upper, lower) = (value(upper), value(lower));
        *byte = upper << 4 | lower;
        all |= upper | lower;
    }
    all < NO_DIGIT
}

/// Spells each byte with two digits, as far as there is room for them.
pub(super) fn unpack(bytes: &[u8], out: &mut [u8]) {
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[byte >> 4, byte & 0x0f].map(digit));
    }
}

fn value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => NO_DIGIT,
    }
}

fn digit(value: u8) -> u8 {
    value + if value > 9 { b'a' - 10 } else { b'0' }
}

#[cfg(test)]
mod tests;
