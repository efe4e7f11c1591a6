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

/// No value: a string that no field has, or a table not yet made.
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
        let batch = Decoder::new(&frame, limits, &self.catalog).decode()?;
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

/// Finds all records, and then decodes them field by field: a loop over the values of one field
/// takes half the time of a loop over the fields of one record.
struct Decoder<'a> {
    limits: &'a Limits,
    catalog: &'a Catalog,
    records: Cursor<'a>,
    /// The chunk's strings by id.
    strings: &'a [&'a str],
    /// By id of the chunk: first the place where a field has the string, then the string's id in the
    /// batch. The batch contains only strings of fields, in order of first use, as a builder does.
    string_ids: Vec<u32>,
    /// The table of the type with that name, by id of the chunk.
    tables: Vec<u32>,
    types: Vec<TypeRecords>,
    /// The position of each record's table, if there are several tables.
    order: Vec<u32>,
    count: usize,
    /// The memory used so far, in bytes.
    spent: u64,
}

/// The records of one type.
struct TypeRecords {
    schema: Arc<Schema>,
    /// The bytes of the logging timestamp and of the fields up to the first list.
    head_bytes: usize,
    /// The least bytes of an item of each list, and of the fields after it up to the next list.
    lists: Vec<(usize, usize)>,
    /// The memory of a record without the items of its lists.
    memory: usize,
    /// The places of the logging timestamps.
    places: Vec<usize>,
}

/// The memory of a value.
const VALUE_MEMORY: usize = 16;
/// The memory of an item of a list: its value, and its place in a list that grows by doubling.
const ITEM_MEMORY: usize = 24;

const LENGTH: &str = "the length of a list";

impl<'a> Decoder<'a> {
    fn new(frame: &'a Frame<'a>, limits: &'a Limits, catalog: &'a Catalog) -> Self {
        let strings = frame.strings.len();
        Self {
            limits,
            catalog,
            records: frame.records.clone(),
            strings: &frame.strings,
            string_ids: vec![NONE; strings],
            tables: vec![NONE; strings],
            types: Vec::new(),
            order: Vec::new(),
            count: 0,
            spent: to_u64(strings * STRING_MEMORY),
        }
    }

    fn decode(mut self) -> Result<RecordBatch, DecodeError> {
        let mut input = self.records.clone();
        while !input.is_empty() {
            self.find(&mut input)?;
        }
        let mut tables = Vec::with_capacity(self.types.len());
        for found in std::mem::take(&mut self.types) {
            tables.push(self.table(found)?);
        }
        let strings = self.number_strings()?;
        for table in &mut tables {
            table.parts().1.iter_mut().for_each(|it| self.renumber(it));
        }
        Ok(RecordBatch::from_parts(strings, tables, self.order))
    }

    /// Finds the end of a record.
    #[inline]
    fn find(&mut self, input: &mut Cursor<'_>) -> Result<(), DecodeError> {
        const FIELDS: &str = "the fields of a record";
        let at = input.clone();
        let records = self.count + 1;
        if records > self.limits.records {
            return Err(at.over_limit("a record", to_u64(records), self.limits.records));
        }
        let id = u32::from_be_bytes(input.array(CLASS)?);
        let number = match self.tables.get(to_usize(id)) {
            Some(known) if *known != NONE => *known,
            _ => self.new_class(&at, id)?,
        };
        let Some(found) = self.types.get_mut(to_usize(number)) else {
            return Err(at.error(CLASS, invalid(number)));
        };
        found.places.push(self.records.left() - input.left());
        let mut memory = found.memory;
        input.take(found.head_bytes, FIELDS)?;
        for (item_bytes, after) in &found.lists {
            let at = input.clone();
            let items = to_usize(u32::from_be_bytes(input.array(LENGTH)?));
            // A number that no chunk has stays above all limits.
            let (needed, left) = (items.saturating_mul(*item_bytes), input.left());
            if needed > left {
                return Err(at.error(LENGTH, DecodeErrorKind::Ends { needed, left }));
            }
            input.take(needed, LENGTH)?;
            input.take(*after, FIELDS)?;
            memory += items * ITEM_MEMORY;
        }
        spend(&mut self.spent, memory, self.limits, &at)?;
        if self.types.len() > 1 {
            // The records before the second type appeared all have the first type.
            self.order.resize(self.count, 0);
            self.order.push(number);
        }
        self.count = records;
        Ok(())
    }

