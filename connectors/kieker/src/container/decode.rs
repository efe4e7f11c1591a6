//! Decodes KIKA/DFLT to batches.

use std::sync::Arc;

use baler_common::container::cursor::Cursor;
use baler_common::container::{
    ChunkDeserializer, ChunkSummary, DecodeError, DecodeErrorKind, DecodedChunk, Layout, Limits,
};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{
    Catalog, Column, Field, FieldType, RecordBatch, Schema, StringTable, Table,
};
use baler_common::transport::ContainerKind;

use super::frame::{Frame, layout_of};
use super::{MAGIC, STRING_MEMORY, least_bytes, list_bytes};
use crate::types;

/// No value: an id of the batch that was not assigned yet, or a table not yet made.
const NONE: u32 = u32::MAX;

/// Reads Kieker's container, KIKA/DFLT. The catalog must know the types of the records.
///
/// The batch equals the encoded one, if its types are in the catalog. It is stricter than Kieker's
/// reader, which invents values: here a bool other than 0 and 1 is not read as false, an unknown
/// string id not as null, and half a surrogate pair not as a char.
#[derive(Debug, Clone)]
pub struct KiekerDeserializer {
    catalog: Arc<Catalog>,
}

impl KiekerDeserializer {
    /// Creates a deserializer with the types of this catalog.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog }
    }
}

impl Default for KiekerDeserializer {
    /// With Kieker's own types.
    fn default() -> Self {
        Self::new(types::shared_catalog())
    }
}

impl ChunkDeserializer for KiekerDeserializer {
    fn magic(&self) -> [u8; 4] {
        MAGIC
    }

    fn set_catalog(&mut self, catalog: &Arc<Catalog>) {
        self.catalog = Arc::clone(catalog);
    }

    /// Checks everything but the records.
    fn summarize(&self, chunk: &[u8], limits: &Limits) -> Result<ChunkSummary, DecodeError> {
        Frame::cut(chunk, limits).map(|_| summary(chunk))
    }

    fn deserialize(
        &mut self,
        chunk: &[u8],
        limits: &Limits,
        layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError> {
        let frame = Frame::cut(chunk, limits)?;
        let mut decoder = Decoder::new(&frame.strings, limits, &self.catalog);
        let mut records = frame.records.clone();
        while !records.is_empty() {
            decoder.record(&mut records)?;
        }
        let batch =
            RecordBatch::from_parts(decoder.batch_strings, decoder.batch_tables, decoder.order);
        if let Some(wanted) = layout {
            *wanted = layout_of(chunk, &frame, &batch);
        }
        Ok(DecodedChunk {
            summary: summary(chunk),
            batch,
        })
    }
}

fn summary(chunk: &[u8]) -> ChunkSummary {
    ChunkSummary::plain(ContainerKind::Kieker, "dflt", chunk)
}

/// Fills a batch, record by record.
struct Decoder<'a> {
    limits: &'a Limits,
    catalog: &'a Catalog,
    /// The chunk's strings by id.
    strings: &'a [&'a str],
    /// The string's id in the batch, by id of the chunk. The batch contains only strings of fields,
    /// in order of first use, as a builder does.
    string_ids: Vec<u32>,
    /// The table of the type with that name, by id of the chunk.
    tables: Vec<u32>,
    batch_strings: StringTable,
    batch_tables: Vec<Table>,
    /// The position of each record's table, if there are several tables.
    order: Vec<u32>,
    records: usize,
    /// The memory used so far, in bytes. Columns count twice, because they grow by doubling.
    spent: u64,
}

