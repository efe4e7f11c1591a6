//! Values that no schema can hold, in a self-describing encoding.
//!
//! JSON would lose distinctions of serde: NaN, bytes, 32-bit floats, maps whose keys are not
//! strings, an option inside an option. So serde's data model is written directly:
//!
//! | tag | value | followed by |
//! |---|---|---|
//! | 0 | unit | |
//! | 1 | none | |
//! | 2 | some | the value |
//! | 3, 4 | false, true | |
//! | 5 | signed integer | varint, zigzag |
//! | 6 | unsigned integer | varint |
//! | 7, 8 | f32, f64 | 4 or 8 bytes, little-endian |
//! | 9 | char | varint |
//! | 10, 11 | text, bytes | varint: length; then the bytes |
//! | 12 | list | the items; tag 14 |
//! | 13 | map | keys and values by turns; tag 14 |
//!
//! A varint is LEB128 of up to 128 bits. Structs are maps, and newtypes are their content. A
//! variant without data is its name. A variant with data is a map from its name to the data, as in
//! JSON. The first byte is the version of the encoding, 1. No byte at all is a field that was
//! skipped.

mod reader;
mod writer;

use bytes::Bytes;

use crate::record::derived::record_type;
use crate::record::{FieldType, Record, RecordFields, Schema, Value, ValueRef};

pub(super) use reader::{Reader, Token, decode};
pub(super) use writer::encode;

/// The name of the record type of an opaque field.
pub const OPAQUE_NAME: &str = "baler.serde.Opaque";

const VERSION: u8 = 1;

/// The deepest nesting of values, so that neither side runs out of stack.
const MAX_NESTING: usize = 128;

#[derive(Record)]
#[record(name = "baler.serde.Opaque")]
struct Opaque {
    encoded: Bytes,
}

/// The tags.
pub(super) mod tag {
    pub(super) const UNIT: u8 = 0;
    pub(in crate::record::serde) const NONE: u8 = 1;
    pub(in crate::record::serde) const SOME: u8 = 2;
    pub(super) const FALSE: u8 = 3;
    pub(super) const TRUE: u8 = 4;
    pub(super) const SIGNED: u8 = 5;
    pub(super) const UNSIGNED: u8 = 6;
    pub(super) const F32: u8 = 7;
    pub(super) const F64: u8 = 8;
    pub(super) const CHAR: u8 = 9;
    pub(super) const TEXT: u8 = 10;
    pub(super) const BYTES: u8 = 11;
    pub(super) const LIST: u8 = 12;
    pub(super) const MAP: u8 = 13;
    pub(super) const END: u8 = 14;
}

/// The type of an opaque field.
pub(super) fn field_type() -> FieldType {
    record_type::<Opaque>()
}

/// Whether a field of this type is opaque.
pub(super) fn is_opaque(schema: &Schema) -> bool {
    schema == &**Opaque::schema()
}

/// The value of an opaque field with this content.
pub(super) fn value(encoded: Vec<u8>) -> Value {
    Value::Record(vec![Value::Bytes(encoded.into())])
}

/// Returns the content, if the value is an opaque field's.
pub(super) fn content(record: RecordFields<'_>) -> Option<&[u8]> {
    if !is_opaque(record.schema()) {
        return None;
    }
    match record.get(0) {
        Some(ValueRef::Bytes(encoded)) => Some(encoded),
        _ => None,
    }
}