    /// Returns the table for the class with this id, which no record had before.
    #[cold]
    fn new_class(&mut self, at: &Cursor<'_>, id: u32) -> Result<u32, DecodeError> {
        let name = self.strings.get(to_usize(id)).copied();
        let name = name.ok_or_else(|| at.error(CLASS, invalid(id)))?;
        let Some(schema) = self.catalog.get(name) else {
            let name = name.into();
            return Err(at.error(CLASS, DecodeErrorKind::UnknownRecordType { name }));
        };
        // Two ids may name one type: by an alias, or in a string table with duplicates.
        let types = &mut self.types;
        let number = match types.iter().position(|it| it.schema == *schema) {
            Some(number) => number,
            None => {
                let number = types.len();
                if number >= self.limits.types {
                    return Err(at.over_limit(CLASS, to_u64(number + 1), self.limits.types));
                }
                types.push(TypeRecords::new(schema, at)?);
                number
            }
        };
        let number = u32::try_from(number).unwrap_or(NONE);
        if let Some(slot) = self.tables.get_mut(to_usize(id)) {
            *slot = number;
        }
        Ok(number)
    }

    /// Decodes the records of one type. Their strings have the ids of the chunk until
    /// [`renumber`](Self::renumber).
    fn table(&mut self, found: TypeRecords) -> Result<Table, DecodeError> {
        let TypeRecords {
            schema, mut places, ..
        } = found;
        let mut table = Table::new(Arc::clone(&schema));
        let (timestamps, columns) = table.parts();
        let what = "a logging timestamp";
        values(&self.records, &mut places, what, timestamps, |it, _| {
            Ok(i64::from_be_bytes(it))
        })?;
        for (column, field) in columns.iter_mut().zip(schema.fields()) {
            self.column(column, field.field_type(), &mut places)?;
        }
        Ok(table)
    }

    /// Decodes the values of one field.
    fn column(
        &mut self,
        column: &mut Column,
        field_type: &FieldType,
        places: &mut [usize],
    ) -> Result<(), DecodeError> {
        let records = &self.records;
        match (column, field_type) {
            (Column::Bool(column), _) => {
                values(records, places, "a bool", column, |it, _| match it {
                    [byte @ (0 | 1)] => Ok(byte == 1),
                    [byte] => Err(invalid(byte)),
                })
            }
            (Column::Signed(column), FieldType::I8) => {
                values(records, places, "an i8", column, |it, _| {
                    Ok(i8::from_be_bytes(it).into())
                })
            }
            (Column::Signed(column), FieldType::I16) => {
                values(records, places, "an i16", column, |it, _| {
                    Ok(i16::from_be_bytes(it).into())
                })
            }
            (Column::Signed(column), FieldType::I32) => {
                values(records, places, "an i32", column, |it, _| {
                    Ok(i32::from_be_bytes(it).into())
                })
            }
            (Column::Signed(column), _) => values(records, places, "an i64", column, |it, _| {
                Ok(i64::from_be_bytes(it))
            }),
            (Column::F32(column), _) => values(records, places, "an f32", column, |it, _| {
                Ok(u32::from_be_bytes(it))
            }),
            (Column::F64(column), _) => values(records, places, "an f64", column, |it, _| {
                Ok(u64::from_be_bytes(it))
            }),
            (Column::Char(column), _) => values(records, places, "a char", column, |it, _| {
                let unit = u16::from_be_bytes(it);
                char::from_u32(unit.into()).ok_or_else(|| invalid(unit))
            }),
            (Column::Enum(column), FieldType::Enum(enum_type)) => {
                values(records, places, "an enum", column, |it, _| {
                    let number = u32::from_be_bytes(it);
                    let variant = enum_type.variant(number);
                    variant.map(|_| number).ok_or_else(|| invalid(number))
                })
            }
            (Column::String(column), _) => {
                let first_uses = &mut self.string_ids;
                values(records, places, "a string id", column, |it, place| {
                    let id = u32::from_be_bytes(it);
                    let first = first_uses
                        .get_mut(to_usize(id))
                        .ok_or_else(|| invalid(id))?;
                    // The records have less than 4 GiB.
                    *first = u32::try_from(place).unwrap_or(NONE).min(*first);
                    Ok(id)
                })
            }
            (Column::List(column), FieldType::List(inner)) => {
                let item_bytes = list_bytes(inner, 1);
                let mut items = Vec::new();
                for place in places {
                    let at = records.after(*place);
                    let length = u32::from_be_bytes(at.clone().array(LENGTH)?);
                    let first = *place + 4;
                    *place = first + to_usize(length) * item_bytes;
                    items.extend((first..*place).step_by(item_bytes));
                    // The limit on memory keeps this well below 4 billion items.
                    let end = u32::try_from(items.len());
                    column
                        .ends
                        .push(end.map_err(|_| at.error(LENGTH, invalid(length)))?);
                }
                self.column(&mut column.items, inner, &mut items)
            }
            // `field_bytes` refuses all other types.
            _ => Err(records.error("a field", invalid(field_type.code()))),
        }
    }

