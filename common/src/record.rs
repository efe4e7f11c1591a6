//! Records: typed observations of an application. Each chunk carries their schemas.
//!
//! [`Record`] -> [`RowWriter`] (a queue's plain bytes) -> [`BatchBuilder`] -> [`RecordBatch`] ->
//! a chunk -> [`RecordBatch`] -> [`RecordRef`] -> [`read()`] -> [`Record`].

mod any_value;
mod batch;
mod catalog;
mod column;
#[doc(hidden)]
pub mod derived;
mod dynamic;
mod field_value;
mod intern;
#[cfg(feature = "irl")]
pub mod irl;
mod read;
mod reference;
mod row;
pub mod sampling;
mod schema;
#[cfg(feature = "serde")]
pub mod serde;
mod strings;
pub mod timing;
mod value;
mod words;

use std::sync::Arc;

pub use baler_macros::{Record, Records};

pub use any_value::{ANY_VALUE_NAME, AnyValue};
pub(crate) use batch::StringKeys;
pub use batch::{
    BatchBuilder, FieldColumn, PushError, RecordBatch, RecordRefs, Table, TypedRecords, WordRun,
};
pub use catalog::Catalog;
pub use column::{BytesColumn, Column, ListColumn, OptionalColumn, RecordColumn};
pub use dynamic::{DynamicRecord, ValueError};
pub use field_value::{FieldValue, Shape};
pub use intern::{Interned, InternerHold};
pub use read::{FieldSource, Projection, ReadError, can_read, read};
pub use reference::{EnumRef, ListRef, MapRef, RecordFields, RecordRef, ValueRef};
pub use row::{RowNumber, RowWriter};
pub use schema::{
    EnumType, Field, FieldType, Fingerprint, MAX_DEPTH, MAX_FIELDS, MAX_NAME_BYTES, MAX_VARIANTS,
    Role, Schema, SchemaError,
};
pub use strings::StringTable;
pub use value::Value;
pub use words::{
    Width, WordLayout, WordRows, WordSink, WordText, Words, text_words, words_of_text,
};

/// The timestamp of a record that has none.
///
/// It is Kieker's value: `loggingTimestamp` is -1 if it was never set
/// (`AbstractMonitoringRecord.java`). A record logged in the last nanosecond of 1969 counts as a
/// record without a timestamp.
pub const NO_TIMESTAMP: i64 = -1;

/// The name of the record type that holds JSON text in its one field, [`JSON_TEXT_FIELD`]. Readers
/// of JSON keep values in it that fit no other type.
///
/// The JSON sink writes this text as JSON; other sinks write it as text.
pub const JSON_TEXT_NAME: &str = "baler.Json";

/// The field with the JSON text. A record whose only field has this name and type stands for a
/// whole line that fits no schema.
pub const JSON_TEXT_FIELD: &str = "json";