impl<'a> Decoder<'a> {
    fn new(strings: &'a [&'a str], limits: &'a Limits, catalog: &'a Catalog) -> Self {
        Self {
            limits,
            catalog,
            strings,
            string_ids: vec![NONE; strings.len()],
            tables: vec![NONE; strings.len()],
            batch_strings: StringTable::default(),
            batch_tables: Vec::new(),
            order: Vec::new(),
            records: 0,
            spent: to_u64(strings.len() * STRING_MEMORY),
        }
    }

    fn record(&mut self, input: &mut Cursor<'_>) -> Result<(), DecodeError> {
        let at = input.clone();
        let records = self.records + 1;
        if records > self.limits.records {
            return Err(at.over_limit("a record", to_u64(records), self.limits.records));
        }
        let number = self.table(input)?;
        let timestamp = i64::from_be_bytes(input.array("a logging timestamp")?);
        self.spend(&at, 24)?;
        let index = to_usize(number);
        // Taken out, so that strings can be added to the batch while the fields are filled.
        let Some(table) = self.batch_tables.get_mut(index) else {
            return Err(at.error(CLASS, invalid(number)));
        };
        let schema = Arc::clone(table.schema());
        let (timestamps, columns) = table.parts();
        timestamps.push(timestamp);
        let mut columns = std::mem::take(columns);
        let filled = columns
            .iter_mut()
            .zip(schema.fields())
            .try_for_each(|(column, field)| self.value(column, field.field_type(), input));
        if let Some(table) = self.batch_tables.get_mut(index) {
            *table.parts().1 = columns;
        }
        filled?;
        if self.batch_tables.len() > 1 {
            // The records before the second type appeared all have the first type.
            self.order.resize(self.records, 0);
            self.order.push(number);
        }
        self.records = records;
        Ok(())
    }

    /// Reads the id of a class name; returns the table for the class.
    fn table(&mut self, input: &mut Cursor<'_>) -> Result<u32, DecodeError> {
        let at = input.clone();
        let (id, name) = self.id(input, CLASS)?;
        let known = self.tables.get(id).copied().unwrap_or(NONE);
        if known != NONE {
            return Ok(known);
        }
        let Some(schema) = self.catalog.get(name) else {
            let name = name.into();
            return Err(at.error(CLASS, DecodeErrorKind::UnknownRecordType { name }));
        };
        for field in schema.fields() {
            field_bytes(&at, schema, field)?;
        }
        // Two ids may name one type: by an alias, or in a string table with duplicates.
        let tables = &mut self.batch_tables;
        let number = match tables.iter().position(|table| table.schema() == schema) {
            Some(number) => number,
            None => {
                let number = tables.len();
                if number >= self.limits.types {
                    return Err(at.over_limit(CLASS, to_u64(number + 1), self.limits.types));
                }
                tables.push(Table::new(Arc::clone(schema)));
                number
            }
        };
        let number = u32::try_from(number).unwrap_or(NONE);
        if let Some(slot) = self.tables.get_mut(id) {
            *slot = number;
        }
        Ok(number)
    }

    fn value(
        &mut self,
        column: &mut Column,
        field_type: &FieldType,
        input: &mut Cursor<'_>,
    ) -> Result<(), DecodeError> {
        let at = input.clone();
        self.spend(&at, 16)?;
        match (column, field_type) {
            (Column::Bool(values), _) => match input.array("a bool")? {
                [byte @ (0 | 1)] => values.push(byte == 1),
                [byte] => return Err(at.error("a bool", invalid(byte))),
            },
            (Column::Signed(values), FieldType::I8) => {
                values.push(i8::from_be_bytes(input.array("an i8")?).into());
            }
            (Column::Signed(values), FieldType::I16) => {
                values.push(i16::from_be_bytes(input.array("an i16")?).into());
            }
            (Column::Signed(values), FieldType::I32) => {
                values.push(i32::from_be_bytes(input.array("an i32")?).into());
            }
            (Column::Signed(values), _) => {
                values.push(i64::from_be_bytes(input.array("an i64")?));
            }
            (Column::F32(values), _) => values.push(u32::from_be_bytes(input.array("an f32")?)),
            (Column::F64(values), _) => values.push(u64::from_be_bytes(input.array("an f64")?)),
            (Column::Char(values), _) => {
                let unit = u16::from_be_bytes(input.array("a char")?);
                let value = char::from_u32(unit.into());
                values.push(value.ok_or_else(|| at.error("a char", invalid(unit)))?);
            }
            (Column::Enum(values), FieldType::Enum(enum_type)) => {
                let number = u32::from_be_bytes(input.array("an enum")?);
                if enum_type.variant(number).is_none() {
                    return Err(at.error("an enum", invalid(number)));
                }
                values.push(number);
            }
            (Column::String(values), _) => {
                let string = self.id(input, "a string id")?;
                values.push(self.string(&at, string)?);
            }
            (Column::List(column), FieldType::List(inner)) => {
                const LENGTH: &str = "the length of a list";
                let declared = u32::from_be_bytes(input.array(LENGTH)?);
                let len = to_usize(declared);
                let needed = list_bytes(inner, len);
                if needed > input.left() {
                    let left = input.left();
                    return Err(at.error(LENGTH, DecodeErrorKind::Ends { needed, left }));
                }
                for _ in 0..len {
                    self.value(&mut column.items, inner, input)?;
                }
                // The limit on memory keeps this well below 4 billion items.
                let end = u32::try_from(column.items.len());
                column
                    .ends
                    .push(end.map_err(|_| at.error(LENGTH, invalid(declared)))?);
            }
            // `field_bytes` refuses all other types.
            _ => return Err(at.error("a field", invalid(field_type.code()))),
        }
        Ok(())
    }

    /// Reads an id. Returns it and its string, which the string table has.
    fn id(
        &self,
        input: &mut Cursor<'_>,
        reading: &'static str,
    ) -> Result<(usize, &'a str), DecodeError> {
        let at = input.clone();
        let id = u32::from_be_bytes(input.array(reading)?);
        let text = self.strings.get(to_usize(id)).copied();
        let text = text.ok_or_else(|| at.error(reading, invalid(id)))?;
        Ok((to_usize(id), text))
    }

    /// Returns the batch's id for a string of the chunk.
    fn string(&mut self, at: &Cursor<'_>, (id, text): (usize, &str)) -> Result<u32, DecodeError> {
        let known = self.string_ids.get(id).copied().unwrap_or(NONE);
        if known != NONE {
            return Ok(known);
        }
        self.spend(at, text.len() + 4)?;
        let new = self.batch_strings.push(text);
        let new = new.ok_or_else(|| at.error("a string", invalid(NONE)))?;
        if let Some(slot) = self.string_ids.get_mut(id) {
            *slot = new;
        }
        Ok(new)
    }

    fn spend(&mut self, at: &Cursor<'_>, bytes: usize) -> Result<(), DecodeError> {
        self.spent += to_u64(bytes);
        if self.spent > to_u64(self.limits.decoded_bytes) {
            return Err(at.over_limit("a record", self.spent, self.limits.decoded_bytes));
        }
        Ok(())
    }
}

pub(super) const CLASS: &str = "the id of a record's class";

pub(super) fn invalid(found: impl Into<u64>) -> DecodeErrorKind {
    DecodeErrorKind::Invalid {
        found: found.into(),
    }
}

/// Returns the least bytes of a field. Refuses types that a catalog may hold but the container
/// cannot.
pub(super) fn field_bytes(
    at: &Cursor<'_>,
    schema: &Schema,
    field: &Field,
) -> Result<usize, DecodeError> {
    least_bytes(field.field_type()).ok_or_else(|| {
        let kind = DecodeErrorKind::UnfitRecordType {
            record: schema.name().into(),
            field: field.name().into(),
            field_type: field.field_type().to_string().into(),
        };
        at.error(CLASS, kind)
    })
}
