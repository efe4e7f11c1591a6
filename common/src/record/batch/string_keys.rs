//! Keys by which strings are found, in a batch and by those who keep what they know of a string.

use std::hash::{BuildHasher as _, RandomState};

use crate::record::intern::Interned;

/// Makes keys of strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringKeys {
    /// What no one who chooses strings knows: else some could be made that all have one key.
    secret: [u64; 2],
}

impl Default for StringKeys {
    fn default() -> Self {
        // The standard library's keys are random for each process.
        let state = RandomState::new();
        Self {
            secret: [0_u8, 1].map(|number| state.hash_one(number)),
        }
    }
}

/// The bit of a key that is not a hash but the number of an interned string.
const NAMED: u64 = 1 << 63;

impl StringKeys {
    /// The key of a string.
    pub(crate) fn of(&self, bytes: &[u8]) -> u64 {
        hash(bytes, self.secret) & !NAMED
    }

    /// The key of an interned string.
    pub(super) fn of_interned(string: Interned) -> u64 {
        NAMED | u64::from(string.number())
    }

    /// The number of the interned string with this key, if it is one. Equal numbers
    /// mean equal texts for as long as the program runs.
    pub(crate) fn interned(key: u64) -> Option<u32> {
        if key & NAMED == 0 {
            return None;
        }
        u32::try_from(key & !NAMED).ok()
    }
}

/// Multiplies to 128 bits and folds the halves, 16 bytes at a time, as wyhash does (Wang Yi).
fn hash(bytes: &[u8], [first, second]: [u64; 2]) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a ^ first).wrapping_mul(u128::from(b ^ second));
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        u64::try_from(low ^ high).unwrap_or(0)
    };
    // With its length, so that zeros at the end count.
    let mut hash = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let pairs = bytes.chunks_exact(16);
    let rest = pairs.remainder();
    for pair in pairs.filter_map(|pair| pair.first_chunk()) {
        let [a, b] = words(pair);
        hash = fold(hash ^ a, b);
    }
    let [a, b] = match bytes.last_chunk::<16>() {
        _ if rest.is_empty() => return hash,
        // Some of them for a second time, instead of one by one.
        Some(last) => words(last),
        None => {
            let mut last = [0; 16];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            words(&last)
        }
    };
    fold(hash ^ a, b)
}

fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
    [[a, b, c, d, e, f, g, h], rest].map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
