//! Encodings that are one stream of numbers.

use super::bits::{Packer, packed_bytes, width};
use super::narrow::Lane;
use super::stats::Stats;
use super::unpack::{Number, Sums, unpack, unpack_above};
use super::{CONSTANT, DELTA_PACKED, DELTA_VARINT, FIXED, PACKED, Sign, VARINT};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
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

    /// Appends a column in this encoding, which is the one that the statistics name.
    pub(super) fn write<L: Lane>(self, lanes: &[L], stats: &Stats, out: &mut Vec<u8>) {
        let (cheapest, payload_bytes) = stats.cheapest();
        debug_assert_eq!(self, cheapest, "the length is that of the cheapest");
        out.push(self.code());
        varint::write(out, to_u64(payload_bytes));
        let start = out.len();
        self.write_payload(lanes, stats, out);
        debug_assert_eq!(out.len() - start, payload_bytes, "{self:?}");
    }

    fn write_payload<L: Lane>(self, lanes: &[L], stats: &Stats, out: &mut Vec<u8>) {
        let (sign, first) = (stats.sign, stats.first);
        let wide = |lane: &L| lane.wide(first);
        let delta = |before: &L, lane: &L| wide(lane).wrapping_sub(wide(before));
        let behind = lanes.get(1..).unwrap_or_default();
        match self {
            Self::Constant => sign.write(first, out),
            Self::Varint => lanes.iter().for_each(|lane| sign.write(wide(lane), out)),
            Self::DeltaVarint => {
                sign.write(first, out);
                for (before, lane) in lanes.iter().zip(behind) {
                    varint::write_signed(out, delta(before, lane).cast_signed());
                }
            }
            Self::Packed => {
                let bits = width(stats.range);
                sign.write(stats.smallest, out);
                out.extend(u8::try_from(bits));
                let above = |lane: &L| lane.above(stats.smallest, first);
                let (fours, rest) = lanes.as_chunks();
                let fours = fours.iter().map(|four| four.each_ref().map(above));
                Packer::new(lanes.len(), bits, out).add(fours, rest.iter().map(above));
            }
            Self::DeltaPacked => {
                let bits = width(stats.delta_range);
                sign.write(first, out);
                varint::write_signed(out, stats.smallest_delta);
                out.extend(u8::try_from(bits));
                let smallest = stats.smallest_delta.cast_unsigned();
                let above = |(before, lane): (&L, &L)| lane.delta_above(*before, smallest);
                let (fours_before, rest_before) = lanes
                    .get(..behind.len())
                    .unwrap_or_default()
                    .as_chunks::<4>();
                let (fours, rest) = behind.as_chunks::<4>();
                let fours = fours_before.iter().zip(fours);
                let fours = fours.map(|([a, b, c, d], [e, f, g, h])| {
                    [(a, e), (b, f), (c, g), (d, h)].map(above)
                });
                let rest = rest_before.iter().zip(rest).map(above);
                Packer::new(behind.len(), bits, out).add(fours, rest);
            }
            Self::Fixed => {
                let bytes = stats.fixed_width();
                out.push(bytes);
                let lanes = lanes.iter().map(wide);
                match bytes {
                    1 => write_fixed::<1>(lanes, out),
                    2 => write_fixed::<2>(lanes, out),
                    4 => write_fixed::<4>(lanes, out),
                    _ => write_fixed::<8>(lanes, out),
                }
            }
        }
    }

    /// Fills `out` with the lanes; the payload must be used up. Returns all lanes, or-ed together.
    pub(super) fn read<T: Number>(
        self,
        payload: &mut Cursor<'_>,
        sign: Sign,
        out: &mut [T],
        reading: &'static str,
    ) -> Result<u64, DecodeError> {
        let mut seen = 0;
        let mut found = |lane: u64| {
            seen |= lane;
            T::of(lane)
        };
        match self {
            Self::Constant => out.fill(found(sign.read(payload, reading)?)),
            Self::Varint => {
                for to in out {
                    *to = found(sign.read(payload, reading)?);
                }
            }
            Self::DeltaVarint => {
                let mut lane = sign.read(payload, reading)?;
                if let Some((to, behind)) = out.split_first_mut() {
                    *to = found(lane);
                    for to in behind {
                        lane = lane.wrapping_add(payload.signed(reading)?.cast_unsigned());
                        *to = found(lane);
                    }
                }
            }
            Self::Packed => {
                let smallest = sign.read(payload, reading)?;
                let (packed, bits) = take_packed(payload, out.len(), reading)?;
                seen = unpack_above(packed, bits, out, smallest);
            }
            Self::DeltaPacked => {
                let lane = sign.read(payload, reading)?;
                let smallest = payload.signed(reading)?.cast_unsigned();
                let (to, behind) = out.split_first_mut().unzip();
                let behind = behind.unwrap_or_default();
                let (packed, bits) = take_packed(payload, behind.len(), reading)?;
                if let Some(to) = to {
                    *to = found(lane);
                }
                let sums = Sums {
                    lane,
                    smallest,
                    seen,
                };
                seen = unpack(packed, bits, behind, sums).seen;
            }
            Self::Fixed => read_fixed(payload, sign, out, found, reading)?,
        }
        payload.finish(reading)?;
        Ok(seen)
    }
}

