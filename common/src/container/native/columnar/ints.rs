//! Columns of integers; FORMAT.md, "Columns of integers".
//!
//! Everything but text and bytes becomes 64-bit *integers*. Signed numbers are extended by their
//! sign, unsigned ones by zeros. Floats become their bits, and strings their ids.
//!
//! - `encode`: writes a column in the shortest of a few layouts.
//! - `packing`: packs the integers of a column, or their differences.
//! - `decode`: reads a column of any encoding.
//! - `bits`: packs and unpacks numbers of the same number of bits.
//! - `stepped`: the step of a clock, which is divided out before any other encoding.

mod bits;
mod decode;
mod encode;
mod packing;
mod stepped;

#[cfg(test)]
mod tests;

pub(in crate::container::native) use decode::IntScratch;
pub(super) use decode::{IntDecoder, Scope};
pub(super) use encode::{IntEncoder, write_reference};

use crate::container::cursor::Cursor;
use crate::container::error::DecodeError;
use crate::container::varint;

/// The numbers of the encodings. 0x0c to 0x3f are free for later ones. Columns of bytes use 0x40
/// and above.
const CONSTANT: u8 = 0x00;
const VARINT: u8 = 0x01;
const PACKED: u8 = 0x02;
const RUN_LENGTH: u8 = 0x03;
const DICTIONARY: u8 = 0x04;
const DELTA_VARINT: u8 = 0x05;
const DELTA_PACKED: u8 = 0x06;
const FIXED: u8 = 0x07;
const REFERENCE: u8 = 0x08;
const PATCHED: u8 = 0x09;
const DELTA_PATCHED: u8 = 0x0a;
const STEPPED: u8 = 0x0b;

/// The flag of the encoding byte for values that are ticks.
const TICKS: u8 = 0x80;

/// Whether integers are signed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::container::native) enum Sign {
    /// They are: small magnitudes are written short.
    Signed,
    /// They are not.
    Unsigned,
}

impl Sign {
    /// Returns the integer in the form that is written with a variable length.
    fn code(self, integer: u64) -> u64 {
        match self {
            Self::Signed => varint::zigzag(integer as i64),
            Self::Unsigned => integer,
        }
    }

    /// The bits to flip so that integers compare as the numbers that they represent.
    const fn bias(self) -> u64 {
        match self {
            Self::Signed => 1 << 63,
            Self::Unsigned => 0,
        }
    }

    fn read(self, cursor: &mut Cursor<'_>, reading: &'static str) -> Result<u64, DecodeError> {
        let code = cursor.varint(reading)?;
        Ok(match self {
            Self::Signed => varint::unzigzag(code) as u64,
            Self::Unsigned => code,
        })
    }
}

/// Converts ends to lengths.
pub(super) fn lengths(ends: &[u32]) -> impl Iterator<Item = u64> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter()
        .zip(starts)
        .map(|(end, start)| u64::from(end.wrapping_sub(start)))
}
