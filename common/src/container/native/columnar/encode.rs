//! Encodes batches as columnar bodies.

use super::calls::CallEncoder;
use super::ints::{IntEncoder, Sign, lengths, write_reference};
use super::strings::StringEncoder;
use super::{BYTES_PLAIN, types};
use crate::container::varint::{self, prefixed_by_length};
use crate::container::well_known::WellKnownTypes;
use crate::number::{to_u64, to_usize};
use crate::record::{Column, FieldType, OptionalColumn, RecordBatch, Table};

/// The approximate bytes of a row.
const USUAL_ROW_BYTES: usize = 8;

/// Encodes batches; keeps its buffers from chunk to chunk.
#[derive(Debug, Default)]
pub(in crate::container::native) struct Encoder {
    ints: IntEncoder,
    schemas: types::Written,
    strings: StringEncoder,
    calls: CallEncoder,
    /// The tables' positions without the empty tables.
    positions: Vec<u64>,
}

/// Returns the tables to write: the non-empty ones, with their position in the batch.
pub(in crate::container::native) fn types_of(
    batch: &RecordBatch,
) -> impl Iterator<Item = (usize, &Table)> {
    let tables = batch.tables().iter().enumerate();
    tables.filter(|(_, table)| !table.is_empty())
}

impl Encoder {
    /// Sets the types that are written by number.
    pub(in crate::container::native) fn set_well_known(&mut self, known: &'static WellKnownTypes) {
        self.schemas.set_well_known(known);
    }

    /// Appends the body of a batch.
    pub(in crate::container::native) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) {
        for (_, table) in types_of(batch) {
            self.schemas.write(table.schema(), out);
        }
        let strings = batch.strings();
        self.ints.begin_table(0);
        self.strings
            .write(strings, batch.len(), &mut self.ints, out);
        self.order(batch, out);
        for (position, table) in types_of(batch) {
            self.ints.begin_table(position + 1);
            let expected = table.len() * USUAL_ROW_BYTES;
            prefixed_by_length(out, expected, |out| self.table(table, out));
        }
    }

    fn order(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) {
        if types_of(batch).nth(1).is_none() {
            return;
        }
        if batch.tables().iter().all(|table| !table.is_empty()) {
            let order = batch.order.as_slice();
            let order = order.iter().copied().map(u64::from);
            self.ints.write(order, Sign::Unsigned, out);
            return;
        }
        // Empty tables are left out, so later positions move up.
        let mut next = 0;
        self.positions.clear();
        self.positions.extend(batch.tables().iter().map(|table| {
            let number = next;
            next += u64::from(!table.is_empty());
            number
        }));
        let positions = &self.positions;
        // The order names tables of the batch only.
        let order = batch.order.iter();
        let order = order.filter_map(|table| positions.get(to_usize(*table)).copied());
        self.ints.write(order, Sign::Unsigned, out);
    }

    fn table(&mut self, table: &Table, out: &mut Vec<u8>) {
        if self.schemas.has_calls(table.schema()) && self.calls.write(table, &mut self.ints, out) {
            return;
        }
        varint::write(out, to_u64(table.len()));
        for column in table.columns() {
            self.column(column, out);
        }
        // The timestamps come last, so that they may refer to a field: Kieker's records often
        // contain their logging time a second time.
        match equal_to_timestamps(table) {
            Some(field) => write_reference(field, out),
            None => {
                let times = table.timestamps();
                let integers = times.iter().map(|time| *time as u64);
                self.ints.write(integers, Sign::Signed, out);
            }
        }
    }

    /// Appends a column. A column without a value takes no byte.
    fn column(&mut self, column: &Column, out: &mut Vec<u8>) {
        let ints = &mut self.ints;
        match column {
            Column::Bool(values) => {
                ints.write(values.iter().map(|it| u64::from(*it)), Sign::Unsigned, out);
            }
            Column::Char(values) => {
                let codes = values.iter().map(|it| u64::from(u32::from(*it)));
                ints.write(codes, Sign::Unsigned, out);
            }
            Column::Enum(values) | Column::F32(values) | Column::String(values) => {
                ints.write(values.iter().map(|it| u64::from(*it)), Sign::Unsigned, out);
            }
            Column::F64(values) | Column::Unsigned(values) => {
                ints.write(values.iter().copied(), Sign::Unsigned, out);
            }
            Column::Signed(values) => {
                ints.write(values.iter().map(|it| *it as u64), Sign::Signed, out);
            }
            Column::Bytes(column) => {
                ints.write(lengths(&column.ends), Sign::Unsigned, out);
                if !column.data.is_empty() {
                    out.push(BYTES_PLAIN);
                    varint::write(out, to_u64(column.data.len()));
                    out.extend_from_slice(&column.data);
                }
            }
            Column::Optional(column) => {
                let valid = |at: &u32| u64::from(*at != OptionalColumn::ABSENT);
                ints.write(column.positions.iter().map(valid), Sign::Unsigned, out);
                self.column(&column.present, out);
            }
            Column::List(column) => {
                ints.write(lengths(&column.ends), Sign::Unsigned, out);
                self.column(&column.items, out);
            }
            Column::Record(column) => {
                for field in &column.fields {
                    self.column(field, out);
                }
            }
        }
    }
}

/// Returns the first field of 64 bits whose values equal the timestamps.
fn equal_to_timestamps(table: &Table) -> Option<u64> {
    let times = table.timestamps();
    let fields = table.schema().fields().iter().zip(table.columns());
    let position = fields
        .map(|(field, column)| match (field.field_type(), column) {
            (FieldType::I64, Column::Signed(values)) => values == times,
            (FieldType::U64, Column::Unsigned(values)) => {
                let integers = times.iter().map(|time| *time as u64);
                values.iter().copied().eq(integers)
            }
            _ => false,
        })
        .position(|equal| equal)?;
    Some(to_u64(position))
}
