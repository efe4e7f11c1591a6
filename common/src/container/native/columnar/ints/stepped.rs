//! Numbers that are multiples of a step but for what is left over of each, as the times of a clock
//! that ticks seldom are: the step is divided out.

use super::Sign;
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::varint;

/// Fewer lanes are not worth it, and so many tell whether there can be a step.
const LEAST_LANES: usize = 8;

/// So many of these tell whether it can be a product of fives alone.
const FIVEFOLD_LANES: usize = 4;

/// How many lanes, from all over the column, tell the step of nearly every column.
const SAMPLE: usize = 8;

/// A column of so many lanes with this step, and of bits between these a lane once that is divided
/// out, is longer as it is. Of more bits, a few outliers may be what takes them.
const MANY_LANES: usize = 64;
const LARGE_STEP: u64 = 8;
const CLEAR_BITS: usize = 2;
const MANY_BITS: usize = 12;

/// Lanes that are nearer to the first one are encoded alike with their step and without.
const NEAR: u64 = 1 << 30;

/// A step of at least 2, and what each lane is above a multiple of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    step: u64,
    rest: u64,
}

/// The step of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) step: Step,
    lanes: usize,
    is_near: bool,
}

impl Found {
    /// Whether a column of so many bytes without its step is clearly shorter than with it: every
    /// number that is packed takes some bits more.
    pub(super) fn pays(&self, bytes: usize) -> bool {
        self.is_near
            && self.lanes >= MANY_LANES
            && self.step.step >= LARGE_STEP
            && (self.lanes * CLEAR_BITS..=self.lanes * MANY_BITS).contains(&(bytes * 8))
    }
}

impl Step {
    /// The largest step of a column, if it has one.
    ///
    /// What a clock ticks in divides a second, so that it is a product of twos and fives; a column
    /// whose first lanes have neither in common is not looked at any further.
    #[inline]
    pub(super) fn find<T: Copy>(
        values: &[T],
        lane: impl Fn(T) -> u64,
        sign: Sign,
    ) -> Option<Found> {
        // No branch depends on a single lane: none could be foretold.
        let lanes = values.first_chunk::<LEAST_LANES>()?.map(&lane);
        let [first, ..] = lanes;
        let differing = lanes.iter().fold(0, |all, lane| all | (lane ^ first));
        let is_fivefold = |lane: &u64| {
            let distance = (lane ^ sign.bias()).abs_diff(first ^ sign.bias());
            distance.is_multiple_of(5)
        };
        let some = || lanes.iter().take(FIVEFOLD_LANES);
        let all_fivefold = || some().fold(true, |all, lane| all & is_fivefold(lane));
        if differing % 2 != 0 && !all_fivefold() {
            return None;
        }
        Self::of(values, lane, sign)
    }

    /// As [`Self::find`], whatever it is.
    #[cold]
    #[inline(never)]
    fn of<T: Copy>(values: &[T], lane: impl Fn(T) -> u64, sign: Sign) -> Option<Found> {
        let first = lane(*values.first()?);
        let distance = |value: &T| (lane(*value) ^ sign.bias()).abs_diff(first ^ sign.bias());
        let sample = values.iter().step_by((values.len() / SAMPLE).max(1));
        let mut step = sample.map(distance).fold(0, common_divisor);
        if step == 0 {
            step = values.iter().map(distance).find(|it| *it != 0)?;
        }
        let mut divisor = Divisor::new(step)?;
        let mut far = 0;
        for distance in values.iter().map(distance) {
            far |= distance;
            if !divisor.divides(distance) {
                step = common_divisor(step, distance);
                divisor = Divisor::new(step)?;
            }
        }
        let number = match sign {
            Sign::Signed => i128::from(first.cast_signed()),
            Sign::Unsigned => i128::from(first),
        };
        let rest = number.rem_euclid(i128::from(step));
        let rest = u64::try_from(rest).ok()?;
        Some(Found {
            step: Self { step, rest },
            lanes: values.len(),
            is_near: far < NEAR,
        })
    }

    /// Fills `multiples` with the bits of what the lanes are multiples of the step by.
    pub(super) fn divide<T: Copy>(
        self,
        values: &[T],
        lane: impl Fn(T) -> u64,
        sign: Sign,
        multiples: &mut Vec<i64>,
    ) {
        multiples.clear();
        let Some(divisor) = Divisor::new(self.step) else {
            return;
        };
        let product = |value: &T| divisor.product(lane(*value).wrapping_sub(self.rest));
        let shift = divisor.shift;
        match sign {
            // Copies of the sign come from above.
            Sign::Signed => {
                multiples.extend(values.iter().map(|it| product(it).cast_signed() >> shift));
            }
            Sign::Unsigned => {
                multiples.extend(values.iter().map(|it| (product(it) >> shift).cast_signed()));
            }
        }
    }

    /// Fills lanes with what the multiples in them stand for; returns them or-ed together.
    pub(super) fn multiply(self, lanes: &mut [u64]) -> u64 {
        let mut seen = 0;
        for lane in lanes {
            *lane = lane.wrapping_mul(self.step).wrapping_add(self.rest);
            seen |= *lane;
        }
        seen
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        varint::write(out, self.step);
        varint::write(out, self.rest);
    }

    pub(super) fn read(
        payload: &mut Cursor<'_>,
        reading: &'static str,
    ) -> Result<Self, DecodeError> {
        let at = payload.clone();
        let step = payload.varint(reading)?;
        if step < 2 {
            return Err(at.error(reading, DecodeErrorKind::Invalid { found: step }));
        }
        let at = payload.clone();
        let rest = payload.varint(reading)?;
        if rest >= step {
            return Err(at.error(reading, DecodeErrorKind::Invalid { found: rest }));
        }
        Ok(Self { step, rest })
    }
}

/// Divides by multiplication, where nothing is left over (Warren, "Hacker's Delight", 10-16 and
/// 10-17).
#[derive(Debug, Clone, Copy)]
struct Divisor {
    /// What the odd part of the number times this is 1, but for bits above the 64th.
    inverse: u64,
    /// How many twos it has.
    shift: u32,
    /// The largest quotient.
    most: u64,
}

impl Divisor {
    /// `None` unless the number is at least 2.
    fn new(number: u64) -> Option<Self> {
        if number < 2 {
            return None;
        }
        let shift = number.trailing_zeros();
        let odd = number >> shift;
        // Right in five bits, and in twice as many after each turn (Newton's method).
        let mut inverse = odd.wrapping_mul(3) ^ 2;
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Some(Self {
            inverse,
            shift,
            most: u64::MAX / number,
        })
    }

    fn divides(self, number: u64) -> bool {
        self.product(number).rotate_right(self.shift) <= self.most
    }

    /// The quotient, with as many zeros behind it as the divisor has twos.
    fn product(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse)
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
