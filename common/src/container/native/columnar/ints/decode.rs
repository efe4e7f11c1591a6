//! Reads columns of integers in any encoding.

use super::bits::{packed_bytes, unpack, width};
use super::stepped::Step;
use super::{
    CONSTANT, DELTA_PACKED, DELTA_PATCHED, DELTA_VARINT, DICTIONARY, FIXED, PACKED, PATCHED,
    REFERENCE, RUN_LENGTH, STEPPED, Sign, TICKS, VARINT,
};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::header::ClockMapping;
use crate::container::limits::Budget;
use crate::number::{to_u64, to_usize};
use crate::record::Column;

/// The allowed contents of a column of integers.
#[derive(Debug, Clone, Copy)]
pub(in crate::container::native) struct Scope<'a> {
    pub(in crate::container::native) sign: Sign,
    /// Whether it may hold ticks.
    pub(in crate::container::native) ticks: bool,
    /// The columns to which it may refer.
    pub(in crate::container::native) earlier: &'a [Column],
}

impl Scope<'_> {
    /// Allows neither ticks nor a reference.
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
    /// The integers of a column, perhaps with older ones after them: it does not shrink between
    /// columns.
    integers: Vec<u64>,
    /// The two parts of runs and patches.
    parts: [Vec<u64>; 2],
}

impl IntScratch {
    /// Keeps at most `bytes` bytes of each kind.
    pub(in crate::container::native) fn shrink_to(&mut self, bytes: usize) {
        let most = bytes / size_of::<u64>();
        for integers in [&mut self.integers].into_iter().chain(&mut self.parts) {
            integers.truncate(most);
            integers.shrink_to(most);
        }
    }
}

