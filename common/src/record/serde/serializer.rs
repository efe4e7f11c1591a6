//! Converts a serde value to a value of a field's type.
//!
//! value -> the encoding of opaque fields, which keeps all of serde's data -> value of the type.

use ::serde::Serialize;
use bytes::Bytes;

use super::error::SerdeError;
use super::opaque::{self, Reader, Token, tag};
use crate::record::{FieldType, Schema, Value};

/// Makes a value of this type.
pub(super) fn to_value<T: Serialize + ?Sized>(
    value: &T,
    field_type: &FieldType,
) -> Result<Value, SerdeError> {
    let encoded = opaque::encode(value)?;
    opaque::decode(&encoded, |reader| read_value(reader, field_type))
}

/// Reads the next value as one of this type.
fn read_value(reader: &mut Reader<'_>, field_type: &FieldType) -> Result<Value, SerdeError> {
    use FieldType as T;
    match field_type {
        T::Record(schema) if opaque::is_opaque(schema) => {
            return reader.copy_value().map(opaque::value);
        }
        T::Optional(_) if reader.skip(tag::NONE) => return Ok(Value::Null),
        T::Optional(inner) => return read_value(reader, inner),
        _ => reader.skip(tag::SOME),
    };
    let value = match (reader.token()?, field_type) {
        (Token::Bool(value), _) => value.into(),
        (Token::Signed(value), _) => integer(value, field_type)?,
        (Token::Unsigned(value), _) => match i128::try_from(value) {
            Ok(value) => integer(value, field_type)?,
            Err(_) => return Err(refuse(&format!("the integer {value}"), field_type)),
        },
        (Token::F32(value), T::F64) => Value::F64(value.into()),
        (Token::F32(value), _) => value.into(),
        (Token::F64(value), _) => value.into(),
        (Token::Char(value), T::String) => value.to_string().into(),
        (Token::Char(value), _) => value.into(),
        (Token::Text(name), T::Enum(enum_type)) => {
            let mut names = enum_type.variants().iter().zip(0..);
            let variant = names.find(|(known, _)| ***known == *name);
            let (_, number) =
                variant.ok_or_else(|| refuse(&format!("the variant {name}"), field_type))?;
            Value::Variant(number)
        }
        (Token::Text(value), _) => value.into(),
        (Token::Bytes(value), _) => Bytes::copy_from_slice(value).into(),
        (Token::List, T::List(item)) => {
            let mut values = Vec::new();
            reader.compound(|reader| {
                while !reader.is_at_end() {
                    values.push(read_value(reader, item)?);
                }
                Ok(())
            })?;
            return Ok(Value::List(values));
        }
        (Token::List, T::Record(schema)) => return read_tuple(reader, schema),
        (Token::Map, T::Record(schema)) => return read_struct(reader, schema),
        (Token::Map, T::Map(_)) => return read_map(reader, field_type),
        (token, _) => return Err(refuse(token.kind(), field_type)),
    };
    if value.fits(field_type) {
        Ok(value)
    } else {
        Err(refuse(value.kind(), field_type))
    }
}

fn refuse(what: &str, field_type: &FieldType) -> SerdeError {
    SerdeError::new(format!("{what} does not fit the type {field_type}"))
}

fn integer(value: i128, field_type: &FieldType) -> Result<Value, SerdeError> {
    use FieldType as T;
    let fitting = match field_type {
        T::I8 | T::I16 | T::I32 | T::I64 => i64::try_from(value).ok().map(Value::Signed),
        T::U8 | T::U16 | T::U32 | T::U64 => u64::try_from(value).ok().map(Value::Unsigned),
        _ => None,
    };
    fitting
        .filter(|fitting| fitting.fits(field_type))
        .ok_or_else(|| refuse(&format!("the integer {value}"), field_type))
}

/// Reads the items of a tuple as the fields of a record.
fn read_tuple(reader: &mut Reader<'_>, schema: &Schema) -> Result<Value, SerdeError> {
    let mut values = Vec::new();
    reader.compound(|reader| {
        for field in schema.fields() {
            if reader.is_at_end() {
                let name = schema.name();
                return Err(SerdeError::new(format!("fewer items than {name} has")));
            }
            let value = read_value(reader, field.field_type());
            values.push(value.map_err(|error| error.inside(field.name()))?);
        }
        Ok(())
    })?;
    Ok(Value::Record(values))
}

/// Reads the entries of a map.
fn read_map(reader: &mut Reader<'_>, field_type: &FieldType) -> Result<Value, SerdeError> {
    let value_type = field_type.map_value();
    let value_type = value_type.ok_or_else(|| refuse("a map without entries", field_type))?;
    let mut entries = Vec::new();
    reader.compound(|reader| {
        while !reader.is_at_end() {
            let key = match reader.token()? {
                Token::Text(key) => key,
                other => return Err(refuse(&format!("{} as a key", other.kind()), field_type)),
            };
            let value = read_value(reader, value_type);
            entries.push((key, value.map_err(|error| error.inside(key))?));
        }
        Ok(())
    })?;
    Ok(Value::map(entries))
}

/// Reads the fields of a struct by name. Skipped fields are absent, if their type allows that.
fn read_struct(reader: &mut Reader<'_>, schema: &Schema) -> Result<Value, SerdeError> {
    let mut values = vec![None; schema.fields().len()];
    reader.compound(|reader| {
        while !reader.is_at_end() {
            let Token::Text(name) = reader.token()? else {
                return Err(SerdeError::new("a map does not fit a record"));
            };
            let position = schema.position(name);
            let field = position.and_then(|at| schema.fields().get(at));
            let slot = position.and_then(|at| values.get_mut(at));
            let (Some(field), Some(slot)) = (field, slot) else {
                let reason = "is written by the type, but not asked for when it is read";
                return Err(SerdeError::new(reason).inside(name));
            };
            let value = read_value(reader, field.field_type());
            *slot = Some(value.map_err(|error| error.inside(name))?);
        }
        Ok(())
    })?;
    let values = values.into_iter().zip(schema.fields());
    let values = values.map(|(value, field)| match (value, field.field_type()) {
        (Some(value), _) => Ok(value),
        (None, FieldType::Optional(_)) => Ok(Value::Null),
        (None, FieldType::List(_) | FieldType::Map(_)) => Ok(Value::List(Vec::new())),
        (None, FieldType::Record(schema)) if opaque::is_opaque(schema) => {
            Ok(opaque::value(Vec::new()))
        }
        (None, _) => {
            let reason = "was skipped, which only options, lists, maps and opaque fields can be";
            Err(SerdeError::new(reason).inside(field.name()))
        }
    });
    values.collect::<Result<_, _>>().map(Value::Record)
}
