//! Borrowed views of records and values. Filters and sinks read them without copies.

use std::sync::Arc;

use super::column::{Column, OptionalColumn, span};
use super::row::RowWriter;
use super::schema::{EnumType, FieldType, Schema};
use super::strings::StringTable;
use super::value::Value;
use crate::number::to_usize;

/// A borrowed value of one field.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// Nothing: the absent value of an optional field.
    Null,
    /// True or false.
    Bool(bool),
    /// `i8` to `i64`.
    Signed(i64),
    /// `u8` to `u64`.
    Unsigned(u64),
    /// 32-bit floating point.
    F32(f32),
    /// 64-bit floating point.
    F64(f64),
    /// One Unicode scalar value.
    Char(char),
    /// Text.
    String(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A variant of an enum.
    Enum(EnumRef<'a>),
    /// A list.
    List(ListRef<'a>),
    /// A nested record.
    Record(RecordFields<'a>),
    /// A map.
    Map(MapRef<'a>),
}

impl<'a> ValueRef<'a> {
    /// A view of an owned value; `None` when the value is not of this type.
    pub fn of(value: &'a Value, field_type: &'a FieldType) -> Option<Self> {
        if let (FieldType::Optional(inner), false) = (field_type, matches!(value, Value::Null)) {
            return Self::of(value, inner);
        }
        Some(match (value, field_type) {
            (Value::Null, _) => Self::Null,
            (Value::Bool(value), _) => Self::Bool(*value),
            (Value::Signed(value), _) => Self::Signed(*value),
            (Value::Unsigned(value), _) => Self::Unsigned(*value),
            (Value::F32(value), _) => Self::F32(*value),
            (Value::F64(value), _) => Self::F64(*value),
            (Value::Char(value), _) => Self::Char(*value),
            (Value::String(value), _) => Self::String(value),
            (Value::Bytes(value), _) => Self::Bytes(value),
            (Value::Variant(number), FieldType::Enum(enum_type)) => Self::Enum(EnumRef {
                number: *number,
                enum_type,
            }),
            (Value::List(values), FieldType::List(item_type) | FieldType::Map(item_type)) => {
                let items = Items::Values(values);
                Self::of_items(ListRef { item_type, items }, field_type)
            }
            (Value::Record(values), FieldType::Record(schema)) => {
                Self::Record(RecordFields::owned(schema, values))
            }
            _ => return None,
        })
    }

    /// The items of a value of this type, which is a list or a map.
    fn of_items(items: ListRef<'a>, field_type: &FieldType) -> Self {
        match field_type {
            FieldType::Map(_) => Self::Map(MapRef(items)),
            _ => Self::List(items),
        }
    }

    /// An owned copy.
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Signed(value) => Value::Signed(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::F32(value) => Value::F32(value),
            Self::F64(value) => Value::F64(value),
            Self::Char(value) => Value::Char(value),
            Self::String(value) => Value::String(value.into()),
            Self::Bytes(value) => Value::Bytes(bytes::Bytes::copy_from_slice(value)),
            Self::Enum(value) => Value::Variant(value.number),
            Self::List(list) | Self::Map(MapRef(list)) => {
                Value::List(list.iter().map(Self::to_value).collect())
            }
            Self::Record(record) => {
                Value::Record(record.values().map(|(_, value)| value.to_value()).collect())
            }
        }
    }

    /// Returns the kind of the value, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Signed(_) => "a signed integer",
            Self::Unsigned(_) => "an unsigned integer",
            Self::F32(_) => "an f32",
            Self::F64(_) => "an f64",
            Self::Char(_) => "a char",
            Self::String(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Enum(_) => "a variant",
            Self::List(_) => "a list",
            Self::Record(_) => "a record",
            Self::Map(_) => "a map",
        }
    }

    /// Appends the value to a row, as a field of this type.
    pub fn write(self, row: &mut RowWriter<'_>, field_type: &FieldType) {
        match (self, field_type) {
            (Self::Null, _) => row.none(),
            (value, FieldType::Optional(inner)) => {
                row.some();
                value.write(row, inner);
            }
            (Self::Bool(value), _) => row.bool(value),
            (Self::Signed(value), _) => row.integer(value.to_le_bytes(), field_type),
            (Self::Unsigned(value), _) => row.integer(value.to_le_bytes(), field_type),
            (Self::F32(value), _) => row.f32(value),
            (Self::F64(value), _) => row.f64(value),
            (Self::Char(value), _) => row.char(value),
            (Self::String(value), _) => row.str(value),
            (Self::Bytes(value), _) => row.bytes(value),
            (Self::Enum(value), _) => row.variant(value.number),
            (Self::List(list) | Self::Map(MapRef(list)), _) => {
                row.list(list.len());
                list.iter().for_each(|item| item.write(row, list.item_type));
            }
            (Self::Record(record), _) => record.write(row),
        }
    }
}

impl Column {
    /// Returns the value in this row; `None` beyond the end.
    ///
    /// `field_type` must be the type of the column; for another type the result is also `None`.
    pub fn value<'a>(
        &'a self,
        row: usize,
        field_type: &'a FieldType,
        strings: &'a StringTable,
    ) -> Option<ValueRef<'a>> {
        Some(match (self, field_type) {
            (Self::Bool(values), _) => ValueRef::Bool(*values.get(row)?),
            (Self::Bytes(column), _) => {
                let (from, to) = span(&column.ends, row)?;
                ValueRef::Bytes(column.data.get(from..to)?)
            }
            (Self::Char(values), _) => ValueRef::Char(*values.get(row)?),
            (Self::Enum(values), FieldType::Enum(enum_type)) => ValueRef::Enum(EnumRef {
                number: *values.get(row)?,
                enum_type,
            }),
            (Self::F32(values), _) => ValueRef::F32(f32::from_bits(*values.get(row)?)),
            (Self::F64(values), _) => ValueRef::F64(f64::from_bits(*values.get(row)?)),
            (Self::List(column), FieldType::List(item_type) | FieldType::Map(item_type)) => {
                let (from, to) = span(&column.ends, row)?;
                let items = Items::Columnar {
                    column: &column.items,
                    strings,
                    from,
                    to,
                };
                ValueRef::of_items(ListRef { item_type, items }, field_type)
            }
            (Self::Optional(column), FieldType::Optional(inner)) => {
                match *column.positions.get(row)? {
                    OptionalColumn::ABSENT => ValueRef::Null,
                    at => return column.present.value(to_usize(at), inner, strings),
                }
            }
            (Self::Record(column), FieldType::Record(schema)) if row < column.len => {
                ValueRef::Record(RecordFields::columnar(schema, &column.fields, strings, row))
            }
            (Self::Signed(values), _) => ValueRef::Signed(*values.get(row)?),
            (Self::String(values), _) => ValueRef::String(strings.get(*values.get(row)?)?),
            (Self::Unsigned(values), _) => ValueRef::Unsigned(*values.get(row)?),
            _ => return None,
        })
    }
}

