//! Writes a self-describing value.

use ::serde::ser::{self, Serialize, Serializer};

use super::{MAX_NESTING, VERSION, tag};
use crate::number::to_u64;
use crate::record::MAX_DEPTH;
use crate::record::serde::error::SerdeError;

/// Writes a value, preceded by the version.
pub(in crate::record::serde) fn encode<T: Serialize + ?Sized>(
    value: &T,
) -> Result<Vec<u8>, SerdeError> {
    let mut out = vec![VERSION];
    value.serialize(Writer {
        out: &mut out,
        depth: 0,
    })?;
    Ok(out)
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

impl<'a> Writer<'a> {
    fn tag(&mut self, tag: u8) {
        self.out.push(tag);
    }

    fn varint(&mut self, mut value: u128) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                self.out.push(low);
                return;
            }
            self.out.push(low | 0x80);
        }
    }

    fn bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.tag(tag);
        self.varint(to_u64(bytes.len()).into());
        self.out.extend_from_slice(bytes);
    }

    /// Opens a list or map. If it is the data of a variant, the variant's name comes first.
    fn open(mut self, variant: Option<&str>, tag: u8) -> Result<Compound<'a>, SerdeError> {
        if let Some(variant) = variant {
            self.tag(tag::MAP);
            self.bytes(tag::TEXT, variant.as_bytes());
        }
        self.tag(tag);
        let depth = self.deeper()?;
        Ok(Compound {
            out: self.out,
            depth,
            in_variant: variant.is_some(),
        })
    }

    fn deeper(&self) -> Result<usize, SerdeError> {
        // An opaque field may be as deep as a field can be.
        if self.depth >= MAX_NESTING + MAX_DEPTH {
            return Err(SerdeError::new(format!(
                "a value nests deeper than {MAX_NESTING} levels"
            )));
        }
        Ok(self.depth + 1)
    }
}

macro_rules! write_integer {
    ($($method:ident: $type:ty => $widest:ident;)*) => {$(
        fn $method(self, value: $type) -> Result<(), SerdeError> {
            self.$widest(value.into())
        }
    )*};
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = SerdeError;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    write_integer! {
        serialize_i8: i8 => serialize_i128;
        serialize_i16: i16 => serialize_i128;
        serialize_i32: i32 => serialize_i128;
        serialize_i64: i64 => serialize_i128;
        serialize_u8: u8 => serialize_u128;
        serialize_u16: u16 => serialize_u128;
        serialize_u32: u32 => serialize_u128;
        serialize_u64: u64 => serialize_u128;
    }

    fn serialize_i128(mut self, value: i128) -> Result<(), SerdeError> {
        self.tag(tag::SIGNED);
        self.varint(((value << 1) ^ (value >> 127)) as u128);
        Ok(())
    }

    fn serialize_u128(mut self, value: u128) -> Result<(), SerdeError> {
        self.tag(tag::UNSIGNED);
        self.varint(value);
        Ok(())
    }

    fn serialize_bool(mut self, value: bool) -> Result<(), SerdeError> {
        self.tag(if value { tag::TRUE } else { tag::FALSE });
        Ok(())
    }

    fn serialize_f32(mut self, value: f32) -> Result<(), SerdeError> {
        self.tag(tag::F32);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn serialize_f64(mut self, value: f64) -> Result<(), SerdeError> {
        self.tag(tag::F64);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn serialize_char(mut self, value: char) -> Result<(), SerdeError> {
        self.tag(tag::CHAR);
        self.varint(u32::from(value).into());
        Ok(())
    }

    fn serialize_str(mut self, value: &str) -> Result<(), SerdeError> {
        self.bytes(tag::TEXT, value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Result<(), SerdeError> {
        self.bytes(tag::BYTES, value);
        Ok(())
    }

    fn serialize_none(mut self) -> Result<(), SerdeError> {
        self.tag(tag::NONE);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Result<(), SerdeError> {
        self.tag(tag::SOME);
        self.depth = self.deeper()?;
        value.serialize(self)
    }

    fn serialize_unit(mut self) -> Result<(), SerdeError> {
        self.tag(tag::UNIT);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerdeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), SerdeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), SerdeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), SerdeError> {
        let mut map = self.open(None, tag::MAP)?;
        map.write(variant)?;
        map.write(value)?;
        map.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, SerdeError> {
        self.open(None, tag::LIST)
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, SerdeError> {
        self.open(None, tag::LIST)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, SerdeError> {
        self.open(None, tag::LIST)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, SerdeError> {
        self.open(Some(variant), tag::LIST)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, SerdeError> {
        self.open(None, tag::MAP)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, SerdeError> {
        self.open(None, tag::MAP)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, SerdeError> {
        self.open(Some(variant), tag::MAP)
    }
}

/// A list or map in progress.
struct Compound<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    in_variant: bool,
}

impl Compound<'_> {
    fn write<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        value.serialize(Writer {
            out: self.out,
            depth: self.depth,
        })
    }

    /// Adds an item of a list, or a field with its name.
    fn add<T: Serialize + ?Sized>(
        &mut self,
        name: Option<&'static str>,
        value: &T,
    ) -> Result<(), SerdeError> {
        let Some(name) = name else {
            return self.write(value);
        };
        self.write(name)?;
        self.write(value).map_err(|error| error.inside(name))
    }

    fn close(self) {
        self.out.push(tag::END);
        if self.in_variant {
            self.out.push(tag::END);
        }
    }
}

macro_rules! compound {
    ($($role:ident: $method:ident($($name:ident)?), $key:expr;)*) => {$(
        impl ser::$role for Compound<'_> {
            type Ok = ();
            type Error = SerdeError;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), SerdeError> {
                self.add($key, value)
            }

            fn end(self) -> Result<(), SerdeError> {
                self.close();
                Ok(())
            }
        }
    )*};
}

compound! {
    SerializeSeq: serialize_element(), None;
    SerializeTuple: serialize_element(), None;
    SerializeTupleStruct: serialize_field(), None;
    SerializeTupleVariant: serialize_field(), None;
    SerializeStruct: serialize_field(name), Some(name);
    SerializeStructVariant: serialize_field(name), Some(name);
}

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = SerdeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerdeError> {
        self.write(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerdeError> {
        self.write(value)
    }

    fn end(self) -> Result<(), SerdeError> {
        self.close();
        Ok(())
    }
}
