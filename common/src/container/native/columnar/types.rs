//! Schemas in a body; FORMAT.md, "Types".

use std::sync::Arc;

use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::limits::Budget;
use crate::container::native::columnar::calls;
use crate::container::varint::{self, text};
use crate::container::well_known::WellKnownTypes;
use crate::number::to_u64;
use crate::record::{
    EnumType, Field, FieldType, MAX_DEPTH, MAX_FIELDS, MAX_VARIANTS, Role, Schema, SchemaError,
};

/// The number that means that a schema follows.
const INLINE: u64 = 0;

/// The approximate memory of a field of a schema, with its empty column.
const FIELD_MEMORY_BYTES: usize = 256;

/// The fields of a map's entries: key and value.
const ENTRY_FIELDS: usize = 2;

/// The memory of a variant's name beside its text: the name and its entry in the set that checks
/// for duplicates.
const VARIANT_MEMORY_BYTES: usize = 64;

/// The number of types kept as bytes. Beyond it, all are forgotten.
const MOST_WRITTEN: usize = 64;

/// Types in their written form. So a type is compared with the well-known ones, and described, only
/// once for many chunks.
#[derive(Debug, Default)]
pub(super) struct Written {
    known: Option<&'static WellKnownTypes>,
    types: Vec<WrittenType>,
}

#[derive(Debug)]
struct WrittenType {
    schema: Arc<Schema>,
    bytes: Box<[u8]>,
    /// Whether its tables may have the layout of calls.
    has_calls: bool,
}

impl Written {
    /// Sets the types that are written by number.
    pub(super) fn set_well_known(&mut self, known: &'static WellKnownTypes) {
        self.known = Some(known);
        self.types.clear();
    }

    /// Appends a schema: by number if it is well-known, in full otherwise.
    pub(super) fn write(&mut self, schema: &Arc<Schema>, out: &mut Vec<u8>) {
        if let Some(known) = self.find(schema) {
            out.extend_from_slice(&known.bytes);
            return;
        }
        let mut bytes = Vec::new();
        let number = self.known.and_then(|known| known.number(schema));
        varint::write(&mut bytes, number.unwrap_or(INLINE));
        if number.is_none() {
            write_schema(schema, &mut bytes);
        }
        out.extend_from_slice(&bytes);
        if self.types.len() >= MOST_WRITTEN {
            self.types.clear();
        }
        self.types.push(WrittenType {
            schema: Arc::clone(schema),
            bytes: bytes.into(),
            has_calls: number.is_some_and(|number| has_calls(schema, number, self.known)),
        });
    }

    fn find(&self, schema: &Arc<Schema>) -> Option<&WrittenType> {
        self.types
            .iter()
            .find(|known| Arc::ptr_eq(&known.schema, schema))
    }

    /// Whether the tables of a type that was written may have the layout of calls.
    pub(super) fn has_calls(&self, schema: &Arc<Schema>) -> bool {
        self.find(schema).is_some_and(|written| written.has_calls)
    }
}

/// Whether the tables of the well-known type with this number may have the layout of calls.
fn has_calls(schema: &Schema, number: u64, known: Option<&WellKnownTypes>) -> bool {
    known.and_then(WellKnownTypes::calls) == Some(number) && calls::fits(schema)
}

/// A type as a chunk has it.
#[derive(Debug)]
pub(super) struct ReadType {
    pub(super) schema: Arc<Schema>,
    /// Whether its table may have the layout of calls.
    pub(super) has_calls: bool,
}

fn write_schema(schema: &Schema, out: &mut Vec<u8>) {
    text(out, schema.name());
    varint::write(out, to_u64(schema.fields().len()));
    for field in schema.fields() {
        text(out, field.name());
        write_type(field.field_type(), out);
        out.push(field.role().code());
    }
}

fn write_type(field_type: &FieldType, out: &mut Vec<u8>) {
    out.push(field_type.code());
    match field_type {
        FieldType::Enum(enum_type) => {
            text(out, enum_type.name());
            varint::write(out, to_u64(enum_type.variants().len()));
            for variant in enum_type.variants() {
                text(out, variant);
            }
        }
        FieldType::Optional(inner) | FieldType::List(inner) => write_type(inner, out),
        FieldType::Record(schema) => write_schema(schema, out),
        FieldType::Map(_) => {
            let value = field_type.map_value();
            debug_assert!(value.is_some(), "schemas refuse other entries");
            if let Some(value) = value {
                write_type(value, out);
            }
        }
        _ => {}
    }
}

