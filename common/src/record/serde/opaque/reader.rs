//! Reading a value that describes itself.

use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::{MAX_NESTING, VERSION, tag};
use crate::record::serde::SerdeError;

/// Reads a value, from its version to its last byte.
pub(in crate::record::serde) fn decode<'de, T>(
    encoded: &'de [u8],
    read: impl FnOnce(&mut Reader<'de>) -> Result<T, SerdeError>,
) -> Result<T, SerdeError> {
    let mut reader = Reader {
        rest: encoded,
        depth: 0,
    };
    let version = reader.byte()?;
    if version != VERSION {
        return Err(SerdeError::new(format!(
            "an opaque field is of version {version}; {VERSION} is known"
        )));
    }
    let value = read(&mut reader)?;
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        let left = reader.rest.len();
        Err(SerdeError::new(format!(
            "an opaque field has {left} bytes after its value"
        )))
    }
}

/// A deserializer over an opaque field.
pub(in crate::record::serde) struct Reader<'de> {
    rest: &'de [u8],
    depth: usize,
}

impl<'de> Reader<'de> {
    fn take(&mut self, len: u128) -> Result<&'de [u8], SerdeError> {
        let len = usize::try_from(len).map_err(|_| ends())?;
        let (head, rest) = self.rest.split_at_checked(len).ok_or_else(ends)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SerdeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(ends)?;
        self.rest = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, SerdeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Steps over the next byte if it is this one.
    fn skip(&mut self, tag: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == tag => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn varint(&mut self) -> Result<u128, SerdeError> {
        let mut value = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(SerdeError::new(
            "an opaque field has a number above 128 bits",
        ))
    }

    fn text(&mut self) -> Result<&'de str, SerdeError> {
        let len = self.varint()?;
        std::str::from_utf8(self.take(len)?)
            .map_err(|error| SerdeError::new(format!("an opaque field has {error}")))
    }

    /// Reads what is inside the present value.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SerdeError>,
    ) -> Result<T, SerdeError> {
        if self.depth >= MAX_NESTING {
            return Err(SerdeError::new(format!(
                "an opaque field nests deeper than {MAX_NESTING} levels"
            )));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Reads a list or map; the visitor must have taken all of it.
    fn compound<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SerdeError>,
    ) -> Result<T, SerdeError> {
        let value = self.nested(read)?;
        if self.skip(tag::END) {
            Ok(value)
        } else {
            Err(SerdeError::new(
                "a list or map has more items than expected",
            ))
        }
    }
}

fn ends() -> SerdeError {
    SerdeError::new("an opaque field ends inside a value")
}

macro_rules! like_any {
    ($($method:ident($($argument:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $(_: $argument,)*
            visitor: V,
        ) -> Result<V::Value, SerdeError> {
            // A type that became one that is no option reads what is there.
            self.skip(tag::SOME);
            self.deserialize_any(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.byte()? {
            tag::UNIT => visitor.visit_unit(),
            tag::NONE => visitor.visit_none(),
            tag::SOME => self.nested(|reader| visitor.visit_some(reader)),
            tag::FALSE => visitor.visit_bool(false),
            tag::TRUE => visitor.visit_bool(true),
            tag::SIGNED => {
                let bits = self.varint()?;
                let value = (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed();
                match i64::try_from(value) {
                    Ok(value) => visitor.visit_i64(value),
                    Err(_) => visitor.visit_i128(value),
                }
            }
            tag::UNSIGNED => {
                let value = self.varint()?;
                match u64::try_from(value) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => visitor.visit_u128(value),
                }
            }
            tag::F32 => visitor.visit_f32(f32::from_le_bytes(self.array()?)),
            tag::F64 => visitor.visit_f64(f64::from_le_bytes(self.array()?)),
            tag::CHAR => {
                let code = u32::try_from(self.varint()?).ok();
                let value = code.and_then(char::from_u32).ok_or_else(|| {
                    SerdeError::new("an opaque field has a char that Unicode does not know")
                })?;
                visitor.visit_char(value)
            }
            tag::TEXT => visitor.visit_borrowed_str(self.text()?),
            tag::BYTES => {
                let len = self.varint()?;
                visitor.visit_borrowed_bytes(self.take(len)?)
            }
            tag::LIST => self.compound(|reader| visitor.visit_seq(Items(reader))),
            tag::MAP => self.compound(|reader| visitor.visit_map(Items(reader))),
            other => Err(SerdeError::new(format!(
                "an opaque field has the unknown tag {other}"
            ))),
        }
    }

    like_any! {
        deserialize_bool();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64();
        deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_char();
        deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf();
        deserialize_unit(); deserialize_unit_struct(&'static str);
        deserialize_seq(); deserialize_tuple(usize);
        deserialize_tuple_struct(&'static str, usize);
        deserialize_map(); deserialize_struct(&'static str, &'static [&'static str]);
        deserialize_identifier();
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.peek() {
            Some(tag::NONE | tag::SOME) => self.deserialize_any(visitor),
            // A type that became an option reads what is there. Nothing is taken off, so a type
            // that is an option of itself would ask forever: hence the bound.
            _ => self.nested(|reader| visitor.visit_some(reader)),
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
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.skip(tag::SOME);
        if self.skip(tag::MAP) {
            return self.compound(|reader| visitor.visit_enum(DataVariant(reader)));
        }
        if self.skip(tag::TEXT) {
            let name = self.text()?;
            return visitor.visit_enum(BorrowedStrDeserializer::new(name));
        }
        Err(SerdeError::new("an opaque field has no variant of an enum"))
    }
}

/// The items of a list, or the keys and values of a map.
struct Items<'a, 'de>(&'a mut Reader<'de>);

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = SerdeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SerdeError> {
        match self.0.peek() {
            Some(tag::END) => Ok(None),
            _ => seed.deserialize(&mut *self.0).map(Some),
        }
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = SerdeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SerdeError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, SerdeError> {
        seed.deserialize(&mut *self.0)
    }
}

/// A variant with data: the one entry of a map.
struct DataVariant<'a, 'de>(&'a mut Reader<'de>);

impl<'de> EnumAccess<'de> for DataVariant<'_, 'de> {
    type Error = SerdeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), SerdeError> {
        let name = seed.deserialize(&mut *self.0)?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for DataVariant<'_, 'de> {
    type Error = SerdeError;

    fn unit_variant(self) -> Result<(), SerdeError> {
        <()>::deserialize(self.0)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, SerdeError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.0.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        self.0.deserialize_struct("", fields, visitor)
    }
}
