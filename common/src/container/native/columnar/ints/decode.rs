//! Columns of integers, read from any encoding.

use super::parts::{PartLanes, Parts};
use super::simple::Simple;
use super::spare::Spare;
use super::stepped::Step;
use super::unpack::Number;
use super::{
    DELTA_PATCHED, DICTIONARY, PATCHED, REFERENCE, RUN_LENGTH, STEPPED, Sign, TICKS, dictionary,
    patched, runs,
};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::header::ClockMapping;
use crate::container::limits::Budget;
use crate::container::native::columnar::vectors;
use crate::record::Column;

/// What a column of integers may be.
#[derive(Debug, Clone, Copy)]
pub(in crate::container::native) struct Scope<'a> {
    pub(in crate::container::native) sign: Sign,
    /// Whether it may hold ticks.
    pub(in crate::container::native) ticks: bool,
    /// The columns that it may refer to.
    pub(in crate::container::native) earlier: &'a [Column],
}

impl Scope<'_> {
    /// Neither ticks nor a reference.
    pub(in crate::container::native) fn plain(sign: Sign) -> Self {
        Self {
            sign,
            ticks: false,
            earlier: &[],
        }
    }
}

/// Memory for columns while they are read, kept from chunk to chunk.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntScratch {
    lanes: Vec<u64>,
    parts: PartLanes,
    /// Memory of batches that were given back.
    pub(in crate::container::native) spare: Spare,
}

impl IntScratch {
    /// Keeps no more than so many bytes of each kind.
    pub(in crate::container::native) fn shrink_to(&mut self, bytes: usize) {
        let lanes = bytes / size_of::<u64>();
        shrink_to(&mut self.lanes, lanes);
        self.parts.shrink_to(lanes);
    }
}

/// Keeps memory for so many lanes; what is in it is overwritten, and need not be wiped before.
pub(super) fn shrink_to(lanes: &mut Vec<u64>, most: usize) {
    lanes.truncate(most);
    lanes.shrink_to(most);
}

/// Reads columns of integers, and keeps the books of what decoding may cost.
#[derive(Debug)]
pub(in crate::container::native) struct IntDecoder<'a> {
    lanes: &'a mut Vec<u64>,
    /// How many of `lanes` are charged already.
    lanes_charged: usize,
    parts: &'a mut PartLanes,
    /// What columns are read into.
    pub(in crate::container::native) spare: &'a mut Spare,
    budget: Budget,
    clock: Option<ClockMapping>,
    trace: Option<Vec<&'static str>>,
}

impl<'a> IntDecoder<'a> {
    pub(in crate::container::native) fn new(
        budget: Budget,
        scratch: &'a mut IntScratch,
        clock: Option<ClockMapping>,
        trace: bool,
    ) -> Self {
        let IntScratch {
            lanes,
            parts,
            spare,
        } = scratch;
        Self {
            lanes,
            lanes_charged: 0,
            parts,
            spare,
            budget,
            clock,
            trace: trace.then(Vec::new),
        }
    }

    /// What is left of the memory that decoding may take.
    pub(in crate::container::native) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Takes memory for so many values of so many bytes out of the budget.
    pub(in crate::container::native) fn charge(
        &mut self,
        at: &Cursor<'_>,
        count: usize,
        each: usize,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let charged = self.budget.charge(count, each);
        charged.map_err(|kind| at.error(reading, kind))
    }

    /// Notes the encoding of a column, if somebody wants to know.
    pub(in crate::container::native) fn note(&mut self, encoding: &'static str) {
        if let Some(trace) = &mut self.trace {
            trace.push(encoding);
        }
    }