/// A record type known at compile time; derive it.
///
/// `#[derive(Record)]` writes this implementation, and [`FieldValue`], for a struct with named
/// fields or none. For an enum without data it writes only [`FieldValue`]. An implementation by
/// hand must pass the fields in the schema's order, in both directions.
///
/// ```
/// use baler_common::record::{BatchBuilder, Record};
///
/// #[derive(Debug, PartialEq, Record)]
/// #[record(name = "shop.Order")]
/// struct Order {
///     #[record(timestamp)]
///     placed_at: i64,
///     customer: String,
///     status: Status,
///     lines: Vec<Line>,
/// }
///
/// #[derive(Debug, PartialEq, Record)]
/// #[record(name = "shop.Line")]
/// struct Line {
///     article: u64,
///     count: u32,
/// }
///
/// #[derive(Debug, PartialEq, Record)]
/// enum Status {
///     Open,
///     Paid,
/// }
///
/// let order = Order {
///     placed_at: 1_700_000_000_000_000_000,
///     customer: "Ada".into(),
///     status: Status::Paid,
///     lines: vec![Line { article: 4711, count: 2 }],
/// };
/// let mut builder = BatchBuilder::new();
/// builder.push(&order)?;
/// let batch = builder.take();
/// let orders: Vec<Order> = batch.read().collect::<Result<_, _>>()?;
/// assert_eq!(orders, [order]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Attributes
///
/// | on | attribute | meaning |
/// |---|---|---|
/// | type | `name = "shop.Order"` | the type's name; by default its identifier, without its module |
/// | type | `rename_all = "camelCase"` | the case of field or variant names; also `PascalCase`, `snake_case`, `SCREAMING_SNAKE_CASE` |
/// | type | `crate = "path"` | where this crate is, when it was renamed or is reached through another |
/// | field, variant | `rename = "..."` | its name, by default its identifier |
/// | field, variant | `alias = "..."` | a former name, found when there is none of the present one; may be repeated |
/// | field | `default` | `Default::default()` when the writer did not know the field |
/// | field | `default = expression` | the expression instead |
/// | field | `timestamp` | the field is what [`Record::timestamp`] returns; at most one; implies `unix_nanos` |
/// | field | `unix_nanos`, `nanos` | the field's [`Role`]; like `timestamp` on i64, u64, optional or not |
/// | variant | `other` | read in place of a variant that this version does not know |
///
/// A type's name is its identity in every chunk and for every consumer. Give types that leave the
/// process an explicit name, such as `shop.Order`. It survives moving and renaming the Rust type.
///
/// # Versions
///
/// Versions of a type read each other's records by field name:
///
/// ```
/// use baler_common::record::{BatchBuilder, Record};
///
/// #[derive(Record)]
/// #[record(name = "shop.Order")]
/// struct OrderV1 {
///     customer: String,
///     count: u16,
///     note: String,
/// }
///
/// #[derive(Debug, PartialEq, Record)]
/// #[record(name = "shop.Order")]
/// struct OrderV2 {
///     // Renamed: the old name still is found.
///     #[record(alias = "customer")]
///     buyer: String,
///     // Widened.
///     count: u64,
///     // Added: missing in old records. `note` was removed and is ignored.
///     discount: Option<f64>,
///     #[record(default = "EUR".into())]
///     currency: String,
/// }
///
/// let mut builder = BatchBuilder::new();
/// builder.push(&OrderV1 { customer: "Ada".into(), count: 3, note: String::new() })?;
/// let batch = builder.take();
/// let order = batch.read::<OrderV2>().next().ok_or("one record was pushed")??;
/// assert_eq!(order.buyer, "Ada");
/// assert_eq!(order.count, 3);
/// assert_eq!((order.discount, &*order.currency), (None, "EUR"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Refused types
///
/// Everything for which a schema could be refused is a compiler error: duplicate names, types that
/// cannot be a field, nesting beyond [`MAX_DEPTH`], an optional directly inside an optional,
/// generic types and lifetimes:
///
/// ```compile_fail,E0277
/// #[derive(baler_common::record::Record)]
/// struct Counter {
///     value: usize, // Differs between machines.
/// }
/// ```
///
/// ```compile_fail,E0080
/// #[derive(baler_common::record::Record)]
/// struct Maybe {
///     value: Option<Option<u64>>, // `Some(None)` would look like `None`.
/// }
/// ```
///
/// ```compile_fail,E0080
/// type Four<T> = Vec<Vec<Vec<Vec<T>>>>;
///
/// #[derive(baler_common::record::Record)]
/// struct Deep {
///     values: Four<Four<Four<Four<u8>>>>,
/// }
/// ```
///
/// A type that contains itself is a cycle for the compiler:
///
/// ```compile_fail,E0391
/// #[derive(baler_common::record::Record)]
/// struct Tree {
///     children: Vec<Tree>,
/// }
/// ```
pub trait Record: Sized {
    /// The type's schema, made once.
    fn schema() -> &'static Arc<Schema>;

    /// Returns the logging time, in nanoseconds since the Unix epoch, if the record contains it.
    fn timestamp(&self) -> Option<i64> {
        None
    }

    /// Appends the fields to a row, in the schema's order.
    fn write_fields(&self, row: &mut RowWriter<'_>);

    /// The layout of the fields in a row of words, if [`write_words`](Self::write_words) makes one.
    const WIDTHS: &'static [Width] = &[Width::Varies];

    /// Passes the record on as words, if each of its fields has one width: bool, numbers, char,
    /// enums, text.
    ///
    /// Only derived types do this; others are written as bytes.
    fn write_words<S: WordSink>(&self, sink: S) -> Option<S::Output> {
        let _ = sink;
        None
    }

    /// Reads the fields from a record of this or another version of the type.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    fn read_fields(source: &mut FieldSource<'_>) -> Result<Self, ReadError>;
}

/// The records to read from a stream: one type, or an enum with a variant for each of several
/// types.
///
/// Every [`Record`] is one. `#[derive(Records)]` makes one from an enum whose variants hold one
/// record each. Records of other types are skipped.
///
/// ```
/// use baler_common::record::{BatchBuilder, Record, Records};
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Order { item: String }
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Click { page: u32 }
///
/// #[derive(Debug, PartialEq, Records)]
/// enum Shop { Order(Order), Click(Click) }
///
/// let mut builder = BatchBuilder::new();
/// builder.push(&Click { page: 7 })?;
/// builder.push(&Order { item: "tea".into() })?;
/// let read: Vec<Shop> = builder.take().read().collect::<Result<_, _>>()?;
/// assert_eq!(read, [Shop::Click(Click { page: 7 }), Shop::Order(Order { item: "tea".into() })]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The attribute `#[record(crate = "path")]` is the path to this crate, as with [`Record`]. If the
/// types of two variants have the same name, the first variant is read.
pub trait Records: Sized {
    /// The schemas of the types.
    fn schemas() -> Vec<&'static Arc<Schema>>;

    /// Reads a record of the type at this position in [`schemas`](Self::schemas). `projection` maps
    /// the record to that schema.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    fn read_typed(
        position: usize,
        projection: &Projection,
        record: RecordFields<'_>,
    ) -> Result<Self, ReadError>;
}

impl<R: Record> Records for R {
    fn schemas() -> Vec<&'static Arc<Schema>> {
        vec![R::schema()]
    }

    #[inline]
    fn read_typed(
        _: usize,
        projection: &Projection,
        record: RecordFields<'_>,
    ) -> Result<Self, ReadError> {
        projection.read_matched(record)
    }
}
