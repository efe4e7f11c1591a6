//! Records whose type is known only at run time.

use std::sync::Arc;

use super::NO_TIMESTAMP;
use super::reference::{RecordFields, RecordRef};
use super::schema::{FieldType, Role, Schema};
use super::value::Value;

/// A record together with its schema, for types known only at run time.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicRecord {
    schema: Arc<Schema>,
    timestamp: i64,
    values: Box<[Value]>,
}

/// A value does not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// There are too few or too many values.
    #[error("{record} has {fields} fields, but {values} values were given")]
    Count {
        /// The record type.
        record: Box<str>,
        /// The number of its fields.
        fields: usize,
        /// The number of given values.
        values: usize,
    },
    /// A value is of the wrong kind or out of range.
    #[error("{found} does not fit the field {field} of type {field_type}")]
    Type {
        /// The field.
        field: Box<str>,
        /// Its type.
        field_type: Box<str>,
        /// The value's kind.
        found: &'static str,
    },
}

impl ValueError {
    fn of(field: &str, field_type: &FieldType, found: &Value) -> Self {
        Self::Type {
            field: field.into(),
            field_type: field_type.to_string().into(),
            found: found.kind(),
        }
    }
}

impl DynamicRecord {
    /// Checks the values against the schema and builds the record.
    ///
    /// `timestamp` is the logging time, in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// A [`ValueError`] that names the field whose value does not fit.
    pub fn new(
        schema: Arc<Schema>,
        timestamp: Option<i64>,
        values: impl Into<Box<[Value]>>,
    ) -> Result<Self, ValueError> {
        let values = values.into();
        if values.len() != schema.fields().len() {
            return Err(ValueError::Count {
                record: schema.name().into(),
                fields: schema.fields().len(),
                values: values.len(),
            });
        }
        for (value, field) in values.iter().zip(schema.fields()) {
            if !value.fits(field.field_type()) {
                return Err(ValueError::of(field.name(), field.field_type(), value));
            }
        }
        Ok(Self {
            schema,
            timestamp: timestamp.unwrap_or(NO_TIMESTAMP),
            values,
        })
    }

    /// The record's type.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The values in the schema's order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Moves the record in time, so that its logging time becomes `unix_ns`.
    ///
    /// Its points in time ([`Role::UnixNanos`]) move with it, except in nested records. Points that
    /// are 0 or negative stand for an unknown time and stay. If the record has no logging time, all
    /// fields stay as they are.
    ///
    /// ```
    /// use baler_common::record::{DynamicRecord, Field, FieldType, Role, Schema, Value};
    ///
    /// let time = |name| Field::new(name, FieldType::I64).with_role(Role::UnixNanos);
    /// let fields = [time("begin"), time("end"), Field::new("id", FieldType::I64)];
    /// let schema = std::sync::Arc::new(Schema::new("Call", fields)?);
    /// let mut call = DynamicRecord::new(schema, Some(50), [-1, 50, 7].map(Value::Signed))?;
    /// call.move_to(1_000);
    /// assert_eq!(call.as_ref().timestamp(), Some(1_000));
    /// assert_eq!(call.values(), [-1, 1_000, 7].map(Value::Signed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn move_to(&mut self, unix_ns: i64) {
        let before = std::mem::replace(&mut self.timestamp, unix_ns);
        if before == NO_TIMESTAMP {
            return;
        }
        let by = unix_ns.saturating_sub(before);
        for (value, field) in self.values.iter_mut().zip(self.schema.fields()) {
            match value {
                Value::Signed(time) if field.role() == Role::UnixNanos && *time > 0 => {
                    *time = time.saturating_add(by);
                }
                Value::Unsigned(time) if field.role() == Role::UnixNanos && *time > 0 => {
                    *time = time.saturating_add_signed(by);
                }
                _ => {}
            }
        }
    }

    /// Returns the record in the form for filters and sinks.
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef::new(
            self.timestamp,
            RecordFields::owned(&self.schema, &self.values),
        )
    }
}

impl From<RecordRef<'_>> for DynamicRecord {
    fn from(record: RecordRef<'_>) -> Self {
        let values = record
            .fields()
            .values()
            .map(|(_, value)| value.to_value())
            .collect();
        Self {
            schema: Arc::clone(record.schema()),
            timestamp: record.timestamp().unwrap_or(NO_TIMESTAMP),
            values,
        }
    }
}
