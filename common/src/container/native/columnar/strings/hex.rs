//! Hexadecimal digits, eight at a time.

/// How many digits a string of them has at least to be packed.
const LEAST_DIGITS: usize = 16;

const ONES: u64 = 0x0101_0101_0101_0101;

/// Whether it is a lowercase hexadecimal digit.
pub(super) fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Writes the bytes of a string of lowercase hexadecimal digits to the front of `out`, as far as
/// there is room; `false`, and anything, if it is none, or has not a multiple of eight of at least
/// 16.
pub(super) fn pack(text: &[u8], out: &mut [u8]) -> bool {
    let (eights, rest) = text.as_chunks::<8>();
    if text.len() < LEAST_DIGITS || !rest.is_empty() {
        return false;
    }
    let mut wrong = 0;
    let (fours, _) = out.as_chunks_mut::<4>();
    for (eight, four) in eights.iter().zip(fours) {
        let digits = u64::from_le_bytes(*eight);
        // `a` is 0x61: its lower half is nine less than what it stands for.
        let values = (digits & (0x0f * ONES)) + ((digits >> 6) & ONES) * 9;
        wrong |= values & (0xf0 * ONES);
        wrong |= spell(values & (0x0f * ONES)) ^ digits;
        // The first of two digits is the upper half of a byte.
        let halves = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
        let pairs = (halves | halves >> 8) & 0x0000_ffff_0000_ffff;
        let [a, b, c, d, ..] = (pairs | pairs >> 16).to_le_bytes();
        *four = [a, b, c, d];
    }
    wrong == 0
}

/// Spells each byte with two digits, as far as there is room for them.
pub(super) fn unpack(bytes: &[u8], out: &mut [u8]) {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let (to_blocks, to_rest) = out.as_chunks_mut::<32>();
    for (digits, bytes) in to_blocks.iter_mut().zip(blocks) {
        // All of them at a time: the compiler has vectors for that.
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            *pair = [byte >> 4, byte & 0x0f];
        }
        for value in digits {
            *value = digit(*value);
        }
    }
    let (pairs, _) = to_rest.as_chunks_mut::<2>();
    for (byte, pair) in rest.iter().zip(pairs) {
        *pair = [byte >> 4, byte & 0x0f].map(digit);
    }
}

fn digit(value: u8) -> u8 {
    value + if value > 9 { b'a' - 10 } else { b'0' }
}

/// Eight values of up to 15 to their digits.
fn spell(values: u64) -> u64 {
    let letters = ((values + 6 * ONES) >> 4) & ONES;
    values + 0x30 * ONES + letters * u64::from(b'a' - 10 - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_spelled_and_found_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (mut packed, mut unpacked) = (vec![0; 256], vec![0; 512]);
        assert!(pack(text.as_bytes(), &mut packed));
        assert_eq!(packed, bytes);
        unpack(&packed, &mut unpacked);
        assert_eq!(unpacked, text.as_bytes());
        unpack(&bytes[250..255], &mut unpacked[..10]);
        assert_eq!(unpacked[..10], *b"fafbfcfdfe");
    }

    #[test]
    fn what_is_no_lowercase_digit_is_left_alone() {
        let mut out = [0; 16];
        for byte in (0..=255_u8).filter(|byte| !b"0123456789abcdef".contains(byte)) {
            for at in 0..16 {
                let mut text = *b"0123456789abcdef";
                text[at] = byte;
                assert!(!pack(&text, &mut out), "{byte}");
            }
        }
        assert!(!pack(b"01234567", &mut out) && !pack(b"0123456789abcde", &mut out));
        assert!(!pack(b"0123456789abcdef01", &mut out));
    }
}
