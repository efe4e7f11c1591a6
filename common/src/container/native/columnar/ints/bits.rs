//! Packing numbers of the same number of bits, the least significant bit first.

use crate::container::num::to_usize;

/// How many bits a number takes; 0 takes none.
pub(super) const fn width(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// How many bytes so many numbers of this width take.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    let width = to_usize(width.into());
    // Eight numbers take exactly `width` bytes; so nothing overflows that did not before.
    (count / 8).saturating_mul(width) + (count % 8 * width).div_ceil(8)
}

/// Packs numbers behind one another.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    count: usize,
    width: u32,
    /// The lowest `pending_bits` bits are still to be written; always fewer than 64.
    pending: u64,
    pending_bits: u32,
    out: &'a mut Vec<u8>,
}

impl<'a> Packer<'a> {
    /// For so many numbers, each of which must fit into `width` bits.
    pub(super) fn new(count: usize, width: u32, out: &'a mut Vec<u8>) -> Self {
        out.reserve(packed_bytes(count, width));
        Self {
            count,
            width,
            pending: 0,
            pending_bits: 0,
            out,
        }
    }

    /// Adds the numbers, given by fours and what is left.
    pub(super) fn add(
        mut self,
        fours: impl Iterator<Item = [u64; 4]>,
        rest: impl Iterator<Item = u64>,
    ) {
        let width = self.width;
        // Narrow numbers are joined first, which need not wait for one another.
        match width {
            0 => return,
            8 => return self.add_bytes::<1>(fours, rest),
            16 => return self.add_bytes::<2>(fours, rest),
            32 => return self.add_bytes::<4>(fours, rest),
            1..=16 => fours.for_each(|[a, b, c, d]| {
                let (low, high) = (a | b << width, c | d << width);
                self.push(low | high << (2 * width), 4 * width);
            }),
            17..=32 => fours.for_each(|[a, b, c, d]| {
                self.push(a | b << width, 2 * width);
                self.push(c | d << width, 2 * width);
            }),
            _ => fours.for_each(|four| four.into_iter().for_each(|it| self.push(it, width))),
        }
        rest.for_each(|number| self.push(number, width));
        let bytes = to_usize(self.pending_bits.div_ceil(8).into());
        let last = self.pending.to_le_bytes();
        self.out
            .extend_from_slice(last.get(..bytes).unwrap_or(&last));
    }

    /// Numbers of whole bytes wait for no other; the first number is the first of all.
    fn add_bytes<const BYTES: usize>(
        self,
        fours: impl Iterator<Item = [u64; 4]>,
        rest: impl Iterator<Item = u64>,
    ) {
        let start = self.out.len();
        self.out.resize(start + self.count * BYTES, 0);
        let low = |number: u64| {
            let bytes = number.to_le_bytes();
            bytes.first_chunk().copied().unwrap_or([0; BYTES])
        };
        let bytes = self.out.get_mut(start..).unwrap_or_default();
        let (numbers, _) = bytes.as_chunks_mut::<BYTES>();
        let (to_fours, to_rest) = numbers.as_chunks_mut::<4>();
        for (to, four) in to_fours.iter_mut().zip(fours) {
            *to = four.map(low);
        }
        for (to, number) in to_rest.iter_mut().zip(rest) {
            *to = low(number);
        }
    }

    /// Adds a number of up to 64 bits.
    fn push(&mut self, number: u64, bits: u32) {
        let filled = self.pending_bits + bits;
        let word = self.pending | number << self.pending_bits;
        if filled < 64 {
            (self.pending, self.pending_bits) = (word, filled);
        } else {
            self.out.extend_from_slice(&word.to_le_bytes());
            // Nothing is left of a number that fitted exactly.
            self.pending = number.checked_shr(64 - self.pending_bits).unwrap_or(0);
            self.pending_bits = filled - 64;
        }
    }
}

/// The widest number that is read in one go, wherever in its first byte it begins.
const WINDOW_BITS: u32 = 57;

/// Appends what `lane` makes of so many numbers. Numbers that are not there are 0: callers check
/// that `packed` has [`packed_bytes`].
pub(super) fn unpack_into<T>(
    lanes: &mut Vec<T>,
    packed: &[u8],
    count: usize,
    width: u32,
    lane: impl Fn(u64) -> T,
) {
    let bits = to_usize(width.into());
    let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    if width >= WINDOW_BITS {
        lanes.extend((0..count).map(|number| {
            let bit = number * bits;
            let (low, high) = (window(packed, bit / 8), window(packed, bit / 8 + 8));
            let shift = bit % 8;
            // The second window begins where the first one ends.
            let high = (high << 1) << (63 - shift);
            lane((low >> shift | high) & mask)
        }));
        return;
    }
    // Those whose window is within the bytes.
    let inside = packed.len().saturating_sub(7) * 8;
    let fast = inside.div_ceil(bits.max(1)).min(count);
    lanes.extend((0..fast).map(|number| {
        let bit = number * bits;
        let bytes = packed.get(bit / 8..).and_then(<[u8]>::first_chunk);
        let window = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        lane(window >> (bit % 8) & mask)
    }));
    lanes.extend((fast..count).map(|number| {
        let bit = number * bits;
        lane(window(packed, bit / 8) >> (bit % 8) & mask)
    }));
}

/// The eight bytes from here on, zeros where there are none.
fn window(packed: &[u8], at: usize) -> u64 {
    let bytes = packed.get(at..).unwrap_or_default();
    if let Some(eight) = bytes.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    // The last eight, from which those before are shifted out.
    let beyond = 8_usize.saturating_sub(bytes.len());
    match packed.last_chunk() {
        Some(_) if bytes.is_empty() => 0,
        Some(last) => u64::from_le_bytes(*last) >> (8 * beyond),
        None => {
            let mut eight = [0; 8];
            eight
                .iter_mut()
                .zip(bytes)
                .for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(eight)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(numbers: &[u64], width: u32, out: &mut Vec<u8>) {
        let (fours, rest) = numbers.as_chunks();
        Packer::new(numbers.len(), width, out).add(fours.iter().copied(), rest.iter().copied());
    }

    #[test]
    fn numbers_survive_at_every_width_and_count() {
        for bits in 0..=64 {
            for count in (0..20_u64).chain(60..70).chain(120..140) {
                let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                let numbers: Vec<u64> = (0..count)
                    .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                    .collect();
                let mut packed = Vec::new();
                pack(&numbers, bits, &mut packed);
                assert_eq!(packed.len(), packed_bytes(numbers.len(), bits), "{bits}");
                let mut found = Vec::new();
                unpack_into(&mut found, &packed, numbers.len(), bits, |number| number);
                assert_eq!(found, numbers, "{bits}");
            }
        }
    }

    #[test]
    fn the_first_number_stands_in_the_lowest_bits() {
        let mut packed = Vec::new();
        pack(&[0b101, 0b011, 0b110], 3, &mut packed);
        assert_eq!(packed, [0b1001_1101, 0b1]);
    }
}
