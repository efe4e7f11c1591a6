//! Reads a record of any version of a type into a typed struct.
//!
//! Fields are matched by name, then by alias. A field that the writer did not have takes its
//! default. A field that the reader does not have is ignored. Numbers are widened. [`can_read`]
//! lists the allowed conversions.

use std::sync::Arc;

use super::reference::RecordFields;
use super::schema::{Field, FieldType, Fingerprint, Schema};
use super::{FieldValue, Record};

/// Why a record could not be read into a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The writer did not have the field, and the reader has no default for it.
    #[error("{record} has no field {field}, and there is no default for it")]
    Missing {
        /// The writer's record type.
        record: Box<str>,
        /// The reader's field.
        field: Box<str>,
    },
    /// The writer's type cannot be converted to the reader's.
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
    /// The value of a field could not be read.
    #[error("{record}.{field}: {reason}")]
    Field {
        /// The writer's record type.
        record: Box<str>,
        /// The reader's field.
        field: Box<str>,
        /// The reason; another [`ReadError::Field`] if the field is a record.
        reason: Box<Self>,
    },
    /// The reader's type cannot hold a value, for example an unknown variant.
    #[error("{found} cannot be read as {wanted}")]
    Value {
        /// The value, as text.
        found: Box<str>,
        /// The expected value.
        wanted: Box<str>,
    },
}

/// Maps the fields of a writer's schema to a reader's.
///
/// Made once for each pair of schemas. A consumer of many records keeps it.
#[derive(Debug, Clone)]
pub struct Projection {
    reader: Fingerprint,
    writer: Fingerprint,
    /// One for each field of the reader.
    sources: Vec<Source>,
}

/// The source of a reader's field.
#[derive(Debug, Clone)]
struct Source {
    /// The position in the writer's schema.
    position: Option<usize>,
    /// For a record, and for optionals, lists and maps of records.
    nested: Option<Box<Projection>>,
}

impl Projection {
    /// Matches the fields of `reader` to those of `writer`.
    ///
    /// # Errors
    ///
    /// [`ReadError::Type`] when a field's type cannot be read. Missing fields are an error only
    /// when a record is read, because the reader defines their defaults.
    pub fn new(reader: &Schema, writer: &Schema) -> Result<Self, ReadError> {
        let sources = reader.fields().iter().map(|field| {
            let position = writer.position(field.name()).or_else(|| {
                let mut aliases = field.aliases().iter();
                aliases.find_map(|alias| writer.position(alias))
            });
            let nested = match position.and_then(|at| writer.fields().get(at)) {
                None => None,
                Some(found) => {
                    project(found.field_type(), field.field_type()).map_err(|nested| {
                        nested.unwrap_or_else(|| ReadError::Type {
                            record: writer.name().into(),
                            field: field.name().into(),
                            found: found.field_type().to_string().into(),
                            wanted: field.field_type().to_string().into(),
                        })
                    })?
                }
            };
            Ok(Source { position, nested })
        });
        Ok(Self {
            reader: reader.fingerprint(),
            writer: writer.fingerprint(),
            sources: sources.collect::<Result<_, _>>()?,
        })
    }

    /// Reads one record of the writer's type. For a record of another type, the fields are matched
    /// again.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn read<R: Record>(&self, record: RecordFields<'_>) -> Result<R, ReadError> {
        let schema: &'static Arc<Schema> = R::schema();
        if self.writer != record.schema().fingerprint() || self.reader != schema.fingerprint() {
            return Self::new(schema, record.schema())?.read_matched(record);
        }
        self.read_matched(record)
    }

    /// As [`Self::read`], for a record that is known to have the writer's type.
    pub(super) fn read_matched<R: Record>(&self, record: RecordFields<'_>) -> Result<R, ReadError> {
        R::read_fields(&mut FieldSource {
            record,
            fields: R::schema().fields(),
            sources: &self.sources,
            next: 0,
        })
    }
}

