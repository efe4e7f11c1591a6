//! Columns of integers, read from any encoding.

use super::simple::Simple;
use super::{
    DELTA_PATCHED, DICTIONARY, PATCHED, REFERENCE, RUN_LENGTH, Sign, TICKS, dictionary, patched,
    runs,
};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::header::ClockMapping;
use crate::container::limits::Budget;
use crate::container::num::to_u64;
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

/// Reads columns of integers, and keeps the books of what decoding may cost.
#[derive(Debug)]
pub(in crate::container::native) struct IntDecoder<'a> {
    lanes: &'a mut Vec<u64>,
    /// How many of `lanes` are charged already.
    lanes_charged: usize,
    budget: Budget,
    clock: Option<ClockMapping>,
    trace: Option<Vec<&'static str>>,
}

impl<'a> IntDecoder<'a> {
    pub(in crate::container::native) fn new(
        budget: Budget,
        lanes: &'a mut Vec<u64>,
        clock: Option<ClockMapping>,
        trace: bool,
    ) -> Self {
        Self {
            lanes,
            lanes_charged: 0,
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

    /// The lanes that were read last.
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
        self.lanes.clear();
        if count == 0 {
            return Ok(self.lanes);
        }
        let more = count.saturating_sub(self.lanes_charged);
        self.charge(cursor, more, size_of::<u64>(), reading)?;
        self.lanes_charged += more;
        self.lanes.reserve_exact(count);

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
        // Ticks are unsigned, whatever they become.
        let sign = mapping.map_or(scope.sign, |_| Sign::Unsigned);
        let mut payload = cursor.section(reading)?;
        self.payload(code, &at, &mut payload, count, scope, sign, reading)?;
        if self.lanes.len() != count {
            let kind = DecodeErrorKind::Length {
                declared: to_u64(count),
                found: to_u64(self.lanes.len()),
            };
            return Err(at.error(reading, kind));
        }
        if let Some(mapping) = mapping {
            self.note("ticks");
            self.map(&mapping, scope.sign, &at, reading)?;
        }
        Ok(self.lanes)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call, split off for its length"
    )]
    fn payload(
        &mut self,
        code: u8,
        at: &Cursor<'_>,
        payload: &mut Cursor<'_>,
        count: usize,
        scope: Scope<'_>,
        sign: Sign,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        let Self {
            lanes,
            budget,
            trace,
            ..
        } = self;
        let mut note = |encoding| {
            if let Some(trace) = trace {
                trace.push(encoding);
            }
        };
        let charge = |more: usize| budget.charge(more, size_of::<u64>());
        match code {
            RUN_LENGTH => {
                note("run length");
                runs::read(payload, count, sign, lanes, trace, reading, charge)
            }
            DICTIONARY => {
                note("dictionary");
                dictionary::read(payload, count, sign, lanes, trace, reading, charge)
            }
            PATCHED | DELTA_PATCHED => {
                let delta = code == DELTA_PATCHED;
                note(if delta { "delta patched" } else { "patched" });
                patched::read(delta, payload, count, sign, lanes, trace, reading, charge)
            }
            REFERENCE => {
                note("reference");
                let field = payload.varint(reading)?;
                let column = usize::try_from(field)
                    .ok()
                    .and_then(|field| scope.earlier.get(field));
                match column {
                    Some(Column::Signed(values)) => {
                        lanes.extend(values.iter().map(|value| value.cast_unsigned()));
                    }
                    Some(Column::Unsigned(values)) => lanes.extend_from_slice(values),
                    _ => {
                        let kind = DecodeErrorKind::Invalid { found: field };
                        return Err(at.error(reading, kind));
                    }
                }
                payload.finish(reading)
            }
            _ => {
                let simple = Simple::from_code(code).ok_or_else(|| {
                    let kind = DecodeErrorKind::Unknown {
                        what: "encoding of integers",
                        number: code.into(),
                    };
                    at.error(reading, kind)
                })?;
                note(simple.name());
                simple.read(payload, count, sign, lanes, reading)
            }
        }
    }

    fn map(
        &mut self,
        mapping: &ClockMapping,
        sign: Sign,
        at: &Cursor<'_>,
        reading: &'static str,
    ) -> Result<(), DecodeError> {
        for lane in self.lanes.iter_mut() {
            let time = mapping.unix_ns(*lane);
            if sign == Sign::Unsigned && time < 0 {
                // A time before 1970 is no unsigned number.
                let kind = DecodeErrorKind::Invalid { found: *lane };
                return Err(at.error(reading, kind));
            }
            *lane = time.cast_unsigned();
        }
        Ok(())
    }
}