    /// The encodings noted since the last call; `None` when nobody wants to know.
    pub(in crate::container::native) fn take_trace(&mut self) -> Option<Vec<&'static str>> {
        self.trace.as_mut().map(std::mem::take)
    }

    /// The lanes that [`Self::read`] read last.
    pub(in crate::container::native) fn lanes(&self) -> &[u64] {
        self.lanes
    }

    /// Reads a column of so many lanes, ticks already mapped to nanoseconds.
    pub(in crate::container::native) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<&[u64], DecodeError> {
        let more = count.saturating_sub(self.lanes_charged);
        self.charge(cursor, more, size_of::<u64>(), reading)?;
        self.lanes_charged += more;
        // What was in it is overwritten.
        let mut lanes = std::mem::take(self.lanes);
        lanes.resize(count, 0);
        let filled = self.fill_wide(cursor, &mut lanes, scope, reading);
        *self.lanes = lanes;
        filled?;
        Ok(self.lanes)
    }

    /// As [`Self::read`], into memory of its own, which was charged; also all lanes, or-ed
    /// together.
    pub(in crate::container::native) fn wide(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<(Vec<u64>, u64), DecodeError> {
        let mut lanes = self.spare.wide(count);
        let seen = self.fill_wide(cursor, &mut lanes, scope, reading)?;
        Ok((lanes, seen))
    }

    /// Reads a column of so many lanes from 0 to `largest`, which fits into 32 bits, into memory of
    /// its own, which was charged.
    pub(in crate::container::native) fn narrow(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
        reading: &'static str,
    ) -> Result<Vec<u32>, DecodeError> {
        let mut lanes = self.spare.narrow(count);
        if count == 0 {
            return Ok(lanes);
        }
        let start = cursor.clone();
        let scope = Scope::plain(Sign::Unsigned);
        let (code, _, mut payload) = self.open(cursor, scope, reading)?;
        // The sums and products of these need all 64 bits.
        let wide = matches!(code, DELTA_PATCHED | STEPPED);
        if !wide {
            let seen = self.payload(code, &start, &mut payload, &mut lanes, scope.sign, reading)?;
            // Or-ed together they are no smaller than the largest.
            if seen <= largest || seen <= u32::MAX.into() && none_above(&lanes, largest) {
                return Ok(lanes);
            }
        }
        // Once more in full, for the sum or for the message.
        *cursor = start.clone();
        let found = self.read(cursor, count, scope, reading)?;
        if let Some(found) = found.iter().find(|lane| **lane > largest) {
            let found = *found;
            return Err(start.error(reading, DecodeErrorKind::Invalid { found }));
        }
        for (to, lane) in lanes.iter_mut().zip(found) {
            *to = Number::of(*lane);
        }
        Ok(lanes)
    }

    /// The number of the encoding, what maps ticks, and a cursor over the payload.
    fn open<'c>(
        &self,
        cursor: &mut Cursor<'c>,
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<(u8, Option<ClockMapping>, Cursor<'c>), DecodeError> {
        let at = cursor.clone();
        let byte = cursor.u8(reading)?;
        let code = byte & !TICKS;
        // What a reference refers to has been turned into times already.
        let ticks = scope.ticks && code != REFERENCE;
        let mapping = match (byte & TICKS != 0, ticks, self.clock) {
            (false, _, _) => None,
            (true, true, Some(mapping)) => Some(mapping),
            (true, _, _) => {
                let found = byte.into();
                return Err(at.error(reading, DecodeErrorKind::Invalid { found }));
            }
        };
        Ok((code, mapping, cursor.section(reading)?))
    }

    /// Fills `out` with a column of as many lanes, ticks mapped; returns them or-ed together.
    fn fill_wide(
        &mut self,
        cursor: &mut Cursor<'_>,
        out: &mut [u64],
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<u64, DecodeError> {
        if out.is_empty() {
            return Ok(0);
        }
        let at = cursor.clone();
        let (mut code, mapping, mut payload) = self.open(cursor, scope, reading)?;
        let (mut step, mut code_at) = (None, at.clone());
        if code == STEPPED {
            self.note("stepped");
            step = Some(Step::read(&mut payload, reading)?);
            code_at = payload.clone();
            code = payload.u8(reading)?;
            let multiples = payload.section(reading)?;
            payload.finish(reading)?;
            payload = multiples;
        }
        // Ticks are unsigned, whatever they become.
        let sign = mapping.map_or(scope.sign, |_| Sign::Unsigned);
        let seen = match code {
            REFERENCE if step.is_none() => {
                self.note("reference");
                refer(&at, &mut payload, out, scope, reading)?
            }
            DELTA_PATCHED => {
                self.note("delta patched");
                patched::read_deltas(&mut payload, sign, out, &mut self.parts(), reading)?
            }
            _ => self.payload(code, &code_at, &mut payload, out, sign, reading)?,
        };
        let seen = step.map_or(seen, |step| step.multiply(out));
        match mapping {
            None => Ok(seen),
            Some(mapping) => {
                self.note("ticks");
                map(out, &mapping, scope.sign, &at, reading)
            }
        }
    }

    /// Fills `out` from a payload of lanes whose width does not matter.
    fn payload<T: Number>(
        &mut self,
        code: u8,
        at: &Cursor<'_>,
        payload: &mut Cursor<'_>,
        out: &mut [T],
        sign: Sign,
        reading: &'static str,
    ) -> Result<u64, DecodeError> {
        match code {
            RUN_LENGTH => {
                self.note("run length");
                runs::read(payload, sign, out, &mut self.parts(), reading)
            }
            DICTIONARY => {
                self.note("dictionary");
                dictionary::read(payload, sign, out, &mut self.parts(), reading)
            }
            PATCHED => {
                self.note("patched");
                patched::read(payload, sign, out, &mut self.parts(), reading)
            }
            REFERENCE => {
                let field = payload.varint(reading)?;
                Err(at.error(reading, DecodeErrorKind::Invalid { found: field }))
            }
            _ => {
                let simple = Simple::from_code(code).ok_or_else(|| {
                    let kind = DecodeErrorKind::Unknown {
                        what: "encoding of integers",
                        number: code.into(),
                    };
                    at.error(reading, kind)
                })?;
                self.note(simple.name());
                simple.read(payload, sign, out, reading)
            }
        }
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts {
            lanes: self.parts,
            budget: &mut self.budget,
            trace: &mut self.trace,
        }
    }
}

/// Whether no lane is above the largest one that may be: without a branch a lane.
fn none_above(lanes: &[u32], largest: u64) -> bool {
    let Ok(largest) = u32::try_from(largest) else {
        return true;
    };
    // What is left of the largest is negative, or the lane is too large to be a signed number.
    let over = |lane: &u32| largest.wrapping_sub(*lane) | lane;
    let over = lanes.iter().fold(0, |seen, lane| seen | over(lane));
    let halves = i32::try_from(largest).is_ok() && over.cast_signed() >= 0;
    halves || lanes.iter().all(|lane| *lane <= largest)
}

/// Fills `out` with the lanes of an earlier column; returns them or-ed together.
fn refer(
    at: &Cursor<'_>,
    payload: &mut Cursor<'_>,
    out: &mut [u64],
    scope: Scope<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let field = payload.varint(reading)?;
    let column = usize::try_from(field)
        .ok()
        .and_then(|field| scope.earlier.get(field));
    let seen = match column {
        Some(Column::Signed(values)) if values.len() == out.len() => {
            copy(values, out, i64::cast_unsigned)
        }
        Some(Column::Unsigned(values)) if values.len() == out.len() => {
            copy(values, out, |value| value)
        }
        _ => {
            let kind = DecodeErrorKind::Invalid { found: field };
            return Err(at.error(reading, kind));
        }
    };
    payload.finish(reading)?;
    Ok(seen)
}

/// Fills `out` with as many values; returns them or-ed together.
fn copy<T: Copy>(values: &[T], out: &mut [u64], lane: impl Fn(T) -> u64) -> u64 {
    vectors::wide(
        #[inline(always)]
        || {
            let mut seen = 0;
            for (to, value) in out.iter_mut().zip(values) {
                *to = lane(*value);
                seen |= *to;
            }
            seen
        },
    )
}

/// Turns ticks into nanoseconds; returns the lanes or-ed together.
fn map(
    lanes: &mut [u64],
    mapping: &ClockMapping,
    sign: Sign,
    at: &Cursor<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let mut seen = 0;
    for lane in lanes {
        let time = mapping.unix_ns(*lane);
        if sign == Sign::Unsigned && time < 0 {
            // A time before 1970 is no unsigned number.
            let kind = DecodeErrorKind::Invalid { found: *lane };
            return Err(at.error(reading, kind));
        }
        *lane = time.cast_unsigned();
        seen |= *lane;
    }
    Ok(seen)
}
