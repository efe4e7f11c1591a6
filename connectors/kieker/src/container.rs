//! Kieker's container, KIKA/DFLT, bit for bit.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `KIKA` |
//! | 4 | 4 | `DFLT` |
//! | 8 | R | the records, one after the other |
//! | 8 + R | | varint: number of strings; for each a varint: length in bytes, then UTF-8 |
//! | length - 4 | 4 | R, big-endian |
//!
//! A record is the id of its class name (i32), its logging timestamp (i64, -1 for none), and its
//! fields in order, everything big-endian: bool 1 byte, integers and floating point their width,
//! char one UTF-16 code unit, string its id (i32), enum its ordinal (i32), list its length (i32)
//! and then its items.
//! Ids are dense from 0 in order of first use, class name before fields.
//!
//! The container has no version, checksum, schema, identity, sequence or compression. A record of
//! an unknown class cannot be skipped.
//!
//! Sources: Kieker's `BinarySerializer.java`, `AbstractContainerFormatSerializer.java`,
//! `SerializerStringRegistry.java` and `BinaryValueSerializer.java`; the container is introduced
//! in Knoche, section 3.

mod chunk;
mod class;
mod decode;
mod encode;
mod frame;
mod lengths;
mod registry;
mod stream;
mod stream_chunk;
mod stream_encoder;
#[cfg(test)]
mod tests;
mod time_unit;

pub use chunk::{ChunkString, KiekerChunk};
pub use decode::KiekerDeserializer;
pub use encode::KiekerSerializer;
pub use stream::{KiekerStream, StreamStep};
pub use stream_chunk::StreamChunk;
pub use stream_encoder::KiekerStreamEncoder;
pub use time_unit::TimeUnit;

use baler_common::container::{ChunkDecoder, ChunkExtent};
use baler_common::record::FieldType;

use crate::types::WELL_KNOWN_TYPES;

/// The container's magic.
const MAGIC: [u8; 4] = ChunkExtent::KIEKER_MAGIC;

/// The only body format.
const FORMAT: [u8; 4] = *b"DFLT";

/// Magic and format.
const HEAD_BYTES: usize = 8;

/// The length of the records.
const TRAILER_BYTES: usize = 4;

/// The memory of a decoder for each string, in bytes: its position, its id in the batch, the table
/// of the type with that name, and its place in the order of first use.
const STRING_MEMORY: usize =
    size_of::<&str>() + 2 * size_of::<u32>() + size_of::<(&mut u32, &&str)>();

/// Returns a decoder of native chunks, and of chunks in Kieker's container with Kieker's types.
pub fn decoder() -> ChunkDecoder {
    ChunkDecoder::default()
        .with_well_known_types(&WELL_KNOWN_TYPES)
        .with_deserializer(KiekerDeserializer::default())
}

/// Returns the least bytes of a value of this type. Only a list may have more.
///
/// Returns `None` if the container cannot hold the type. Kieker's lists are flat here: its
/// generated classes write several dimensions as one rectangle, but a list of lists need not be a
/// rectangle.
fn least_bytes(field_type: &FieldType) -> Option<usize> {
    match field_type {
        FieldType::Bool | FieldType::I8 => Some(1),
        FieldType::Char | FieldType::I16 => Some(2),
        FieldType::Enum(_) | FieldType::F32 | FieldType::I32 | FieldType::String => Some(4),
        FieldType::F64 | FieldType::I64 => Some(8),
        FieldType::List(inner) => match **inner {
            FieldType::List(_) => None,
            _ => least_bytes(inner).map(|_| 4),
        },
        _ => None,
    }
}

/// Returns the least bytes of items of a list. A number that no chunk has stays above all limits.
fn list_bytes(inner: &FieldType, items: usize) -> usize {
    items.saturating_mul(least_bytes(inner).unwrap_or(1))
}
