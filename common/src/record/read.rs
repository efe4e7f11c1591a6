//! Reading a record into a typed struct, whatever version of the type wrote it.
//!
//! Fields are matched by name, then by alias.
//! A field that the writer did not know takes its default; a field that the reader does not know is
//! ignored; numbers are widened. [`can_read`] is the table of what may become what.

use std::sync::Arc;

use super::Record;
use super::reference::{RecordFields, ValueRef};
use super::schema::{Field, FieldType, Schema};

/// Why a record could not be read into a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The writer did not know the field and the reader has no default for it.
    #[error("{record} has no field {field}, and there is no default for it")]
    Missing {
        /// The writer's record type.
        record: Box<str>,
        /// The reader's field.
        field: Box<str>,
    },
    /// The writer's type cannot become the reader's.
    #[error("{record}.{field} is of type {found}, which cannot be read as {wanted}")]
    Type {
        /// The writer's record type.
        record: Box<str>,
        /// The reader's field.
        field: Box<str>,
        /// The writer's type.
        found: Box<str>,
        /// The reader's type.
        wanted: Box<str>,
    },
    /// A value cannot be held by the reader's type, for instance a variant it does not know.
    #[error("{found} cannot be read as {wanted}")]
    Value {
        /// The value, as text.
        found: Box<str>,
        /// What the reader wanted.
        wanted: Box<str>,
    },
}

/// How the fields of a reader's schema are taken from those of a writer's.
///
/// Made once for each pair of schemas; a consumer of many records keeps it.
#[derive(Debug, Clone)]
pub struct Projection {
    /// Every reader field's position in the writer's schema.
    positions: Vec<Option<usize>>,
}

impl Projection {
    /// Matches the fields of `reader` to those of `writer`.
    ///
    /// # Errors
    ///
    /// [`ReadError::Type`] when a field's type cannot be read. Missing fields are an error only
    /// when a record is read, because their default is the reader's affair.
    pub fn new(reader: &Schema, writer: &Schema) -> Result<Self, ReadError> {
        let mut positions = Vec::with_capacity(reader.fields().len());
        for field in reader.fields() {
            let position = writer.position(field.name()).or_else(|| {
                field
                    .aliases()
                    .iter()
                    .find_map(|alias| writer.position(alias))
            });
            if let Some(found) = position.and_then(|at| writer.fields().get(at))
                && !can_read(found.field_type(), field.field_type())
            {
                return Err(ReadError::Type {
                    record: writer.name().into(),
                    field: field.name().into(),
                    found: found.field_type().to_string().into(),
                    wanted: field.field_type().to_string().into(),
                });
            }
            positions.push(position);
        }
        Ok(Self { positions })
    }

    /// Reads one record of the writer's type.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn read<R: Record>(&self, record: RecordFields<'_>) -> Result<R, ReadError> {
        let schema: &'static Arc<Schema> = R::schema();
        let mut source = FieldSource {
            record,
            fields: schema.fields(),
            positions: &self.positions,
            next: 0,
        };
        R::read_fields(&mut source)
    }
}

/// Reads one record, matching its fields anew; see [`Projection`] for many.
///
/// # Errors
///
/// See [`ReadError`].
pub fn read<R: Record>(record: RecordFields<'_>) -> Result<R, ReadError> {
    Projection::new(R::schema(), record.schema())?.read(record)
}

/// Hands out the values of one record in the order of the reader's fields.
#[derive(Debug)]
pub struct FieldSource<'a> {
    record: RecordFields<'a>,
    fields: &'static [Field],
    positions: &'a [Option<usize>],
    next: usize,
}

impl FieldSource<'_> {
    /// The value of the next field of the reader's schema.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn take<T: super::FieldValue>(&mut self) -> Result<T, ReadError> {
        let at = self.next;
        self.next = at.saturating_add(1);
        if let Some(value) = self
            .positions
            .get(at)
            .copied()
            .flatten()
            .and_then(|at| self.record.get(at))
        {
            return T::read(value);
        }
        let field = self.fields.get(at);
        if let Some(field) = field
            && let Some(default) = field.default_value()
            && let Some(value) = ValueRef::of(default, field.field_type())
        {
            return T::read(value);
        }
        T::missing().ok_or_else(|| ReadError::Missing {
            record: self.record.schema().name().into(),
            field: field.map_or("", Field::name).into(),
        })
    }
}

/// Whether a reader of type `reader` takes values of type `writer`.
///
/// | writer | reader |
/// |---|---|
/// | any | the same |
/// | signed integer | wider signed integer; f64 up to 32 bits; f32 up to 16 bits |
/// | unsigned integer | wider unsigned or signed integer; f64 up to 32 bits; f32 up to 16 bits |
/// | f32 | f64 |
/// | T | optional of what reads T |
/// | enum | enum; the variants are matched by name when a value is read |
/// | list | list whose items can be read |
/// | record | record whose common fields can be read |
pub fn can_read(writer: &FieldType, reader: &FieldType) -> bool {
    use FieldType as T;
    if writer == reader {
        return true;
    }
    match (writer, reader) {
        (T::Optional(writer), T::Optional(reader)) => can_read(writer, reader),
        (writer, T::Optional(reader)) => can_read(writer, reader),
        (T::List(writer), T::List(reader)) => can_read(writer, reader),
        (T::Enum(_), T::Enum(_)) => true,
        (T::Record(writer), T::Record(reader)) => Projection::new(reader, writer).is_ok(),
        (T::I8, T::I16 | T::I32 | T::I64 | T::F32 | T::F64)
        | (T::I16, T::I32 | T::I64 | T::F32 | T::F64)
        | (T::I32, T::I64 | T::F64)
        | (T::U8, T::U16 | T::U32 | T::U64 | T::I16 | T::I32 | T::I64 | T::F32 | T::F64)
        | (T::U16, T::U32 | T::U64 | T::I32 | T::I64 | T::F32 | T::F64)
        | (T::U32, T::U64 | T::I64 | T::F64)
        | (T::F32, T::F64) => true,
        _ => false,
    }
}