/// Reads a type: a schema, or a number in this table.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    known: Option<&'static WellKnownTypes>,
    budget: &mut Budget,
) -> Result<ReadType, DecodeError> {
    let at = cursor.clone();
    let number = cursor.varint("a type's number")?;
    if number == INLINE {
        return Ok(ReadType {
            schema: Arc::new(read_schema(cursor, 0, budget)?),
            has_calls: false,
        });
    }
    let wrong = |kind| at.error("a type's number", kind);
    let table = known.ok_or_else(|| wrong(DecodeErrorKind::WellKnownTypesMissing { number }))?;
    let schema = table.get(number).ok_or_else(|| {
        let what = "well-known type";
        wrong(DecodeErrorKind::Unknown { what, number })
    })?;
    budget
        .charge(schema.fields().len(), FIELD_MEMORY_BYTES)
        .map_err(|kind| at.error("a type", kind))?;
    Ok(ReadType {
        schema: Arc::clone(schema),
        has_calls: has_calls(schema, number, known),
    })
}

fn read_schema(
    cursor: &mut Cursor<'_>,
    depth: usize,
    budget: &mut Budget,
) -> Result<Schema, DecodeError> {
    let at = cursor.clone();
    let name = cursor.text("a type's name")?;
    let count = cursor.count(MAX_FIELDS, "the number of fields")?;
    budget
        .charge(count, FIELD_MEMORY_BYTES)
        .map_err(|kind| at.error("a type", kind))?;
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let name = cursor.text("a field's name")?;
        let field_type = read_type(cursor, depth + 1, budget)?;
        let at = cursor.clone();
        let code = cursor.u8("a field's role")?;
        let role = Role::from_code(code).ok_or_else(|| {
            let kind = DecodeErrorKind::Unknown {
                what: "role",
                number: code.into(),
            };
            at.error("a field's role", kind)
        })?;
        fields.push(Field::new(name, field_type).with_role(role));
    }
    Schema::new(name, fields).map_err(|error| wrong(&at, error))
}

fn read_type(
    cursor: &mut Cursor<'_>,
    depth: usize,
    budget: &mut Budget,
) -> Result<FieldType, DecodeError> {
    let at = cursor.clone();
    if depth > MAX_DEPTH {
        return Err(at.over_limit("a field's type", to_u64(depth), MAX_DEPTH));
    }
    let code = cursor.u8("a field's type")?;
    if let Some(plain) = FieldType::plain(code) {
        return Ok(plain.clone());
    }
    Ok(match code {
        0x0f => FieldType::Enum(Arc::new(read_enum(cursor, budget)?)),
        0x10 => read_type(cursor, depth + 1, budget)?.optional(),
        0x11 => read_type(cursor, depth + 1, budget)?.list(),
        0x12 => FieldType::Record(Arc::new(read_schema(cursor, depth, budget)?)),
        0x13 => {
            budget
                .charge(ENTRY_FIELDS, FIELD_MEMORY_BYTES)
                .map_err(|kind| at.error("a map", kind))?;
            read_type(cursor, depth + 2, budget)?.map()
        }
        _ => {
            let kind = DecodeErrorKind::Unknown {
                what: "field type",
                number: code.into(),
            };
            return Err(at.error("a field's type", kind));
        }
    })
}

fn read_enum(cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<EnumType, DecodeError> {
    let at = cursor.clone();
    let name = cursor.text("an enum's name")?;
    let count = cursor.count(MAX_VARIANTS, "the number of variants")?;
    budget
        .charge(count, VARIANT_MEMORY_BYTES)
        .map_err(|kind| at.error("an enum", kind))?;
    let mut variants = Vec::with_capacity(count);
    for _ in 0..count {
        variants.push(cursor.text("a variant's name")?);
    }
    EnumType::new(name, variants).map_err(|error| wrong(&at, error))
}

fn wrong(at: &Cursor<'_>, error: SchemaError) -> DecodeError {
    at.error("a type", DecodeErrorKind::Schema(error))
}