    /// Gives the strings of fields their ids in the batch.
    fn number_strings(&mut self) -> Result<StringTable, DecodeError> {
        let strings = self.string_ids.iter_mut().zip(self.strings);
        let mut used: Vec<_> = strings.filter(|(first, _)| **first != NONE).collect();
        used.sort_unstable_by_key(|(first, _)| **first);
        let bytes = used.iter().map(|(_, text)| text.len()).sum();
        let mut table = StringTable::with_capacity(used.len(), bytes);
        let memory = bytes + used.len() * size_of::<u32>();
        spend(&mut self.spent, memory, self.limits, &self.records)?;
        for (slot, text) in used {
            let new = table.push(text);
            *slot = new.ok_or_else(|| self.records.error("a string", invalid(NONE)))?;
        }
        Ok(table)
    }

    /// Replaces the ids of the chunk by those of the batch.
    fn renumber(&self, column: &mut Column) {
        match column {
            Column::String(ids) => {
                for id in ids {
                    // `column` has checked all ids.
                    if let Some(number) = self.string_ids.get(to_usize(*id)) {
                        *id = *number;
                    }
                }
            }
            Column::List(column) => self.renumber(&mut column.items),
            _ => {}
        }
    }
}

impl TypeRecords {
    fn new(schema: &Arc<Schema>, at: &Cursor<'_>) -> Result<Self, DecodeError> {
        // The logging timestamp.
        let mut head_bytes = 8;
        let mut lists = Vec::new();
        for field in schema.fields() {
            let bytes = field_bytes(at, schema, field)?;
            match (field.field_type(), lists.last_mut()) {
                (FieldType::List(inner), _) => lists.push((list_bytes(inner, 1), 0)),
                (_, Some((_, after))) => *after += bytes,
                (_, None) => head_bytes += bytes,
            }
        }
        Ok(Self {
            head_bytes,
            lists,
            // The place, the timestamp and the number of the table, in lists that grow by doubling.
            memory: 32 + VALUE_MEMORY * schema.fields().len(),
            places: Vec::new(),
            schema: Arc::clone(schema),
        })
    }
}

/// Decodes the values at these places, and moves the places behind them.
#[inline]
fn values<const N: usize, T: Clone + Default>(
    records: &Cursor<'_>,
    places: &mut [usize],
    reading: &'static str,
    column: &mut Vec<T>,
    mut decode: impl FnMut([u8; N], usize) -> Result<T, DecodeErrorKind>,
) -> Result<(), DecodeError> {
    let bytes = records.clone().take_rest();
    column.resize(places.len(), T::default());
    for (value, place) in column.iter_mut().zip(places) {
        let at = || records.after(*place);
        let found = match bytes.get(*place..).and_then(<[u8]>::first_chunk) {
            Some(found) => *found,
            None => at().array(reading)?,
        };
        *value = decode(found, *place).map_err(|kind| at().error(reading, kind))?;
        *place += N;
    }
    Ok(())
}

/// Counts memory before it is taken.
fn spend(
    spent: &mut u64,
    bytes: usize,
    limits: &Limits,
    at: &Cursor<'_>,
) -> Result<(), DecodeError> {
    *spent += to_u64(bytes);
    if *spent > to_u64(limits.decoded_bytes) {
        return Err(at.over_limit("a record", *spent, limits.decoded_bytes));
    }
    Ok(())
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
