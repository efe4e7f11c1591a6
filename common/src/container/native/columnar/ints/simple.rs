//! Encodings that are one stream of numbers.

use super::bits::{pack, packed_bytes, unpack, width};
use super::stats::Stats;
use super::{CONSTANT, DELTA_PACKED, DELTA_VARINT, FIXED, PACKED, Sign, VARINT};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::write::prefixed_by_length;
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// An encoding that is one stream of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Simple {
    /// One number stands for all.
    Constant,
    /// Differences in a variable length.
    DeltaVarint,
    /// Differences above their smallest, packed.
    DeltaPacked,
    /// 1, 2, 4 or 8 bytes each.
    Fixed,
    /// What each is above the smallest, packed ("frame of reference").
    Packed,
    /// A variable length.
    Varint,
}

impl Simple {
    const ALL: [Self; 6] = [
        Self::Constant,
        Self::DeltaVarint,
        Self::DeltaPacked,
        Self::Fixed,
        Self::Packed,
        Self::Varint,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Constant => CONSTANT,
            Self::DeltaVarint => DELTA_VARINT,
            Self::DeltaPacked => DELTA_PACKED,
            Self::Fixed => FIXED,
            Self::Packed => PACKED,
            Self::Varint => VARINT,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|simple| simple.code() == code)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::DeltaVarint => "delta varint",
            Self::DeltaPacked => "delta packed",
            Self::Fixed => "fixed",
            Self::Packed => "packed",
            Self::Varint => "varint",
        }
    }

    /// Appends a column in this encoding.
    pub(super) fn write(self, lanes: &[u64], stats: &Stats, out: &mut Vec<u8>) {
        out.push(self.code());
        prefixed_by_length(out, |out| self.write_payload(lanes, stats, out));
    }

    fn write_payload(self, lanes: &[u64], stats: &Stats, out: &mut Vec<u8>) {
        let sign = stats.sign;
        match self {
            Self::Constant => sign.write(stats.first, out),
            Self::Varint => lanes.iter().for_each(|lane| sign.write(*lane, out)),
            Self::DeltaVarint => {
                sign.write(stats.first, out);
                deltas(lanes).for_each(|delta| varint::write_signed(out, delta.cast_signed()));
            }
            Self::Packed => {
                let bits = width(stats.range);
                sign.write(stats.smallest, out);
                out.extend(u8::try_from(bits));
                let above = lanes.iter().map(|lane| lane.wrapping_sub(stats.smallest));
                pack(above, bits, out);
            }
            Self::DeltaPacked => {
                let bits = width(stats.delta_range);
                let smallest = stats.smallest_delta.cast_unsigned();
                sign.write(stats.first, out);
                varint::write_signed(out, stats.smallest_delta);
                out.extend(u8::try_from(bits));
                let above = deltas(lanes).map(|delta| delta.wrapping_sub(smallest));
                pack(above, bits, out);
            }
            Self::Fixed => {
                let bytes = stats.fixed_width();
                out.push(bytes);
                let bytes = usize::from(bytes);
                for lane in lanes {
                    out.extend(lane.to_le_bytes().into_iter().take(bytes));
                }
            }
        }
    }

    /// Appends so many lanes to `lanes`, whose memory was charged; the payload must be used up.
    pub(super) fn read(
        self,
        payload: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        lanes: &mut Vec<u64>,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        match self {
            Self::Constant => {
                let lane = sign.read(payload, reading)?;
                lanes.resize(lanes.len().saturating_add(count), lane);
            }
            Self::Varint => {
                for _ in 0..count {
                    lanes.push(sign.read(payload, reading)?);
                }
            }
            Self::DeltaVarint => {
                let mut lane = sign.read(payload, reading)?;
                lanes.push(lane);
                for _ in 1..count {
                    lane = lane.wrapping_add(payload.signed(reading)?.cast_unsigned());
                    lanes.push(lane);
                }
            }
            Self::Packed => {
                let smallest = sign.read(payload, reading)?;
                let (packed, bits) = take_packed(payload, count, reading)?;
                unpack(packed, count, bits, |above| {
                    lanes.push(smallest.wrapping_add(above));
                });
            }
            Self::DeltaPacked => {
                let mut lane = sign.read(payload, reading)?;
                lanes.push(lane);
                let smallest = payload.signed(reading)?.cast_unsigned();
                let count = count.saturating_sub(1);
                let (packed, bits) = take_packed(payload, count, reading)?;
                unpack(packed, count, bits, |above| {
                    lane = lane.wrapping_add(smallest).wrapping_add(above);
                    lanes.push(lane);
                });
            }
            Self::Fixed => read_fixed(payload, count, sign, lanes, reading)?,
        }
        payload.finish(reading)
    }
}

/// The differences between neighbours, wrapping.
fn deltas(lanes: &[u64]) -> impl Iterator<Item = u64> {
    let behind = lanes.iter().skip(1);
    behind
        .zip(lanes)
        .map(|(lane, before)| lane.wrapping_sub(*before))
}

/// A width, then so many numbers of it.
fn take_packed<'a>(
    payload: &mut Cursor<'a>,
    count: usize,
    reading: &'static str,
) -> Result<(&'a [u8], u32), DecodeError> {
    let at = payload.clone();
    let bits = u32::from(payload.u8(reading)?);
    if bits > 64 {
        let found = bits.into();
        return Err(at.error(reading, DecodeErrorKind::Invalid { found }));
    }
    Ok((payload.take(packed_bytes(count, bits), reading)?, bits))
}

fn read_fixed(
    payload: &mut Cursor<'_>,
    count: usize,
    sign: Sign,
    lanes: &mut Vec<u64>,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = payload.clone();
    let bytes = match payload.u8(reading)? {
        bytes @ (1 | 2 | 4 | 8) => to_usize(bytes.into()),
        found => {
            let found = found.into();
            return Err(at.error(reading, DecodeErrorKind::Invalid { found }));
        }
    };
    let fixed = payload.take(count.saturating_mul(bytes), reading)?;
    let unused = 64 - 8 * u32::try_from(bytes).unwrap_or(8);
    let lane = |number: &[u8]| {
        let mut lane = [0; 8];
        lane.iter_mut()
            .zip(number)
            .for_each(|(to, from)| *to = *from);
        let lane = u64::from_le_bytes(lane);
        match sign {
            Sign::Unsigned => lane,
            // Up to the top and down again, which brings copies of the sign.
            Sign::Signed => ((lane << unused).cast_signed() >> unused).cast_unsigned(),
        }
    };
    lanes.extend(fixed.chunks_exact(bytes).map(lane));
    Ok(())
}

/// Reads the column of an encoding that is made of simple ones.
pub(super) fn read_part(
    cursor: &mut Cursor<'_>,
    count: usize,
    sign: Sign,
    trace: &mut Option<Vec<&'static str>>,
    reading: &'static str,
) -> Result<Vec<u64>, DecodeError> {
    let at = cursor.clone();
    let code = cursor.u8(reading)?;
    let simple = Simple::from_code(code).ok_or_else(|| {
        let kind = DecodeErrorKind::Unknown {
            what: "simple encoding",
            number: code.into(),
        };
        at.error(reading, kind)
    })?;
    if let Some(trace) = trace {
        trace.push(simple.name());
    }
    let mut payload = cursor.section(reading)?;
    let mut lanes = Vec::with_capacity(count);
    simple.read(&mut payload, count, sign, &mut lanes, reading)?;
    if lanes.len() != count {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(lanes.len()),
        };
        return Err(at.error(reading, kind));
    }
    Ok(lanes)
}