/// A variant of an enum, with its type.
#[derive(Debug, Clone, Copy)]
pub struct EnumRef<'a> {
    /// The variant's number in the writer's type.
    pub number: u32,
    /// The writer's type.
    pub enum_type: &'a Arc<EnumType>,
}

impl<'a> EnumRef<'a> {
    /// The variant's name.
    pub fn name(&self) -> Option<&'a str> {
        self.enum_type.variant(self.number)
    }
}

/// A list inside a record.
#[derive(Debug, Clone, Copy)]
pub struct ListRef<'a> {
    item_type: &'a FieldType,
    items: Items<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Items<'a> {
    Columnar {
        column: &'a Column,
        strings: &'a StringTable,
        from: usize,
        to: usize,
    },
    Values(&'a [Value]),
}

impl<'a> ListRef<'a> {
    /// The type of its items.
    pub fn item_type(&self) -> &'a FieldType {
        self.item_type
    }

    /// Returns the number of its items.
    pub fn len(&self) -> usize {
        match self.items {
            Items::Columnar { from, to, .. } => (from..to).len(),
            Items::Values(values) => values.len(),
        }
    }

    /// Whether it has no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at this position.
    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        match self.items {
            Items::Columnar {
                column,
                strings,
                from,
                to,
            } => {
                let row = from.checked_add(index).filter(|row| *row < to)?;
                column.value(row, self.item_type, strings)
            }
            Items::Values(values) => ValueRef::of(values.get(index)?, self.item_type),
        }
    }

    /// The items in order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

/// A map inside a record.
#[derive(Debug, Clone, Copy)]
pub struct MapRef<'a>(ListRef<'a>);

