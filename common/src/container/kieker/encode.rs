//! Batches to KIKA/DFLT.

use super::{FORMAT, HEAD_BYTES, MAGIC, TRAILER_BYTES, least_bytes};
use crate::container::error::EncodeError;
use crate::container::header::ChunkHeader;
use crate::container::num::to_u64;
use crate::container::serializer::ChunkSerializer;
use crate::container::varint;

use crate::record::{Column, Field, FieldType, NO_TIMESTAMP, RecordBatch, Table};
use crate::transport::ContainerKind;

/// An id that was not given out yet; Kieker's ids are positive `i32`.
const NONE: u32 = u32::MAX;

/// Java's arrays and buffers end here, and so do lengths and ids in the container.
const MAX: usize = 0x7fff_ffff;

/// Writes Kieker's container, KIKA/DFLT.
///
/// The header is left out: the container has no room for it.
/// Batches with fields that Kieker's classes cannot have (unsigned integers, bytes, optionals,
/// nested records, lists of lists, chars beyond 16 bits) are refused with
/// [`EncodeError::Unsupported`], those with two versions of one type with
/// [`EncodeError::Ambiguous`].
#[derive(Debug, Default)]
pub struct KiekerSerializer {
    ids: StringIds,
}

impl KiekerSerializer {
    /// A serializer that has written nothing yet; memory is kept from chunk to chunk.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ChunkSerializer for KiekerSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Kieker
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        _header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        check_types(batch)?;
        let start = out.len();
        let written = self.ids.reset(batch).write(batch, out);
        let bytes = out.len().saturating_sub(start);
        if written.is_err() {
            out.truncate(start);
        }
        written.map(|()| bytes)
    }
}

/// Refuses what cannot be written before anything is.
fn check_types(batch: &RecordBatch) -> Result<(), EncodeError> {
    let tables = || batch.tables().iter().filter(|table| !table.is_empty());
    for (index, table) in tables().enumerate() {
        let schema = table.schema();
        for field in schema.fields() {
            if least_bytes(field.field_type()).is_none() {
                return Err(unsupported(table, field, field.field_type().to_string()));
            }
        }
        let earlier = tables().take(index);
        if earlier
            .map(Table::schema)
            .any(|earlier| earlier.name() == schema.name())
        {
            return Err(EncodeError::Ambiguous {
                container: ContainerKind::Kieker,
                record: schema.name().into(),
            });
        }
    }
    Ok(())
}

fn unsupported(table: &Table, field: &Field, field_type: String) -> EncodeError {
    EncodeError::Unsupported {
        container: ContainerKind::Kieker,
        record: table.schema().name().into(),
        field: field.name().into(),
        field_type: field_type.into(),
    }
}

/// Which string has which id in the chunk.
#[derive(Debug, Default)]
struct StringIds {
    /// By id in the batch: the id in the chunk.
    strings: Vec<u32>,
    /// By table: the id of the class name in the chunk.
    classes: Vec<u32>,
    /// In order of the chunk's ids.
    order: Vec<Source>,
}

/// Where a string of the chunk comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The name of this table's type.
    Class(usize),
    /// The batch's string with this id.
    String(u32),
}

impl StringIds {
    fn reset(&mut self, batch: &RecordBatch) -> &mut Self {
        self.order.clear();
        self.strings.clear();
        self.strings.resize(batch.strings().len(), NONE);
        self.classes.clear();
        self.classes.resize(batch.tables().len(), NONE);
        self
    }

    fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT);
        let mut rows = vec![0_usize; batch.tables().len()];
        for number in table_numbers(batch) {
            if let Some(table) = batch.tables().get(number)
                && let Some(row) = rows.get_mut(number)
            {
                self.write_record(batch, number, table, *row, out)?;
                *row = row.saturating_add(1);
            }
            // A chunk that cannot be is given up before it takes all memory.
            check_size(out.len().saturating_sub(start))?;
        }
        let record_bytes = out.len().saturating_sub(start).saturating_sub(HEAD_BYTES);
        self.write_strings(batch, out);
        let bytes = out
            .len()
            .saturating_sub(start)
            .saturating_add(TRAILER_BYTES);
        check_size(bytes)?;
        out.extend_from_slice(&to_u32(record_bytes)?.to_be_bytes());
        Ok(())
    }

    fn write_record(
        &mut self,
        batch: &RecordBatch,
        number: usize,
        table: &Table,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let class = self.class_id(number)?;
        out.extend_from_slice(&class.to_be_bytes());
        let timestamp = table.timestamps().get(row).copied().unwrap_or(NO_TIMESTAMP);
        out.extend_from_slice(&timestamp.to_be_bytes());
        for (column, field) in table.columns().iter().zip(table.schema().fields()) {
            self.write_value(batch, column, field.field_type(), row, out)
                .map_err(|problem| match problem {
                    Problem::Char(value) => {
                        let what = format!("char, for its value U+{:04X}", u32::from(value));
                        unsupported(table, field, what)
                    }
                    Problem::Type => unsupported(table, field, field.field_type().to_string()),
                    Problem::Other(error) => error,
                })?;
        }
        Ok(())
    }

    fn write_value(
        &mut self,
        batch: &RecordBatch,
        column: &Column,
        field_type: &FieldType,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        match (column, field_type) {
            (Column::Bool(values), _) => out.push(u8::from(*at(values, row)?)),
            (Column::Signed(values), _) => {
                let bytes = at(values, row)?.to_be_bytes();
                let width = least_bytes(field_type).ok_or(Problem::Type)?;
                out.extend(bytes.iter().skip(bytes.len().saturating_sub(width)));
            }
            (Column::F32(values) | Column::Enum(values), _) => {
                out.extend_from_slice(&at(values, row)?.to_be_bytes());
            }
            (Column::F64(values), _) => out.extend_from_slice(&at(values, row)?.to_be_bytes()),
            (Column::Char(values), _) => {
                let value = *at(values, row)?;
                let unit = u16::try_from(u32::from(value)).map_err(|_| Problem::Char(value))?;
                out.extend_from_slice(&unit.to_be_bytes());
            }
            (Column::String(values), _) => {
                let id = self.string_id(*at(values, row)?, batch)?;
                out.extend_from_slice(&id.to_be_bytes());
            }
            (Column::List(column), FieldType::List(inner)) => {
                let (from, to) = column.span(row).ok_or(Problem::Type)?;
                let len = to_u32(to.saturating_sub(from))?;
                out.extend_from_slice(&len.to_be_bytes());
                for item in from..to {
                    self.write_value(batch, &column.items, inner, item, out)?;
                }
            }
            _ => return Err(Problem::Type),
        }
        Ok(())
    }

    fn class_id(&mut self, number: usize) -> Result<u32, EncodeError> {
        if let Some(&id) = self.classes.get(number)
            && id != NONE
        {
            return Ok(id);
        }
        let id = self.next_id(Source::Class(number))?;
        if let Some(slot) = self.classes.get_mut(number) {
            *slot = id;
        }
        Ok(id)
    }

    fn string_id(&mut self, string: u32, batch: &RecordBatch) -> Result<u32, Problem> {
        let index = usize::try_from(string).map_err(|_| Problem::Type)?;
        let known = *at(&self.strings, index)?;
        if known != NONE {
            return Ok(known);
        }
        let text = batch.strings().get(string).ok_or(Problem::Type)?;
        let is_class = |table: &Table| !table.is_empty() && table.schema().name() == text;
        // A string that is also the name of a class shares its id.
        let id = match batch.tables().iter().position(is_class) {
            Some(number) => self.class_id(number)?,
            None => self.next_id(Source::String(string))?,
        };
        if let Some(slot) = self.strings.get_mut(index) {
            *slot = id;
        }
        Ok(id)
    }

    fn next_id(&mut self, source: Source) -> Result<u32, EncodeError> {
        let id = to_u32(self.order.len())?;
        self.order.push(source);
        Ok(id)
    }

    fn write_strings(&self, batch: &RecordBatch, out: &mut Vec<u8>) {
        varint::write(out, to_u64(self.order.len()));
        for source in &self.order {
            let text = match *source {
                Source::Class(number) => batch.tables().get(number).map(|t| t.schema().name()),
                Source::String(string) => batch.strings().get(string),
            };
            let text = text.unwrap_or_default();
            varint::write(out, to_u64(text.len()));
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Why a value cannot be written.
enum Problem {
    /// The char is beyond 16 bits.
    Char(char),
    /// The column is not one of the field's type.
    Type,
    /// Nothing that concerns the field.
    Other(EncodeError),
}

impl From<EncodeError> for Problem {
    fn from(error: EncodeError) -> Self {
        Self::Other(error)
    }
}

/// The table of each record, in order.
fn table_numbers(batch: &RecordBatch) -> impl Iterator<Item = usize> {
    let only = if batch.order.is_empty() {
        batch.len()
    } else {
        0
    };
    let several = batch.order.iter();
    let several = several.map(|number| usize::try_from(*number).unwrap_or(usize::MAX));
    std::iter::repeat_n(0, only).chain(several)
}

fn at<T>(values: &[T], row: usize) -> Result<&T, Problem> {
    values.get(row).ok_or(Problem::Type)
}

/// A length or an id: positive `i32` in Kieker.
fn to_u32(number: usize) -> Result<u32, EncodeError> {
    check_size(number)?;
    u32::try_from(number).map_err(|_| too_large(number))
}

fn check_size(bytes: usize) -> Result<(), EncodeError> {
    if bytes > MAX {
        return Err(too_large(bytes));
    }
    Ok(())
}

fn too_large(bytes: usize) -> EncodeError {
    EncodeError::TooLarge { bytes, limit: MAX }
}
