//! Records: what an application tells, typed, with a schema that travels along.
//!
//! [`Record`] -> [`RowWriter`] (a queue's plain bytes) -> [`BatchBuilder`] -> [`RecordBatch`] ->
//! a chunk -> [`RecordBatch`] -> [`RecordRef`] -> [`read()`] -> [`Record`].

mod batch;
mod catalog;
#[doc(hidden)]
pub mod derived;
mod dynamic;
mod field_value;
mod intern;
mod read;
mod reference;
mod row;
mod schema;
mod shape;
mod value;

use std::sync::Arc;

pub use baler_derive::Record;
pub use batch::{
    BatchBuilder, BytesColumn, Column, ListColumn, OptionalColumn, PushError, RecordBatch,
    RecordColumn, Records, StringTable, Table,
};
pub use catalog::Catalog;
pub use dynamic::{DynamicRecord, ValueError};
pub use field_value::FieldValue;
pub use intern::Interned;
pub use read::{FieldSource, Projection, ReadError, can_read, read};
pub use reference::{EnumRef, ListRef, RecordFields, RecordRef, ValueRef};
pub use row::RowWriter;
pub use schema::{
    EnumType, Field, FieldType, Fingerprint, MAX_DEPTH, MAX_FIELDS, MAX_NAME_BYTES, MAX_VARIANTS,
    Role, Schema, SchemaError,
};
pub use shape::Shape;
pub use value::Value;

/// The timestamp of a record that has none.
///
/// It is Kieker's: `loggingTimestamp` is -1 where it was never set
/// (`AbstractMonitoringRecord.java`).
/// A record logged in the last nanosecond of 1969 counts as one without a timestamp.
pub const NO_TIMESTAMP: i64 = -1;

/// A record type known at compile time; derive it.
///
/// `#[derive(Record)]` writes this implementation from a struct with named fields.
/// Whoever writes it by hand must hand the fields over in the schema's order, in both directions.
pub trait Record: Sized {
    /// The type's schema, made once.
    fn schema() -> &'static Arc<Schema>;

    /// When the record was logged, in nanoseconds since the Unix epoch, if the record knows.
    fn timestamp(&self) -> Option<i64> {
        None
    }

    /// Appends the fields to a row, in the schema's order.
    fn write_fields(&self, row: &mut RowWriter<'_>);

    /// Takes the fields from a record of this or another version of the type.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    fn read_fields(source: &mut FieldSource<'_>) -> Result<Self, ReadError>;
}
