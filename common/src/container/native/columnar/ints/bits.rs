//! Packing numbers of the same number of bits, the least significant bit first; `unpack` is the
//! way back.

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

/// Wider numbers are packed one by one.
const SHORT_BITS: u32 = 15;

/// So few numbers have the room of so many bytes, whatever their width, with what is written too much.
const FEW: usize = 56;
const FEW_ROOM: usize = 128;

/// Appends numbers of up to 32 bits, each of which must fit into `width` bits.
///
/// Eight numbers take exactly `width` bytes, so that eights wait for nothing before them: what is
/// written too much is written over by the next one.
pub(super) fn pack_short<T>(
    lanes: &[T],
    number: impl Fn(&T) -> u32,
    width: u32,
    out: &mut Vec<u8>,
) {
    let number = |lane: &T| u64::from(number(lane));
    match width {
        0 => {}
        1..=8 => pack_eights::<false, T>(lanes, number, width, out),
        9..=SHORT_BITS => pack_eights::<true, T>(lanes, number, width, out),
        _ => {
            let (fours, rest) = lanes.as_chunks();
            let fours = fours.iter().map(|four| four.each_ref().map(&number));
            Packer::new(lanes.len(), width, out).add(fours, rest.iter().map(&number));
        }
    }
}

fn pack_eights<const IS_WIDE: bool, T>(
    lanes: &[T],
    number: impl Fn(&T) -> u64,
    width: u32,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let end = start + packed_bytes(lanes.len(), width);
    if lanes.len() <= FEW {
        // A size that is known takes no call.
        out.extend_from_slice(&[0; FEW_ROOM]);
    } else {
        out.resize(end + size_of::<[u64; 2]>(), 0);
    }
    let mut to = out.get_mut(start..).unwrap_or_default();
    let bytes = to_usize(width.into());
    let mut put = |[a, b, c, d, e, f, g, h]: [u64; 8]| {
        let low = (a | b << width) | (c | d << width) << (2 * width);
        let high = (e | f << width) | (g | h << width) << (2 * width);
        if let Some(to) = to.first_chunk_mut() {
            *to = (low | high << (4 * width)).to_le_bytes();
        }
        if IS_WIDE
            && let Some((_, to)) = to.split_first_chunk_mut::<8>()
            && let Some(to) = to.first_chunk_mut()
        {
            *to = (high >> (64 - 4 * width)).to_le_bytes();
        }
        to = std::mem::take(&mut to).get_mut(bytes..).unwrap_or_default();
    };
    let (eights, rest) = lanes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in eights {
        put([
            number(a),
            number(b),
            number(c),
            number(d),
            number(e),
            number(f),
            number(g),
            number(h),
        ]);
    }
    if !rest.is_empty() {
        // Bits behind the last number are 0.
        let mut last = [0; 8];
        let numbers = rest.iter().map(&number);
        last.iter_mut().zip(numbers).for_each(|(to, it)| *to = it);
        put(last);
    }
    out.truncate(end);
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
                self.push(((d << width | c) << width | b) << width | a, 4 * width);
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

#[cfg(test)]
mod tests {
    use super::super::unpack::{Above, of_width, unpack_above};
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
                let mut found = vec![0; numbers.len()];
                unpack_above(&packed, bits, &mut found, 0);
                assert_eq!(found, numbers, "{bits}");
                // As for a machine without vectors.
                found.fill(0);
                of_width(&packed, bits, &mut found, Above::new(0));
                assert_eq!(found, numbers, "{bits}");
                if bits <= 32 {
                    let mut short = Vec::new();
                    let number = |it: &u64| u32::try_from(*it).unwrap();
                    pack_short(&numbers, number, bits, &mut short);
                    assert_eq!(short, packed, "{bits}");
                    let mut found = vec![0_u32; numbers.len()];
                    let seen = unpack_above(&packed, bits, &mut found, 0);
                    assert!(found.iter().map(|it| u64::from(*it)).eq(numbers.clone()));
                    let largest = numbers.iter().copied().max().unwrap_or(0);
                    assert!((largest..=mask).contains(&seen), "{bits}");
                }
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
