//! Numbers that are multiples of a step above the same rest, such as the times of a clock that
//! ticks rarely. The step is divided out.

use std::num::NonZeroU64;

use super::Sign;
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::varint;

/// The number of integers that show whether there can be a step. Shorter columns have none.
const SAMPLE: usize = 8;

/// Narrower columns have no step.
const LEAST_BITS: u32 = 4;

/// A step of at least 2, and the remainder of each integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    step: NonZeroU64,
    rest: u64,
}

impl Step {
    /// The largest step of a column whose numbers take `bits` bits, if it has one.
    /// The tick of a clock divides a second, so it is a product of twos and fives. If the first
    /// integers have neither as a common factor, the rest of the column is not examined.
    pub(super) fn find(integers: &[u64], smallest: u64, bits: u32, sign: Sign) -> Option<Self> {
        if bits < LEAST_BITS {
            return None;
        }
        let distance = |integer: &u64| integer.wrapping_sub(smallest);
        let first = distance(integers.first()?);
        let sample = integers.first_chunk::<SAMPLE>()?;
        let is_even = sample
            .iter()
            .all(|integer| (distance(integer) ^ first) % 2 == 0);
        if !is_even
            && !sample
                .iter()
                .all(|integer| distance(integer).abs_diff(first) % 5 == 0)
        {
            return None;
        }
        let mut step = 0;
        for integer in integers {
            let distance = distance(integer);
            if step == 0 || distance % step != 0 {
                step = common_divisor(step, distance);
            }
            if step == 1 {
                return None;
            }
        }
        let number = match sign {
            Sign::Signed => i128::from(smallest as i64),
            Sign::Unsigned => i128::from(smallest),
        };
        let step = NonZeroU64::new(step)?;
        let rest = u64::try_from(number.rem_euclid(step.get().into())).ok()?;
        Some(Self { step, rest })
    }

    /// Fills `multiples` with the quotients of the integers, of which `smallest` is the smallest.
    pub(super) fn divide(
        self,
        integers: &[u64],
        smallest: u64,
        sign: Sign,
        multiples: &mut Vec<u64>,
    ) {
        let number = smallest as i64;
        // The rest is not negative, so the quotient of a negative number is rounded down.
        let least = match sign {
            Sign::Signed if number < 0 => {
                let quotient = number.unsigned_abs().div_ceil(self.step.get());
                quotient.wrapping_neg()
            }
            Sign::Signed | Sign::Unsigned => smallest / self.step,
        };
        let above = |integer: &u64| integer.wrapping_sub(smallest) / self.step;
        multiples.clear();
        multiples.extend(integers.iter().map(|it| least.wrapping_add(above(it))));
    }

    /// Turns multiples into integers.
    pub(super) fn multiply(self, integers: &mut [u64]) {
        let step = self.step.get();
        for integer in integers {
            *integer = integer.wrapping_mul(step).wrapping_add(self.rest);
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        varint::write(out, self.step.get());
        varint::write(out, self.rest);
    }

    pub(super) fn read(
        payload: &mut Cursor<'_>,
        reading: &'static str,
    ) -> Result<Self, DecodeError> {
        let at = payload.clone();
        let found = payload.varint(reading)?;
        let step = NonZeroU64::new(found).filter(|step| step.get() >= 2);
        let step = step.ok_or_else(|| at.error(reading, DecodeErrorKind::Invalid { found }))?;
        let at = payload.clone();
        let rest = payload.varint(reading)?;
        if rest >= step.get() {
            return Err(at.error(reading, DecodeErrorKind::Invalid { found: rest }));
        }
        Ok(Self { step, rest })
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
