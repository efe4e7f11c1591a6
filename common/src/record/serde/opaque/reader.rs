//! Reads a self-describing value.

use ::serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use ::serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::{MAX_NESTING, VERSION, tag};
use crate::record::serde::error::SerdeError;

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

/// A tag with its value, but without the values inside.
#[derive(Debug, Clone, Copy)]
pub(in crate::record::serde) enum Token<'de> {
    Unit,
    None,
    /// The value follows.
    Some,
    Bool(bool),
    Signed(i128),
    Unsigned(u128),
    F32(f32),
    F64(f64),
    Char(char),
    Text(&'de str),
    Bytes(&'de [u8]),
    /// The items follow.
    List,
    /// Keys and values follow.
    Map,
}

impl Token<'_> {
    /// Returns the kind of the value, for messages.
    pub(in crate::record::serde) const fn kind(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::None | Self::Some => "an option",
            Self::Bool(_) => "a bool",
            Self::Signed(_) | Self::Unsigned(_) => "an integer",
            Self::F32(_) => "an f32",
            Self::F64(_) => "an f64",
            Self::Char(_) => "a char",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::List => "a list",
            Self::Map => "a map",
        }
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

    /// Whether the current list or map ends here.
    pub(in crate::record::serde) fn is_at_end(&self) -> bool {
        self.peek() == Some(tag::END)
    }

    /// Skips the next byte if it is this one; returns whether it was.
    pub(in crate::record::serde) fn skip(&mut self, tag: u8) -> bool {
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

    /// Reads the next tag with its value, but without the values inside.
    pub(in crate::record::serde) fn token(&mut self) -> Result<Token<'de>, SerdeError> {
        Ok(match self.byte()? {
            tag::UNIT => Token::Unit,
            tag::NONE => Token::None,
            tag::SOME => Token::Some,
            tag::FALSE => Token::Bool(false),
            tag::TRUE => Token::Bool(true),
            tag::SIGNED => {
                let bits = self.varint()?;
                Token::Signed(((bits >> 1) as i128) ^ -((bits & 1) as i128))
            }
            tag::UNSIGNED => Token::Unsigned(self.varint()?),
            tag::F32 => Token::F32(f32::from_le_bytes(self.array()?)),
            tag::F64 => Token::F64(f64::from_le_bytes(self.array()?)),
            tag::CHAR => {
                let code = u32::try_from(self.varint()?).ok();
                let value = code.and_then(char::from_u32).ok_or_else(|| {
                    SerdeError::new("an opaque field has a char that Unicode does not know")
                })?;
                Token::Char(value)
            }
            tag::TEXT => Token::Text(self.text()?),
            tag::BYTES => {
                let len = self.varint()?;
                Token::Bytes(self.take(len)?)
            }
            tag::LIST => Token::List,
            tag::MAP => Token::Map,
            other => {
                let reason = format!("an opaque field has the unknown tag {other}");
                return Err(SerdeError::new(reason));
            }
        })
    }

    /// Reads the content of the current value.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SerdeError>,
    ) -> Result<T, SerdeError> {
        if self.depth >= MAX_NESTING {
            return Err(SerdeError::new(format!(
                "a value nests deeper than {MAX_NESTING} levels"
            )));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Skips a value; returns it as an opaque field of its own.
    pub(in crate::record::serde) fn copy_value(&mut self) -> Result<Vec<u8>, SerdeError> {
        let depth = std::mem::take(&mut self.depth);
        let before = self.rest;
        IgnoredAny::deserialize(&mut *self)?;
        self.depth = depth;
        let (value, _) = before
            .split_at_checked(before.len() - self.rest.len())
            .ok_or_else(ends)?;
        Ok([&[VERSION], value].concat())
    }

    /// Reads a list or map; the visitor must have taken all of it.
    pub(in crate::record::serde) fn compound<T>(
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
            // A type that was an option before reads the value inside.
            self.skip(tag::SOME);
            self.deserialize_any(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.token()? {
            Token::Unit => visitor.visit_unit(),
            Token::None => visitor.visit_none(),
            Token::Some => self.nested(|reader| visitor.visit_some(reader)),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Signed(value) => match i64::try_from(value) {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_i128(value),
            },
            Token::Unsigned(value) => match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_u128(value),
            },
            Token::F32(value) => visitor.visit_f32(value),
            Token::F64(value) => visitor.visit_f64(value),
            Token::Char(value) => visitor.visit_char(value),
            Token::Text(value) => visitor.visit_borrowed_str(value),
            Token::Bytes(value) => visitor.visit_borrowed_bytes(value),
            Token::List => self.compound(|reader| visitor.visit_seq(Items(reader))),
            Token::Map => self.compound(|reader| visitor.visit_map(Items(reader))),
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
            // A type that became an option reads the value itself. This consumes nothing, so a type
            // that is an option of itself would recurse for ever. `nested` limits that.
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
            // A variant with data is the only entry of a map.
            return self
                .compound(|reader| visitor.visit_enum(MapAccessDeserializer::new(Items(reader))));
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
