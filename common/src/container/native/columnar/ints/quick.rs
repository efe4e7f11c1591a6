//! Columns in whole bytes, with as few looks at their lanes as can be: what is written while records
//! come faster than they are written.
//!
//! Nothing is compared, since a processor without wide comparisons takes several instructions for one:
//! the bits that any lane has set say how wide all are.

use super::bits::width;
use super::simple::{write_constant, write_fixed};
use super::{DELTA_PACKED, PACKED, Sign};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// Lanes up to this width are packed above 0.
const SHORT_BITS: u32 = 32;

/// Appends a column of what `lane` makes of the values; one without a value takes no byte.
pub(super) fn write<T: Copy>(values: &[T], lane: impl Fn(T) -> u64, sign: Sign, out: &mut Vec<u8>) {
    let Some(first) = values.first().map(|value| lane(*value)) else {
        return;
    };
    let (mut differing, mut all) = (0, 0);
    for value in values {
        let lane = lane(*value);
        differing |= lane ^ first;
        all |= lane;
    }
    if differing == 0 {
        return write_constant(first, sign, out);
    }
    if width(all) <= SHORT_BITS {
        return write_packed(values, lane, 0, (sign, width(all)), out);
    }
    let behind = values.get(1..).unwrap_or_default();
    let deltas = || {
        let pairs = values.iter().zip(behind);
        pairs.map(|(before, value)| lane(*value).wrapping_sub(lane(*before)))
    };
    let (mut far, mut steps, mut rises) = (0, 0, 0);
    for (value, delta) in behind.iter().zip(deltas()) {
        far |= magnitude(lane(*value).wrapping_sub(first));
        steps |= magnitude(delta);
        rises |= delta;
    }
    let far_bits = width(far);
    // Where none falls no bit is needed for the sign.
    let (least, step_bits) = match width(rises) {
        64 => (0_u64.wrapping_sub(1 << width(steps)), 1 + width(steps)),
        bits => (0, bits),
    };
    if whole_bytes(step_bits) < whole_bytes(1 + far_bits) {
        let bytes = whole_bytes(step_bits);
        out.push(DELTA_PACKED);
        let head =
            varint::size(sign.code(first)) + varint::size(varint::zigzag(least.cast_signed()));
        varint::write(
            out,
            to_u64(head + 1 + behind.len() * to_usize(bytes.into())),
        );
        sign.write(first, out);
        varint::write_signed(out, least.cast_signed());
        write_bytes(deltas().map(|delta| delta.wrapping_sub(least)), bytes, out);
    } else {
        let smallest = first.wrapping_sub(1 << far_bits);
        write_packed(values, lane, smallest, (sign, 1 + far_bits), out);
    }
}

/// What a difference has in bits but for its sign.
#[inline]
fn magnitude(difference: u64) -> u64 {
    difference ^ (difference.cast_signed() >> 63).cast_unsigned()
}

/// Packs values that are no wider than this above the smallest one.
fn write_packed<T: Copy>(
    values: &[T],
    lane: impl Fn(T) -> u64,
    smallest: u64,
    (sign, bits): (Sign, u32),
    out: &mut Vec<u8>,
) {
    let bytes = whole_bytes(bits);
    out.push(PACKED);
    let head = varint::size(sign.code(smallest));
    varint::write(
        out,
        to_u64(head + 1 + values.len() * to_usize(bytes.into())),
    );
    sign.write(smallest, out);
    let above = values
        .iter()
        .map(|value| lane(*value).wrapping_sub(smallest));
    write_bytes(above, bytes, out);
}

/// Appends the width, then each number.
fn write_bytes(numbers: impl ExactSizeIterator<Item = u64>, bytes: u8, out: &mut Vec<u8>) {
    out.push(8 * bytes);
    match bytes {
        1 => write_fixed::<1>(numbers, out),
        2 => write_fixed::<2>(numbers, out),
        4 => write_fixed::<4>(numbers, out),
        _ => write_fixed::<8>(numbers, out),
    }
}

/// How many bytes numbers of this width take: 1, 2, 4 or 8.
fn whole_bytes(bits: u32) -> u8 {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}
