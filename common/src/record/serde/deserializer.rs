//! Converts a record to a serde value.

use ::serde::de::value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer};
use ::serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use super::error::SerdeError;
use super::opaque;
use crate::record::{EnumRef, MAX_DEPTH, RecordFields, ValueRef};

/// The field of a record made from a type that is not a struct.
pub const VALUE_FIELD: &str = "serde.value";

/// A deserializer over the value of a field, and how often it was already read as an option.
pub(super) struct ValueDeserializer<'de>(ValueRef<'de>, usize);

impl<'de> ValueDeserializer<'de> {
    /// Creates one over a record, or over the only value of a record that was not made from a
    /// struct.
    pub(super) fn of_record(record: RecordFields<'de>) -> Self {
        let is_wrapped = record.schema().fields().len() == 1;
        Self(
            record
                .field(VALUE_FIELD)
                .filter(|_| is_wrapped)
                .unwrap_or(ValueRef::Record(record)),
            0,
        )
    }

    /// Visits a possible tuple: for a record, its values in order.
    fn visit_items<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            ValueRef::Record(record) => visitor.visit_seq(Fields::new(record)),
            ValueRef::Bytes(bytes) => {
                visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied()))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    /// Returns the content of an opaque field.
    fn opaque(&self) -> Option<&'de [u8]> {
        match self.0 {
            ValueRef::Record(record) => opaque::content(record),
            _ => None,
        }
    }
}

/// Passes the call to an opaque field's reader, or to a method for values of every kind.
macro_rules! of_any_kind {
    ($($method:ident($($name:ident: $argument:ty),*) => $otherwise:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($name: $argument,)*
            visitor: V,
        ) -> Result<V::Value, SerdeError> {
            match self.opaque() {
                Some(encoded) => {
                    opaque::decode(encoded, |reader| reader.$method($($name,)* visitor))
                }
                None => self.$otherwise(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueDeserializer<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0 {
            ValueRef::Null => visitor.visit_none(),
            ValueRef::Bool(value) => visitor.visit_bool(value),
            ValueRef::Signed(value) => visitor.visit_i64(value),
            ValueRef::Unsigned(value) => visitor.visit_u64(value),
            ValueRef::F32(value) => visitor.visit_f32(value),
            ValueRef::F64(value) => visitor.visit_f64(value),
            ValueRef::Char(value) => visitor.visit_char(value),
            ValueRef::String(value) => visitor.visit_borrowed_str(value),
            ValueRef::Bytes(value) => visitor.visit_borrowed_bytes(value),
            ValueRef::Enum(variant) => visitor.visit_borrowed_str(name_of(variant)?),
            ValueRef::List(list) => {
                let items = list.iter().map(|item| Self(item, 0));
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            ValueRef::Map(map) => {
                let entries = map.iter();
                visitor.visit_map(MapDeserializer::new(
                    entries.map(|(key, value)| (Self(ValueRef::String(key), 0), Self(value, 0))),
                ))
            }
            ValueRef::Record(record) => match opaque::content(record) {
                Some(encoded) => opaque::decode(encoded, |reader| reader.deserialize_any(visitor)),
                None => visitor.visit_map(Fields::new(record)),
            },
        }
    }

    of_any_kind! {
        deserialize_bool() => deserialize_any;
        deserialize_i8() => deserialize_any;
        deserialize_i16() => deserialize_any;
        deserialize_i32() => deserialize_any;
        deserialize_i64() => deserialize_any;
        deserialize_i128() => deserialize_any;
        deserialize_u8() => deserialize_any;
        deserialize_u16() => deserialize_any;
        deserialize_u32() => deserialize_any;
        deserialize_u64() => deserialize_any;
        deserialize_u128() => deserialize_any;
        deserialize_f32() => deserialize_any;
        deserialize_f64() => deserialize_any;
        deserialize_char() => deserialize_any;
        deserialize_str() => deserialize_any;
        deserialize_string() => deserialize_any;
        deserialize_bytes() => deserialize_any;
        deserialize_byte_buf() => deserialize_any;
        deserialize_unit() => deserialize_any;
        deserialize_unit_struct(name: &'static str) => deserialize_any;
        deserialize_map() => deserialize_any;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) => deserialize_any;
        deserialize_identifier() => deserialize_any;
        deserialize_seq() => visit_items;
        deserialize_tuple(len: usize) => visit_items;
        deserialize_tuple_struct(name: &'static str, len: usize) => visit_items;
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        if let Some(encoded) = self.opaque() {
            return opaque::decode(encoded, |reader| reader.deserialize_option(visitor));
        }
        match self.0 {
            ValueRef::Null => visitor.visit_none(),
            // An option consumes no part of the value, so a type that is an option of itself would
            // recurse for ever.
            _ if self.1 >= MAX_DEPTH => Err(SerdeError::new(format!(
                "a value is asked for as an option more than {MAX_DEPTH} times"
            ))),
            _ => visitor.visit_some(Self(self.0, self.1 + 1)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        match self.0 {
            ValueRef::Enum(variant) => {
                visitor.visit_enum(BorrowedStrDeserializer::new(name_of(variant)?))
            }
            ValueRef::String(variant) => visitor.visit_enum(BorrowedStrDeserializer::new(variant)),
            ValueRef::Record(record) => match opaque::content(record) {
                Some(encoded) => opaque::decode(encoded, |reader| {
                    reader.deserialize_enum(name, variants, visitor)
                }),
                None => Err(SerdeError::new(format!("a record is no variant of {name}"))),
            },
            other => Err(SerdeError::new(format!(
                "{} is no variant of {name}",
                other.kind()
            ))),
        }
    }
}

impl<'de> IntoDeserializer<'de, SerdeError> for ValueDeserializer<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn name_of(variant: EnumRef<'_>) -> Result<&str, SerdeError> {
    variant.name().ok_or_else(|| {
        SerdeError::new(format!(
            "{} has no variant {}",
            variant.enum_type.name(),
            variant.number
        ))
    })
}

/// The fields of a record: by name, or in order for a tuple.
struct Fields<'de> {
    record: RecordFields<'de>,
    next: usize,
    current: Option<(&'de str, ValueRef<'de>)>,
}

impl<'de> Fields<'de> {
    fn new(record: RecordFields<'de>) -> Self {
        Self {
            record,
            next: 0,
            current: None,
        }
    }

    /// Returns the next field that was not skipped when the record was made.
    fn next_field(&mut self) -> Option<(&'de str, ValueRef<'de>)> {
        loop {
            let field = self.record.schema().fields().get(self.next)?;
            let value = self.record.get(self.next)?;
            self.next += 1;
            let was_skipped = match value {
                ValueRef::Record(inner) => opaque::content(inner).is_some_and(<[u8]>::is_empty),
                _ => false,
            };
            if !was_skipped {
                return Some((field.name(), value));
            }
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = SerdeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SerdeError> {
        self.current = self.next_field();
        match self.current {
            None => Ok(None),
            Some((name, _)) => seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, SerdeError> {
        let Some((name, value)) = self.current.take() else {
            return Err(SerdeError::new("a value was asked for before its name"));
        };
        seed.deserialize(ValueDeserializer(value, 0))
            .map_err(|error| error.inside(name))
    }
}

impl<'de> SeqAccess<'de> for Fields<'de> {
    type Error = SerdeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SerdeError> {
        self.current = self.next_field();
        match self.current {
            None => Ok(None),
            Some(_) => self.next_value_seed(seed).map(Some),
        }
    }
}
