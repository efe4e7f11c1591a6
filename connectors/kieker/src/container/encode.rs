//! Encodes batches as KIKA/DFLT, and records as Kieker's bytes in a chunk, a stream or a binary
//! log.

use std::collections::HashMap;

use baler_common::container::{
    ChunkDeserializer, ChunkHeader, ChunkSerializer, EncodeError, varint,
};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{
    Column, Field, FieldType, ListColumn, NO_TIMESTAMP, RecordBatch, Table,
};
use baler_common::transport::ContainerKind;

use super::decode::KiekerDeserializer;
use super::{FORMAT, HEAD_BYTES, MAGIC, least_bytes};

/// Writes Kieker's container, KIKA/DFLT.
///
/// The header is left out, because the container cannot hold it. Batches with fields that Kieker's
/// classes cannot have are refused with [`EncodeError::Unsupported`]: unsigned integers, bytes,
/// optionals, nested records, lists of lists, chars beyond 16 bits. Batches with two versions of
/// one type are refused with [`EncodeError::Ambiguous`].
#[derive(Debug, Default)]
pub struct KiekerSerializer {
    records: RecordEncoder,
}

impl KiekerSerializer {
    /// Creates a serializer. It keeps its memory from chunk to chunk.
    pub fn new() -> Self {
        Self::default()
    }

    fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT);
        self.records.write(batch, &RecordOptions::default(), out)?;
        let record_bytes = out.len() - start - HEAD_BYTES;
        let strings = self.records.new_strings(batch);
        varint::write(out, to_u64(strings.len()));
        for text in strings {
            varint::write(out, to_u64(text.len()));
            out.extend_from_slice(text.as_bytes());
        }
        out.extend(to_u32(record_bytes)?.to_be_bytes());
        to_u32(out.len() - start).map(drop)
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
        let start = out.len();
        let written = self.write(batch, out);
        let bytes = out.len() - start;
        if written.is_err() {
            out.truncate(start);
        }
        written.map(|()| bytes)
    }

    fn deserializer(&self) -> Option<Box<dyn ChunkDeserializer>> {
        Some(Box::new(KiekerDeserializer::default()))
    }
}

/// An id that was not assigned yet; Kieker's ids are positive `i32`.
const NONE: u32 = u32::MAX;

/// The limit of Java's arrays and buffers, and so of lengths and ids.
const MAX: usize = 0x7fff_ffff;

/// Options for writing records.
#[derive(Debug)]
pub(super) struct RecordOptions {
    /// The logging timestamp of records without one.
    pub(super) missing_timestamp: i64,
    /// The most bytes of one record.
    pub(super) max_record_bytes: usize,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            missing_timestamp: NO_TIMESTAMP,
            max_record_bytes: MAX,
        }
    }
}

/// Writes records, and gives ids to their strings in order of first use, class name before fields.
#[derive(Debug, Default)]
pub(super) struct RecordEncoder {
    /// The string's id, by id in the batch.
    strings: Vec<u32>,
    /// The id of the class name, by table.
    classes: Vec<u32>,
    /// The new strings of this batch, in order of their ids.
    new: Vec<Source>,
    /// The ids of earlier batches, if ids outlive a batch.
    known: HashMap<Box<str>, u32>,
}

/// The origin of a string.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The name of this table's type.
    Class(usize),
    /// The batch's string with this id.
    String(u32),
}

impl RecordEncoder {
    /// Appends the records of a batch to `out`. After an error, `out` is as before.
    ///
    /// [`new_strings`](Self::new_strings) then returns the new strings of the batch.
    pub(super) fn write(
        &mut self,
        batch: &RecordBatch,
        options: &RecordOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        check_types(batch)?;
        self.new.clear();
        self.strings.clear();
        self.strings.resize(batch.strings().len(), NONE);
        self.classes.clear();
        self.classes.resize(batch.tables().len(), NONE);
        let start = out.len();
        let written = self.write_records(batch, options, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Returns the new strings of the last batch, in order of their ids.
    pub(super) fn new_strings<'a>(
        &self,
        batch: &'a RecordBatch,
    ) -> impl ExactSizeIterator<Item = &'a str> {
        self.new.iter().map(|source| source.text(batch))
    }

    /// Keeps the ids of the last batch for later batches; returns the first of its new ids.
    pub(super) fn keep_ids(&mut self, batch: &RecordBatch) -> Result<u32, EncodeError> {
        let first = to_u32(self.known.len())?;
        for (id, source) in (first..).zip(&self.new) {
            self.known.insert(source.text(batch).into(), id);
        }
        Ok(first)
    }

    /// Returns how many strings have an id that outlives the batch.
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    fn write_records(
        &mut self,
        batch: &RecordBatch,
        options: &RecordOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let mut rows = vec![0_usize; batch.tables().len()];
        for number in table_numbers(batch) {
            let before = out.len();
            if let Some(table) = batch.tables().get(number) {
                if let Some(row) = rows.get_mut(number) {
                    self.write_record(batch, number, table, *row, options, out)?;
                    *row += 1;
                }
            }
            // A chunk that is too large is given up before it takes all memory.
            check_size(out.len() - start, MAX)?;
            check_size(out.len() - before, options.max_record_bytes)?;
        }
        Ok(())
    }

    fn write_record(
        &mut self,
        batch: &RecordBatch,
        number: usize,
        table: &Table,
        row: usize,
        options: &RecordOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let class = self.class_id(number, batch)?;
        out.extend(class.to_be_bytes());
        let timestamp = table.timestamps().get(row).copied();
        let timestamp = timestamp.filter(|timestamp| *timestamp != NO_TIMESTAMP);
        let timestamp = timestamp.unwrap_or(options.missing_timestamp);
        out.extend(timestamp.to_be_bytes());
        for (column, field) in table.columns().iter().zip(table.schema().fields()) {
            self.write_value(batch, column, field.field_type(), row, out)
                .map_err(|problem| match problem {
                    Problem::Char(value) => {
                        let what = format!("char, for its value U+{:04X}", u32::from(value));
                        unsupported(table, field, what)
                    }
                    Problem::Type => unsupported(table, field, field.field_type().to_string()),
                    Problem::Other(error) => *error,
                })?;
        }
        Ok(())
    }