/// Reads columns of integers, and keeps account of the memory that decoding takes.
#[derive(Debug)]
pub(in crate::container::native) struct IntDecoder<'a> {
    integers: &'a mut Vec<u64>,
    /// The number of `integers` that are charged already.
    lanes_charged: usize,
    parts: &'a mut [Vec<u64>; 2],
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
        Self {
            integers: &mut scratch.integers,
            lanes_charged: 0,
            parts: &mut scratch.parts,
            budget,
            clock,
            trace: trace.then(Vec::new),
        }
    }

    /// Returns the remaining memory for decoding.
    pub(in crate::container::native) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Charges memory for `count` values of `each` bytes to the budget.
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

    /// Notes the encoding of a column, if the caller asked for the encodings.
    pub(in crate::container::native) fn note(&mut self, encoding: &'static str) {
        if let Some(trace) = &mut self.trace {
            trace.push(encoding);
        }
    }

    /// The encodings noted since the last call; `None` if the caller did not ask for them.
    pub(in crate::container::native) fn take_trace(&mut self) -> Option<Vec<&'static str>> {
        self.trace.as_mut().map(std::mem::take)
    }

    /// Returns the `count` integers that [`Self::read`] read last.
    pub(in crate::container::native) fn integers(&self, count: usize) -> &[u64] {
        self.integers.get(..count).unwrap_or_default()
    }

    /// Reads a column of `count` integers, with ticks mapped to nanoseconds.
    pub(in crate::container::native) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<&[u64], DecodeError> {
        let charged = self.lanes_charged.max(count);
        let more = charged - self.lanes_charged;
        self.charge(cursor, more, size_of::<u64>(), reading)?;
        self.lanes_charged = charged;
        let mut integers = std::mem::take(self.integers);
        integers.resize(integers.len().max(count), 0);
        let out = integers.get_mut(..count).unwrap_or_default();
        let filled = self.fill(cursor, out, scope, reading);
        *self.integers = integers;
        filled?;
        Ok(self.integers(count))
    }

    /// As [`Self::read`], into memory of its own.
    pub(in crate::container::native) fn wide(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<Vec<u64>, DecodeError> {
        self.charge(cursor, count, size_of::<u64>(), reading)?;
        let mut integers = vec![0; count];
        self.fill(cursor, &mut integers, scope, reading)?;
        Ok(integers)
    }

    /// Reads a column of `count` integers from 0 to `largest`, which fits into 32 bits, into memory of
    /// its own.
    pub(in crate::container::native) fn narrow(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
        reading: &'static str,
    ) -> Result<Vec<u32>, DecodeError> {
        let start = cursor.clone();
        self.charge(&start, count, size_of::<u32>(), reading)?;
        self.read(cursor, count, Scope::plain(Sign::Unsigned), reading)?;
        let mut narrow = vec![0; count];
        let mut all = 0;
        for (to, integer) in narrow.iter_mut().zip(self.integers(count)) {
            let [a, b, c, d, ..] = integer.to_le_bytes();
            *to = u32::from_le_bytes([a, b, c, d]);
            all |= integer;
        }
        // The bitwise or of all integers is at least as large as the largest one.
        if all > largest {
            if let Some(found) = self
                .integers(count)
                .iter()
                .find(|integer| **integer > largest)
            {
                let found = *found;
                return Err(start.error(reading, DecodeErrorKind::Invalid { found }));
            }
        }
        Ok(narrow)
    }

    /// Fills `out` with a column of its length, with ticks mapped to nanoseconds.
    fn fill(
        &mut self,
        cursor: &mut Cursor<'_>,
        out: &mut [u64],
        scope: Scope<'_>,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        if out.is_empty() {
            return Ok(());
        }
        let at = cursor.clone();
        let byte = cursor.u8(reading)?;
        let code = byte & !TICKS;
        // The column to which a reference refers contains times already.
        let ticks = scope.ticks && code != REFERENCE;
        let mapping = match (byte & TICKS != 0, ticks, self.clock) {
            (false, _, _) => None,
            (true, true, Some(mapping)) => Some(mapping),
            (true, _, _) => return Err(invalid(&at, byte.into(), reading)),
        };
        let mut payload = cursor.section(reading)?;
        // Ticks are unsigned, even if times are signed.
        let sign = mapping.map_or(scope.sign, |_| Sign::Unsigned);
        match code {
            REFERENCE => {
                self.note("reference");
                refer(&at, &mut payload, out, scope, reading)?;
            }
            STEPPED => {
                self.note("stepped");
                let step = Step::read(&mut payload, reading)?;
                let at = payload.clone();
                let code = payload.u8(reading)?;
                let mut multiples = payload.section(reading)?;
                payload.finish(reading)?;
                self.payload(code, &at, &mut multiples, out, sign, reading)?;
                step.multiply(out);
            }
            _ => self.payload(code, &at, &mut payload, out, sign, reading)?,
        }
        if let Some(mapping) = mapping {
            self.note("ticks");
            map(out, &mapping, scope.sign, &at, reading)?;
        }
        Ok(())
    }

    /// Fills `out` from a payload that is neither a reference nor has a step.
    fn payload(
        &mut self,
        code: u8,
        at: &Cursor<'_>,
        payload: &mut Cursor<'_>,
        out: &mut [u64],
        sign: Sign,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        match code {
            RUN_LENGTH => {
                self.note("run length");
                self.runs(payload, out, sign, reading)?;
            }
            DICTIONARY => {
                self.note("dictionary");
                self.dictionary(payload, out, sign, reading)?;
            }
            PATCHED => {
                self.note("patched");
                let smallest = sign.read(payload, reading)?;
                self.patched(payload, smallest, out, reading)?;
            }
            DELTA_PATCHED => {
                self.note("delta patched");
                let (first, smallest) = (sign.read(payload, reading)?, payload.signed(reading)?);
                if let Some((start, deltas)) = out.split_first_mut() {
                    *start = first;
                    self.patched(payload, smallest as u64, deltas, reading)?;
                }
                sum_up(out);
            }
            REFERENCE => {
                let field = payload.varint(reading)?;
                return Err(invalid(at, field, reading));
            }
            _ => {
                let name = simple_name(code).ok_or_else(|| {
                    let (what, number) = ("encoding of integers", code.into());
                    at.error(reading, DecodeErrorKind::Unknown { what, number })
                })?;
                self.note(name);
                return simple(code, payload, out, sign, reading);
            }
        }
        payload.finish(reading)
    }

    fn runs(
        &mut self,
        payload: &mut Cursor<'_>,
        out: &mut [u64],
        sign: Sign,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let at = payload.clone();
        let count = out.len();
        let runs = payload.count(count, reading)?;
        self.charge(&at, 2 * runs, size_of::<u64>(), reading)?;
        self.part(0, payload, runs, sign, reading)?;
        self.part(1, payload, runs, Sign::Unsigned, reading)?;
        let [values, repeats] = &*self.parts;
        let wrong_length = |found| {
            let (declared, found) = (to_u64(count), to_u64(found));
            at.error(reading, DecodeErrorKind::Length { declared, found })
        };
        let mut done = 0_usize;
        for (integer, repeat) in values.iter().zip(repeats) {
            // No column reaches as far as a sum that is too large.
            let end = done.saturating_add(to_usize(*repeat)).saturating_add(1);
            let integers = out.get_mut(done..end);
            integers.ok_or_else(|| wrong_length(end))?.fill(*integer);
            done = end;
        }
        match done == count {
            true => Ok(()),
            false => Err(wrong_length(done)),
        }
    }

    fn dictionary(
        &mut self,
        payload: &mut Cursor<'_>,
        out: &mut [u64],
        sign: Sign,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let at = payload.clone();
        let count = payload.count(out.len(), reading)?;
        if count == 0 {
            return Err(invalid(&at, 0, reading));
        }
        self.charge(&at, count, size_of::<u64>(), reading)?;
        self.part(0, payload, count, sign, reading)?;
        let [entries, _] = &*self.parts;
        let bits = width(to_u64(count - 1));
        let packed = payload.take(packed_bytes(out.len(), bits), reading)?;
        unpack(packed, bits, 0, out);
        for integer in out {
            let entry = entries.get(to_usize(*integer));
            *integer = *entry.ok_or_else(|| invalid(&at, *integer, reading))?;
        }
        Ok(())
    }

    /// Fills `numbers` with packed numbers above `smallest`, and adds the patches.
    fn patched(
        &mut self,
        payload: &mut Cursor<'_>,
        smallest: u64,
        numbers: &mut [u64],
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let bits = read_packed(payload, smallest, numbers, reading)?;
        let at = payload.clone();
        let large = payload.count(numbers.len(), reading)?;
        if large == 0 {
            return Err(invalid(&at, 0, reading));
        }
        self.charge(&at, 2 * large, size_of::<u64>(), reading)?;
        self.part(0, payload, large, Sign::Unsigned, reading)?;
        self.part(1, payload, large, Sign::Unsigned, reading)?;
        let [gaps, highs] = &*self.parts;
        let mut place = 0_usize;
        for (gap, high) in gaps.iter().zip(highs) {
            place = place.saturating_add(to_usize(*gap));
            let number = numbers.get_mut(place);
            let number = number.ok_or_else(|| invalid(&at, *gap, reading))?;
            *number = number.wrapping_add(high.checked_shl(bits).unwrap_or(0));
            place += 1;
        }
        Ok(())
    }

    /// Reads a simple column of `count` integers, which were charged, into `parts`.
    fn part(
        &mut self,
        part: usize,
        cursor: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let at = cursor.clone();
        let code = cursor.u8(reading)?;
        let name = simple_name(code).ok_or_else(|| {
            let (what, number) = ("simple encoding", code.into());
            at.error(reading, DecodeErrorKind::Unknown { what, number })
        })?;
        self.note(name);
        let mut payload = cursor.section(reading)?;
        match self.parts.get_mut(part) {
            None => Ok(()),
            Some(integers) => {
                integers.resize(count, 0);
                simple(code, &mut payload, integers, sign, reading)
            }
        }
    }
}