/// Appends a column of equal lanes.
pub(super) fn write_constant(lane: u64, sign: Sign, out: &mut Vec<u8>) {
    out.push(CONSTANT);
    varint::write(out, to_u64(varint::size(sign.code(lane))));
    sign.write(lane, out);
}

/// Appends the lowest bytes of each lane.
pub(super) fn write_fixed<const BYTES: usize>(
    lanes: impl ExactSizeIterator<Item = u64>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.resize(start + lanes.len() * BYTES, 0);
    let (fixed, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
    for (to, lane) in fixed.iter_mut().zip(lanes) {
        if let Some(low) = lane.to_le_bytes().first_chunk::<BYTES>() {
            *to = *low;
        }
    }
}

/// A width, then so many numbers of it.
pub(super) fn take_packed<'a>(
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

fn read_fixed<T>(
    payload: &mut Cursor<'_>,
    sign: Sign,
    out: &mut [T],
    found: impl FnMut(u64) -> T,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = payload.clone();
    let bytes = payload.u8(reading)?;
    let wide = to_usize(bytes.into());
    let fixed = payload.take(out.len().saturating_mul(wide), reading)?;
    match bytes {
        1 => fill_fixed::<1, T>(fixed, sign, out, found),
        2 => fill_fixed::<2, T>(fixed, sign, out, found),
        4 => fill_fixed::<4, T>(fixed, sign, out, found),
        8 => fill_fixed::<8, T>(fixed, sign, out, found),
        _ => {
            let found = bytes.into();
            return Err(at.error(reading, DecodeErrorKind::Invalid { found }));
        }
    }
    Ok(())
}

fn fill_fixed<const BYTES: usize, T>(
    fixed: &[u8],
    sign: Sign,
    out: &mut [T],
    mut found: impl FnMut(u64) -> T,
) {
    let (numbers, _) = fixed.as_chunks::<BYTES>();
    let unused = 64 - 8 * BYTES;
    for (to, number) in out.iter_mut().zip(numbers) {
        let mut lane = [0; 8];
        if let Some(low) = lane.first_chunk_mut() {
            *low = *number;
        }
        let lane = u64::from_le_bytes(lane);
        *to = found(match sign {
            Sign::Unsigned => lane,
            // Up to the top and down again, which brings copies of the sign.
            Sign::Signed => ((lane << unused).cast_signed() >> unused).cast_unsigned(),
        });
    }
}

/// Fills `out`, whose memory was charged, with the column of an encoding that is made of simple
/// ones.
pub(super) fn read_part<T: Number>(
    cursor: &mut Cursor<'_>,
    count: usize,
    sign: Sign,
    out: &mut Vec<T>,
    trace: &mut Option<Vec<&'static str>>,
    reading: &'static str,
) -> Result<(), DecodeError> {
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
    // What was in it is overwritten.
    out.resize(count, T::default());
    simple.read(&mut payload, sign, out, reading)?;
    Ok(())
}