/// Reads one record, and matches its fields each time; see [`Projection`] for many records.
///
/// # Errors
///
/// See [`ReadError`].
pub fn read<R: Record>(record: RecordFields<'_>) -> Result<R, ReadError> {
    Projection::new(R::schema(), record.schema())?.read_matched(record)
}

/// Returns the values of one record in the order of the reader's fields.
#[derive(Debug)]
pub struct FieldSource<'a> {
    record: RecordFields<'a>,
    fields: &'static [Field],
    sources: &'a [Source],
    next: usize,
}

impl FieldSource<'_> {
    /// The value of the next field of the reader's schema.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn take<T: FieldValue>(&mut self) -> Result<T, ReadError> {
        let at = self.next;
        match self.written()? {
            Some(value) => Ok(value),
            None => T::missing().ok_or_else(|| ReadError::Missing {
                record: self.record.schema().name().into(),
                field: self.fields.get(at).map_or("", Field::name).into(),
            }),
        }
    }

    /// The value of the next field of the reader's schema, or `default` if the writer did not have
    /// the field.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn take_or<T: FieldValue>(&mut self, default: impl FnOnce() -> T) -> Result<T, ReadError> {
        Ok(self.written()?.unwrap_or_else(default))
    }

    /// Returns the next field's value as it was written.
    fn written<T: FieldValue>(&mut self) -> Result<Option<T>, ReadError> {
        let at = self.next;
        self.next = at + 1;
        let source = self.sources.get(at);
        let position = source.and_then(|source| source.position);
        let nested = source.and_then(|source| source.nested.as_deref());
        let value = position.and_then(|position| self.record.get(position));
        let read = value.map(|value| T::read(value, nested));
        read.transpose().map_err(|reason| self.failed(at, reason))
    }

    #[cold]
    fn failed(&self, at: usize, reason: ReadError) -> ReadError {
        ReadError::Field {
            record: self.record.schema().name().into(),
            field: self.fields.get(at).map_or("", Field::name).into(),
            reason: Box::new(reason),
        }
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
/// | map | map whose values can be read |
/// | record | record whose common fields can be read |
pub fn can_read(writer: &FieldType, reader: &FieldType) -> bool {
    project(writer, reader).is_ok()
}

/// Returns the mapping from a writer's type to a reader's: a projection if there is a record
/// inside.
///
/// The error comes from a nested record; it is `None` if the types themselves do not match.
fn project(
    writer: &FieldType,
    reader: &FieldType,
) -> Result<Option<Box<Projection>>, Option<ReadError>> {
    use FieldType as T;
    match (writer, reader) {
        (T::Optional(writer), T::Optional(reader)) | (T::List(writer), T::List(reader)) => {
            project(writer, reader)
        }
        (writer, T::Optional(reader)) => project(writer, reader),
        (T::Map(_), T::Map(_)) => match (writer.map_value(), reader.map_value()) {
            (Some(writer), Some(reader)) => project(writer, reader),
            _ => Err(None),
        },
        (T::Record(writer), T::Record(reader)) => Projection::new(reader, writer)
            .map(|projection| Some(Box::new(projection)))
            .map_err(Some),
        (writer, reader) if writer == reader || widens(writer, reader) => Ok(None),
        _ => Err(None),
    }
}

fn widens(writer: &FieldType, reader: &FieldType) -> bool {
    use FieldType as T;
    matches!(
        (writer, reader),
        (T::Enum(_), T::Enum(_))
            | (T::I8, T::I16 | T::I32 | T::I64 | T::F32 | T::F64)
            | (T::I16, T::I32 | T::I64 | T::F32 | T::F64)
            | (T::I32, T::I64 | T::F64)
            | (
                T::U8,
                T::U16 | T::U32 | T::U64 | T::I16 | T::I32 | T::I64 | T::F32 | T::F64
            )
            | (T::U16, T::U32 | T::U64 | T::I32 | T::I64 | T::F32 | T::F64)
            | (T::U32, T::U64 | T::I64 | T::F64)
            | (T::F32, T::F64)
    )
}
