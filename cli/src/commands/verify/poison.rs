//! Foreign bytes in the medium, which must be put aside byte for byte.

use super::random::{Random, mix};

/// What some of them begin with: the magic of a native chunk, so that decoding gets further.
const MAGIC: &[u8; 4] = b"BALR";

/// The longest, in bytes, without the seal.
const LONGEST: u64 = 2_000;

/// Foreign bytes that end with a seal, by which they are known again.
pub(super) fn bytes(seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random::new(mix(seed ^ 0x706f_6973_6f6e) ^ number);
    let length = usize::try_from(random.between(1, LONGEST)).unwrap_or(1);
    let mut bytes = match number % 2 {
        0 => MAGIC.to_vec(),
        _ => Vec::new(),
    };
    bytes.extend(random.bytes(length));
    let seal = seal(&bytes);
    bytes.extend(seal.to_le_bytes());
    bytes
}

/// Whether these bytes are some that [`bytes()`] made, unchanged.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk()
        .is_some_and(|(rest, end)| !rest.is_empty() && seal(rest) == u64::from_le_bytes(*end))
}

fn seal(bytes: &[u8]) -> u64 {
    let mut hash = mix(0x7365_616c);
    for byte in bytes {
        hash = mix(hash ^ u64::from(*byte));
    }
    hash
}

#[cfg(test)]
mod tests {
    use baler_common::container::ChunkDecoder;

    use super::*;

    #[test]
    fn foreign_bytes_are_no_chunk_and_known_again() {
        let mut decoder = ChunkDecoder::default();
        for number in 0..50 {
            let mut bytes = bytes(3, number);
            assert!(decoder.decode(&bytes).is_err());
            assert!(is_ours(&bytes));
            bytes[0] ^= 1;
            assert!(!is_ours(&bytes));
        }
    }
}
