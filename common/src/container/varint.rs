//! Variable-length numbers: unsigned LEB128 of at most ten bytes, and zigzag for signed ones.
//!
//! FORMAT.md, "Numbers". Protocol Buffers has the same two, but accepts overlong forms, too. Here a
//! number has one form, so that equal contents have equal bytes.

use crate::number::to_u64;

/// The most bytes that a number takes.
pub const MAX_BYTES: usize = 10;

/// Why no number could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The bytes end within the number.
    Truncated,
    /// The number is overlong or above 64 bits.
    Malformed,
}

/// Appends a number.
#[inline]
pub fn write(out: &mut Vec<u8>, number: u64) {
    match u8::try_from(number) {
        Ok(byte @ 0..0x80) => out.push(byte),
        _ => {
            let (bytes, length) = encode(number);
            out.extend_from_slice(bytes.get(..length).unwrap_or(&bytes));
        }
    }
}

/// Returns a number's bytes, and how many they are.
pub fn encode(mut number: u64) -> ([u8; MAX_BYTES], usize) {
    let mut bytes = [0; MAX_BYTES];
    let length = encoded_len(number);
    for (byte, following) in bytes.iter_mut().zip((0..length).rev()) {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        *byte = if following > 0 { low | 0x80 } else { low };
        number >>= 7;
    }
    (bytes, length)
}

/// Appends a signed number.
pub fn write_signed(out: &mut Vec<u8>, number: i64) {
    write(out, zigzag(number));
}

/// Appends the output of `append`, preceded by its length as a variable-length number.
///
/// The length is known only afterwards. Room is reserved for a length like `expected`; if the real
/// one takes more or fewer bytes, the output is moved.
pub fn prefixed_by_length(out: &mut Vec<u8>, expected: usize, append: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out, to_u64(expected));
    let from = out.len();
    append(out);
    let (bytes, length) = encode(to_u64(out.len() - from));
    let bytes = bytes.get(..length).unwrap_or(&bytes);
    match out.get_mut(start..from) {
        Some(to) if to.len() == length => to.copy_from_slice(bytes),
        _ => drop(out.splice(start..from, bytes.iter().copied())),
    }
}

/// Appends the length of a text in bytes, then the text.
pub fn text(out: &mut Vec<u8>, text: &str) {
    write(out, to_u64(text.len()));
    out.extend_from_slice(text.as_bytes());
}

/// Returns how many bytes a number takes.
pub const fn encoded_len(number: u64) -> usize {
    // 1 to 64 significant bits, seven a byte; a multiplication is cheaper than a division.
    let bits = 64 - (number | 1).leading_zeros();
    (bits as usize * 9 + 64) / 64
}

/// Reads a number from the front of `bytes`. Returns it, and how many bytes it took.
pub fn read(bytes: &[u8]) -> Result<(u64, usize), Broken> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // Nine bytes have 63 bits.
        if index == MAX_BYTES - 1 && bits > 1 {
            return Err(Broken::Malformed);
        }
        number |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let overlong = bits == 0 && index > 0;
            return if overlong {
                Err(Broken::Malformed)
            } else {
                Ok((number, index + 1))
            };
        }
    }
    if bytes.len() < MAX_BYTES {
        Err(Broken::Truncated)
    } else {
        Err(Broken::Malformed)
    }
}

/// Maps small magnitudes to small numbers: 0, -1, 1, -2 to 0, 1, 2, 3.
pub const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The reverse of [`zigzag`].
pub const fn unzigzag(number: u64) -> i64 {
    ((number >> 1) as i64) ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests;