    #[inline(always)]
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
                // A value has the lowest bytes of its integer.
                let bytes = at(values, row)?.to_be_bytes();
                let [.., a, b, c, d] = bytes;
                match field_type {
                    FieldType::I8 => out.push(d),
                    FieldType::I16 => out.extend([c, d]),
                    FieldType::I32 => out.extend([a, b, c, d]),
                    FieldType::I64 => out.extend(bytes),
                    _ => return Err(Problem::Type),
                }
            }
            (Column::F32(values) | Column::Enum(values), _) => {
                out.extend(at(values, row)?.to_be_bytes());
            }
            (Column::F64(values), _) => out.extend(at(values, row)?.to_be_bytes()),
            (Column::Char(values), _) => {
                let value = *at(values, row)?;
                let unit = u16::try_from(u32::from(value)).map_err(|_| Problem::Char(value))?;
                out.extend(unit.to_be_bytes());
            }
            (Column::String(values), _) => {
                let id = self.string_id(*at(values, row)?, batch)?;
                out.extend(id.to_be_bytes());
            }
            (Column::List(column), FieldType::List(inner)) => {
                self.write_list(batch, column, inner, row, out)?;
            }
            _ => return Err(Problem::Type),
        }
        Ok(())
    }

    #[inline(never)]
    fn write_list(
        &mut self,
        batch: &RecordBatch,
        column: &ListColumn,
        inner: &FieldType,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let (from, to) = column.span(row).ok_or(Problem::Type)?;
        let items = from..to;
        out.extend(to_u32(items.len())?.to_be_bytes());
        for item in items {
            self.write_value(batch, &column.items, inner, item, out)?;
        }
        Ok(())
    }

    fn class_id(&mut self, number: usize, batch: &RecordBatch) -> Result<u32, EncodeError> {
        if let Some(&id) = self.classes.get(number) {
            if id != NONE {
                return Ok(id);
            }
        }
        let id = self.next_id(Source::Class(number), batch)?;
        if let Some(slot) = self.classes.get_mut(number) {
            *slot = id;
        }
        Ok(id)
    }

    fn string_id(&mut self, string: u32, batch: &RecordBatch) -> Result<u32, Problem> {
        let index = usize::try_from(string).map_err(|_| Problem::Type)?;
        match *at(&self.strings, index)? {
            NONE => self.new_string_id(string, index, batch),
            known => Ok(known),
        }
    }

    #[inline(never)]
    fn new_string_id(
        &mut self,
        string: u32,
        index: usize,
        batch: &RecordBatch,
    ) -> Result<u32, Problem> {
        let text = batch.strings().get(string).ok_or(Problem::Type)?;
        let is_class = |table: &Table| !table.is_empty() && table.schema().name() == text;
        // A string that equals the name of a class shares its id.
        let id = match batch.tables().iter().position(is_class) {
            Some(number) => self.class_id(number, batch)?,
            None => self.next_id(Source::String(string), batch)?,
        };
        if let Some(slot) = self.strings.get_mut(index) {
            *slot = id;
        }
        Ok(id)
    }

    fn next_id(&mut self, source: Source, batch: &RecordBatch) -> Result<u32, EncodeError> {
        if let Some(id) = self.known.get(source.text(batch)) {
            return Ok(*id);
        }
        let id = to_u32(self.known.len() + self.new.len())?;
        self.new.push(source);
        Ok(id)
    }
}

impl Source {
    fn text(self, batch: &RecordBatch) -> &str {
        let text = match self {
            Self::Class(number) => batch.tables().get(number).map(|it| it.schema().name()),
            Self::String(string) => batch.strings().get(string),
        };
        text.unwrap_or_default()
    }
}

/// Refuses batches that cannot be written before anything is written.
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

/// The reason why a value cannot be written.
enum Problem {
    /// The char is beyond 16 bits.
    Char(char),
    /// The column does not have the field's type.
    Type,
    /// An error that does not depend on the field. Boxed, so that a small result stays in
    /// registers.
    Other(Box<EncodeError>),
}

impl From<EncodeError> for Problem {
    fn from(error: EncodeError) -> Self {
        Self::Other(Box::new(error))
    }
}

/// Returns the table of each record, in order.
fn table_numbers(batch: &RecordBatch) -> impl Iterator<Item = usize> {
    let only = if batch.order().is_empty() {
        batch.len()
    } else {
        0
    };
    let several = batch.order().iter();
    let several = several.map(|number| to_usize(*number));
    std::iter::repeat_n(0, only).chain(several)
}

fn at<T>(values: &[T], row: usize) -> Result<&T, Problem> {
    values.get(row).ok_or(Problem::Type)
}

/// Converts a length or an id, which is a positive `i32` in Kieker.
fn to_u32(number: usize) -> Result<u32, EncodeError> {
    check_size(number, MAX)?;
    u32::try_from(number).map_err(|_| too_large(number, MAX))
}

/// Refuses a size above the limit.
pub(super) fn check_size(bytes: usize, limit: usize) -> Result<(), EncodeError> {
    if bytes > limit {
        return Err(too_large(bytes, limit));
    }
    Ok(())
}

fn too_large(bytes: usize, limit: usize) -> EncodeError {
    EncodeError::TooLarge { bytes, limit }
}
