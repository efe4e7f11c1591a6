//! A value of serde's world becomes a value of a field's type.

use ::serde::ser::{self, Impossible, Serialize, Serializer};

use super::{SerdeError, opaque};
use crate::record::{FieldType, Schema, Value};

/// Makes a value of this type.
pub(super) fn to_value<T: Serialize + ?Sized>(
    value: &T,
    field_type: &FieldType,
) -> Result<Value, SerdeError> {
    match field_type {
        FieldType::Record(schema) if opaque::is_opaque(schema) => {
            opaque::encode(value).map(opaque::value)
        }
        _ => value.serialize(ValueSerializer(field_type)),
    }
}

struct ValueSerializer<'a>(&'a FieldType);

impl<'a> ValueSerializer<'a> {
    fn refuse(&self, what: &str) -> SerdeError {
        SerdeError::new(format!("{what} does not fit the type {}", self.0))
    }

    /// The value, if it is one of the type; a value stands for a present optional too.
    fn checked(&self, value: Value) -> Result<Value, SerdeError> {
        if value.fits(self.0) {
            Ok(value)
        } else {
            Err(self.refuse(value.kind()))
        }
    }

    fn integer(&self, value: i128) -> Result<Value, SerdeError> {
        use FieldType as T;
        let fitting = match self.0 {
            T::I8 | T::I16 | T::I32 | T::I64 => i64::try_from(value).ok().map(Value::Signed),
            T::U8 | T::U16 | T::U32 | T::U64 => u64::try_from(value).ok().map(Value::Unsigned),
            _ => None,
        };
        fitting
            .filter(|fitting| fitting.fits(self.0))
            .ok_or_else(|| self.refuse(&format!("the integer {value}")))
    }

    fn items(&self) -> Result<Items<'a>, SerdeError> {
        match self.0 {
            FieldType::List(item_type) => Ok(Items::List {
                item_type,
                values: Vec::new(),
            }),
            FieldType::Record(schema) => Ok(Items::Tuple {
                schema,
                values: Vec::new(),
            }),
            _ => Err(self.refuse("a list")),
        }
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<Value, SerdeError> {
            self.integer(value.into())
        }
    )*};
}

impl<'a> Serializer for ValueSerializer<'a> {
    type Ok = Value;
    type Error = SerdeError;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Impossible<Value, SerdeError>;
    type SerializeMap = Impossible<Value, SerdeError>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Impossible<Value, SerdeError>;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_bool(self, value: bool) -> Result<Value, SerdeError> {
        self.checked(value.into())
    }

    fn serialize_f32(self, value: f32) -> Result<Value, SerdeError> {
        match self.0 {
            FieldType::F64 => Ok(Value::F64(value.into())),
            _ => self.checked(value.into()),
        }
    }

    fn serialize_f64(self, value: f64) -> Result<Value, SerdeError> {
        self.checked(value.into())
    }

    fn serialize_char(self, value: char) -> Result<Value, SerdeError> {
        match self.0 {
            FieldType::String => Ok(value.to_string().into()),
            _ => self.checked(value.into()),
        }
    }

    fn serialize_str(self, value: &str) -> Result<Value, SerdeError> {
        self.checked(value.into())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Value, SerdeError> {
        self.checked(bytes::Bytes::copy_from_slice(value).into())
    }

    fn serialize_none(self) -> Result<Value, SerdeError> {
        self.checked(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, SerdeError> {
        match self.0 {
            FieldType::Optional(inner) => to_value(value, inner),
            _ => value.serialize(self),
        }
    }

    fn serialize_unit(self) -> Result<Value, SerdeError> {
        Err(self.refuse("unit"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, SerdeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, SerdeError> {
        let FieldType::Enum(enum_type) = self.0 else {
            return Err(self.refuse(&format!("the variant {variant}")));
        };
        enum_type
            .variants()
            .iter()
            .position(|known| &**known == variant)
            .and_then(|position| u32::try_from(position).ok())
            .map(Value::Variant)
            .ok_or_else(|| self.refuse(&format!("the variant {variant}")))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, SerdeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<Value, SerdeError> {
        Err(self.refuse(&format!("the variant {variant} with data")))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, SerdeError> {
        self.items()
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, SerdeError> {
        self.items()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, SerdeError> {
        self.items()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Impossible<Value, SerdeError>, SerdeError> {
        Err(self.refuse(&format!("the variant {variant} with data")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Impossible<Value, SerdeError>, SerdeError> {
        Err(self.refuse("a map"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, SerdeError> {
        match self.0 {
            FieldType::Record(schema) => Ok(Members {
                schema,
                values: vec![None; schema.fields().len()],
            }),
            _ => Err(self.refuse(&format!("the struct {name}"))),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Impossible<Value, SerdeError>, SerdeError> {
        Err(self.refuse(&format!("the variant {variant} with data")))
    }
}

/// The items of a list, or of a tuple, which is a record.
enum Items<'a> {
    List {
        item_type: &'a FieldType,
        values: Vec<Value>,
    },
    Tuple {
        schema: &'a Schema,
        values: Vec<Value>,
    },
}

impl Items<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        match self {
            Self::List { item_type, values } => values.push(to_value(value, item_type)?),
            Self::Tuple { schema, values } => {
                let field = schema.fields().get(values.len()).ok_or_else(|| {
                    SerdeError::new(format!("more items than {} has", schema.name()))
                })?;
                let value = to_value(value, field.field_type());
                values.push(value.map_err(|error| error.inside(field.name()))?);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Value, SerdeError> {
        match self {
            Self::List { values, .. } => Ok(Value::List(values)),
            Self::Tuple { schema, values } if values.len() == schema.fields().len() => {
                Ok(Value::Record(values))
            }
            Self::Tuple { schema, .. } => Err(SerdeError::new(format!(
                "fewer items than {} has",
                schema.name()
            ))),
        }
    }
}

macro_rules! items {
    ($($role:ident: $method:ident;)*) => {$(
        impl ser::$role for Items<'_> {
            type Ok = Value;
            type Error = SerdeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
                self.push(value)
            }

            fn end(self) -> Result<Value, SerdeError> {
                self.finish()
            }
        }
    )*};
}

items! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
}

/// The fields of a struct.
struct Members<'a> {
    schema: &'a Schema,
    values: Vec<Option<Value>>,
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = Value;
    type Error = SerdeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SerdeError> {
        let position = self.schema.position(name);
        let field = position.and_then(|at| self.schema.fields().get(at));
        let slot = position.and_then(|at| self.values.get_mut(at));
        let (Some(field), Some(slot)) = (field, slot) else {
            return Err(SerdeError::new(
                "is written by the type, but not asked for when it is read",
            )
            .inside(name));
        };
        let value = to_value(value, field.field_type());
        *slot = Some(value.map_err(|error| error.inside(name))?);
        Ok(())
    }

    fn end(self) -> Result<Value, SerdeError> {
        let fields = self.schema.fields().iter();
        let values = self.values.into_iter().zip(fields).map(|(value, field)| {
            match (value, field.field_type()) {
                (Some(value), _) => Ok(value),
                (None, FieldType::Optional(_)) => Ok(Value::Null),
                (None, FieldType::List(_)) => Ok(Value::List(Vec::new())),
                (None, FieldType::Record(schema)) if opaque::is_opaque(schema) => {
                    Ok(opaque::value(Vec::new()))
                }
                (None, _) => Err(SerdeError::new(
                    "was skipped, which only options, lists and opaque fields can be",
                )
                .inside(field.name())),
            }
        });
        values.collect::<Result<_, _>>().map(Value::Record)
    }
}
