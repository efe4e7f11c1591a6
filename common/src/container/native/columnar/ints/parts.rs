//! The columns that other encodings are made of: entries, runs, patches.

use super::Sign;
use super::decode::shrink_to;
use super::simple::read_part;
use crate::container::cursor::Cursor;
use crate::container::error::DecodeError;
use crate::container::limits::Budget;

/// Memory for the parts of a column, kept from column to column.
#[derive(Debug, Default)]
pub(super) struct PartLanes {
    first: Vec<u64>,
    second: Vec<u64>,
}

impl PartLanes {
    /// Keeps memory for so many lanes a part.
    pub(super) fn shrink_to(&mut self, lanes: usize) {
        for part in [&mut self.first, &mut self.second] {
            shrink_to(part, lanes);
        }
    }
}

/// Reads the parts of a column.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) lanes: &'a mut PartLanes,
    pub(super) budget: &'a mut Budget,
    pub(super) trace: &'a mut Option<Vec<&'static str>>,
}

impl Parts<'_> {
    /// A part of so many lanes; `at` is where their number stands.
    pub(super) fn one(
        &mut self,
        payload: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        reading: &'static str,
        at: &Cursor<'_>,
    ) -> Result<&[u64], DecodeError> {
        self.charge(count, reading, at)?;
        let lanes = &mut self.lanes.first;
        read_part(payload, count, sign, lanes, self.trace, reading)?;
        Ok(lanes)
    }

    /// Two parts of so many lanes; those of the second are unsigned.
    pub(super) fn two(
        &mut self,
        payload: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        reading: &'static str,
        at: &Cursor<'_>,
    ) -> Result<(&[u64], &[u64]), DecodeError> {
        self.charge(count.saturating_mul(2), reading, at)?;
        let PartLanes { first, second } = &mut *self.lanes;
        read_part(payload, count, sign, first, self.trace, reading)?;
        read_part(payload, count, Sign::Unsigned, second, self.trace, reading)?;
        Ok((first, second))
    }

    fn charge(
        &mut self,
        count: usize,
        reading: &'static str,
        at: &Cursor<'_>,
    ) -> Result<(), DecodeError> {
        let charged = self.budget.charge(count, size_of::<u64>());
        charged.map_err(|kind| at.error(reading, kind))
    }
}