/// The name of an encoding that is one stream of numbers.
fn simple_name(code: u8) -> Option<&'static str> {
    Some(match code {
        CONSTANT => "constant",
        VARINT => "varint",
        PACKED => "packed",
        DELTA_VARINT => "delta varint",
        DELTA_PACKED => "delta packed",
        FIXED => "fixed",
        _ => return None,
    })
}

/// Fills `out` from a payload that is one stream of numbers.
fn simple(
    code: u8,
    payload: &mut Cursor<'_>,
    out: &mut [u64],
    sign: Sign,
    reading: &'static str,
) -> Result<(), DecodeError> {
    match code {
        CONSTANT => out.fill(sign.read(payload, reading)?),
        VARINT => {
            for to in out {
                *to = sign.read(payload, reading)?;
            }
        }
        PACKED => {
            let smallest = sign.read(payload, reading)?;
            read_packed(payload, smallest, out, reading)?;
        }
        FIXED => read_fixed(payload, sign, out, reading)?,
        _ => {
            let first = sign.read(payload, reading)?;
            if let Some((start, deltas)) = out.split_first_mut() {
                *start = first;
                if code == DELTA_PACKED {
                    let smallest = payload.signed(reading)? as u64;
                    read_packed(payload, smallest, deltas, reading)?;
                } else {
                    for delta in deltas {
                        *delta = payload.signed(reading)? as u64;
                    }
                }
            }
            sum_up(out);
        }
    }
    payload.finish(reading)
}

