//! Packs numbers with the same number of bits, the least significant bit first.
//!
//! Eight numbers of `W` bits take exactly `W` bytes. So both directions work on eight numbers at a
//! time, with a loop for each width in which every shift is a constant.

use crate::number::to_usize;

/// Returns how many bits a number takes; 0 takes none.
pub(super) const fn width(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// How many bytes `count` numbers of this width take.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    let width = to_usize(width);
    // This does not overflow: eight numbers take `width` bytes here, and 64 bytes in memory.
    count / 8 * width + (count % 8 * width).div_ceil(8)
}

/// The bytes from which eight numbers of any width are read, plus the bytes beyond them in the last
/// number's word.
const WINDOW: usize = 72;

/// Calls a function for a width that is known only at run time; does nothing for a width of 0.
macro_rules! by_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        by_width!($width, $function($($argument),*),
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64)
    };
    ($width:expr, $function:ident $arguments:tt, $($each:literal)*) => {
        match $width {
            $($each => by_width!(@call $function $each $arguments),)*
            _ => {}
        }
    };
    (@call $function:ident $each:literal ($($argument:expr),*)) => {
        $function::<$each>($($argument),*)
    };
}

/// Appends the lowest `width` bits of each number.
pub(super) fn pack(numbers: &[u64], width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let end = start + packed_bytes(numbers.len(), width);
    // Eight numbers are written in whole words; the bytes beyond them are overwritten or cut off.
    out.resize(end + WINDOW, 0);
    if let Some(to) = out.get_mut(start..) {
        by_width!(width, pack_all(numbers, to));
    }
    out.truncate(end);
}

fn pack_all<const W: usize>(numbers: &[u64], mut to: &mut [u8]) {
    let eights = numbers.chunks_exact(8);
    let rest = eights.remainder();
    let eights = eights.filter_map(|eight| eight.first_chunk());
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    for eight in eights.chain((!rest.is_empty()).then_some(&last)) {
        let words = pack_eight::<W>(eight);
        for (to, word) in to.chunks_exact_mut(8).zip(words).take(W.div_ceil(8)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let Some(behind) = to.get_mut(W..) else { break };
        to = behind;
    }
}

/// The lowest `W` bits of each number, end to end.
fn pack_eight<const W: usize>(eight: &[u64; 8]) -> [u64; 8] {
    let mask = u64::MAX >> (64 - W);
    let mut words = [0; 8];
    for (place, number) in eight.iter().enumerate() {
        let (word, shift) = (place * W / 64, place * W % 64);
        let number = number & mask;
        if let Some(word) = words.get_mut(word) {
            *word |= number << shift;
        }
        if shift + W > 64 {
            if let Some(next) = words.get_mut(word + 1) {
                *next |= number >> (64 - shift);
            }
        }
    }
    words
}

/// Fills `out` with packed numbers, and adds `base` to each. Missing numbers count as 0: callers
/// check that `packed` has [`packed_bytes`].
pub(super) fn unpack(packed: &[u8], width: u32, base: u64, out: &mut [u64]) {
    if width == 0 {
        out.fill(base);
    }
    by_width!(width, unpack_all(packed, base, out));
}

fn unpack_all<const W: usize>(mut packed: &[u8], base: u64, out: &mut [u64]) {
    let mut eights = out.chunks_exact_mut(8);
    while let (Some(window), Some(behind)) = (packed.first_chunk(), packed.get(W..)) {
        let Some(to) = eights.next() else { break };
        to.copy_from_slice(&unpack_eight::<W>(window, base));
        packed = behind;
    }
    // Near the end, words reach beyond it. Zeros follow there.
    let mut end = [0; 3 * WINDOW];
    end.iter_mut()
        .zip(packed)
        .for_each(|(to, from)| *to = *from);
    let mut packed = end.as_slice();
    let mut next = || {
        let window = packed.first_chunk().unwrap_or(&[0; WINDOW]);
        if let Some(behind) = packed.get(W..) {
            packed = behind;
        }
        unpack_eight::<W>(window, base)
    };
    for to in eights.by_ref() {
        to.copy_from_slice(&next());
    }
    let rest = eights.into_remainder();
    if !rest.is_empty() {
        rest.iter_mut()
            .zip(next())
            .for_each(|(to, number)| *to = number);
    }
}

fn unpack_eight<const W: usize>(window: &[u8; WINDOW], base: u64) -> [u64; 8] {
    let mask = u64::MAX >> (64 - W);
    let mut numbers = [0; 8];
    for (place, to) in numbers.iter_mut().enumerate() {
        let (byte, shift) = (place * W / 8, place * W % 8);
        let word = |at: usize| {
            let word = window.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        let mut number = word(byte) >> shift;
        if shift + W > 64 {
            number |= u64::from(word(byte + 8).to_le_bytes()[0]) << (64 - shift);
        }
        *to = base.wrapping_add(number & mask);
    }
    numbers
}

#[cfg(test)]
mod tests;
