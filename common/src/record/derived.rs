//! Called by the code that `#[derive(Record)]` writes; not for other use.

use std::sync::Arc;

use super::read::{Projection, ReadError, read};
use super::reference::ValueRef;
use super::schema::{EnumType, Field, FieldType, Schema};
use super::{FieldValue, Record};

pub use super::field_value::refuse;
pub use super::words::{WordFields, WordTexts, fixed_words, is_flat, offset, texts};

/// Builds the schema of a derived type.
///
/// The macro has done all checks of a schema at compile time. The only remaining error is a
/// hand-written [`FieldValue`] whose `SHAPE` contradicts its `field_type`. The schema then has no
/// fields. So every record of the type is refused as malformed and counted, and the application
/// continues.
pub fn schema(name: &'static str, fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(name, fields).unwrap_or_else(|_| Schema::without_fields(name)))
}

/// Builds the type of a derived enum. The macro has checked its names.
pub fn enum_type(name: &'static str, variants: &[&'static str]) -> Arc<EnumType> {
    Arc::new(EnumType::checked(name, variants))
}

/// The type of a field that holds a record.
pub fn record_type<R: Record>() -> FieldType {
    FieldType::Record(Arc::clone(R::schema()))
}

/// Reads a record inside a record.
///
/// # Errors
///
/// See [`ReadError`].
pub fn read_nested<R: Record + FieldValue>(
    value: ValueRef<'_>,
    projection: Option<&Projection>,
) -> Result<R, ReadError> {
    match (value, projection) {
        (ValueRef::Record(record), Some(projection)) => projection.read(record),
        (ValueRef::Record(record), None) => read(record),
        _ => Err(refuse::<R>(value)),
    }
}

/// Returns the name of the variant, if the value is one.
pub fn variant_name(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Enum(variant) => variant.name(),
        _ => None,
    }
}

/// A field type that can hold nanoseconds: `i64` and `u64`, optional or not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold nanoseconds",
    label = "must be i64, u64 or an option of one of them"
)]
pub trait Nanoseconds: FieldValue {
    /// Returns the number, unless it is missing or beyond the year 2262.
    fn nanoseconds(&self) -> Option<i64>;
}

impl Nanoseconds for i64 {
    fn nanoseconds(&self) -> Option<i64> {
        Some(*self)
    }
}

impl Nanoseconds for u64 {
    fn nanoseconds(&self) -> Option<i64> {
        (*self).try_into().ok()
    }
}

impl<T: Nanoseconds> Nanoseconds for Option<T> {
    fn nanoseconds(&self) -> Option<i64> {
        self.as_ref().and_then(T::nanoseconds)
    }
}