/// Reads a width and fills `out` with numbers of this width plus `base`; returns the width.
fn read_packed(
    payload: &mut Cursor<'_>,
    base: u64,
    out: &mut [u64],
    reading: &'static str,
) -> Result<u32, DecodeError> {
    let at = payload.clone();
    let bits = u32::from(payload.u8(reading)?);
    if bits > 64 {
        return Err(invalid(&at, bits.into(), reading));
    }
    let packed = payload.take(packed_bytes(out.len(), bits), reading)?;
    unpack(packed, bits, base, out);
    Ok(bits)
}

/// Fills `out` with numbers of 1, 2, 4 or 8 bytes.
fn read_fixed(
    payload: &mut Cursor<'_>,
    sign: Sign,
    out: &mut [u64],
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = payload.clone();
    let bytes = payload.u8(reading)?;
    if !matches!(bytes, 1 | 2 | 4 | 8) {
        return Err(invalid(&at, bytes.into(), reading));
    }
    let fixed = payload.take(out.len() * usize::from(bytes), reading)?;
    let bits = 8 * u32::from(bytes);
    unpack(fixed, bits, 0, out);
    if sign == Sign::Signed {
        for integer in out {
            // Shifting up and down again copies the sign bit.
            let unused = 64 - bits;
            *integer = (((*integer << unused) as i64) >> unused) as u64;
        }
    }
    Ok(())
}

/// Turns a first integer and the differences after it into integers.
fn sum_up(numbers: &mut [u64]) {
    let mut sum = 0_u64;
    for number in numbers {
        sum = sum.wrapping_add(*number);
        *number = sum;
    }
}

/// Fills `out` with the integers of an earlier column.
fn refer(
    at: &Cursor<'_>,
    payload: &mut Cursor<'_>,
    out: &mut [u64],
    scope: Scope<'_>,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let field = payload.varint(reading)?;
    let column = usize::try_from(field).ok();
    match column.and_then(|field| scope.earlier.get(field)) {
        Some(Column::Signed(values)) if values.len() == out.len() => {
            let integers = values.iter().map(|value| *value as u64);
            out.iter_mut()
                .zip(integers)
                .for_each(|(to, integer)| *to = integer);
        }
        Some(Column::Unsigned(values)) if values.len() == out.len() => out.copy_from_slice(values),
        _ => return Err(invalid(at, field, reading)),
    }
    payload.finish(reading)
}

/// Turns ticks into nanoseconds.
fn map(
    integers: &mut [u64],
    mapping: &ClockMapping,
    sign: Sign,
    at: &Cursor<'_>,
    reading: &'static str,
) -> Result<(), DecodeError> {
    for integer in integers {
        let time = mapping.unix_ns(*integer);
        if sign == Sign::Unsigned && time < 0 {
            // A time before 1970 cannot be an unsigned number.
            return Err(invalid(at, *integer, reading));
        }
        *integer = time as u64;
    }
    Ok(())
}

fn invalid(at: &Cursor<'_>, found: u64, reading: &'static str) -> DecodeError {
    at.error(reading, DecodeErrorKind::Invalid { found })
}