impl<'a> MapRef<'a> {
    /// Returns the number of its entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this key. If the key comes twice, the last one counts.
    pub fn get(self, key: &str) -> Option<ValueRef<'a>> {
        let entries = self.iter().filter(|(known, _)| *known == key);
        entries.last().map(|(_, value)| value)
    }

    /// Keys and values, in the writer's order. A key may come twice.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        self.0.iter().filter_map(|entry| match entry {
            ValueRef::Record(entry) => match (entry.get(0)?, entry.get(1)?) {
                (ValueRef::String(key), value) => Some((key, value)),
                _ => None,
            },
            _ => None,
        })
    }
}

/// The fields of one record: a record of a batch, a dynamic one, or one nested in another.
#[derive(Debug, Clone, Copy)]
pub struct RecordFields<'a> {
    schema: &'a Arc<Schema>,
    fields: Fields<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Columnar {
        columns: &'a [Column],
        strings: &'a StringTable,
        row: usize,
    },
    Values(&'a [Value]),
}

impl<'a> RecordFields<'a> {
    pub(super) fn columnar(
        schema: &'a Arc<Schema>,
        columns: &'a [Column],
        strings: &'a StringTable,
        row: usize,
    ) -> Self {
        Self {
            schema,
            fields: Fields::Columnar {
                columns,
                strings,
                row,
            },
        }
    }

    pub(super) fn owned(schema: &'a Arc<Schema>, values: &'a [Value]) -> Self {
        Self {
            schema,
            fields: Fields::Values(values),
        }
    }

    /// The record's type.
    pub fn schema(&self) -> &'a Arc<Schema> {
        self.schema
    }

    /// The value of the field at this position.
    #[inline]
    pub fn get(&self, position: usize) -> Option<ValueRef<'a>> {
        // Values that need no type are returned at once: most fields are numbers and text.
        if let Fields::Columnar {
            columns,
            strings,
            row,
        } = self.fields
        {
            match columns.get(position)? {
                Column::Signed(values) => return values.get(row).copied().map(ValueRef::Signed),
                Column::String(ids) => return strings.get(*ids.get(row)?).map(ValueRef::String),
                Column::Unsigned(values) => {
                    return values.get(row).copied().map(ValueRef::Unsigned);
                }
                _ => {}
            }
        }
        self.get_by_type(position)
    }

    /// The value of a field of any type at this position.
    fn get_by_type(&self, position: usize) -> Option<ValueRef<'a>> {
        let field = self.schema.fields().get(position)?;
        match self.fields {
            Fields::Columnar {
                columns,
                strings,
                row,
            } => columns
                .get(position)?
                .value(row, field.field_type(), strings),
            Fields::Values(values) => ValueRef::of(values.get(position)?, field.field_type()),
        }
    }

    /// The value of the field with this name.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.get(self.schema.position(name)?)
    }

    /// Names and values in order.
    pub fn values(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let fields = self.schema.fields().iter().enumerate();
        fields.filter_map(move |(index, field)| Some((field.name(), self.get(index)?)))
    }

    /// Appends the fields to a row of the record's own type.
    pub fn write(self, row: &mut RowWriter<'_>) {
        for (index, field) in self.schema.fields().iter().enumerate() {
            if let Some(value) = self.get(index) {
                value.write(row, field.field_type());
            }
        }
    }
}

/// One record of a batch, or a dynamic one: its fields and its timestamp.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    timestamp: i64,
    fields: RecordFields<'a>,
}

impl<'a> RecordRef<'a> {
    pub(super) fn new(timestamp: i64, fields: RecordFields<'a>) -> Self {
        Self { timestamp, fields }
    }

    /// The name of the record's type.
    pub fn type_name(&self) -> &'a str {
        self.fields.schema.name()
    }

    /// The record's type.
    pub fn schema(&self) -> &'a Arc<Schema> {
        self.fields.schema
    }

    /// Returns the logging time, in nanoseconds since the Unix epoch, if it is known.
    pub fn timestamp(&self) -> Option<i64> {
        (self.timestamp != super::NO_TIMESTAMP).then_some(self.timestamp)
    }

    /// The record's fields.
    pub fn fields(&self) -> RecordFields<'a> {
        self.fields
    }

    /// The value of the field with this name.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.fields.field(name)
    }
}
