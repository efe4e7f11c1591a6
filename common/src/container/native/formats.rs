//! The formats of a body, by their number in the prefix.

use super::columnar::{self, CallBlock, IntScratch};
use super::head::Head;
use crate::container::decoder::Layout;
use crate::container::error::DecodeError;
use crate::container::limits::Limits;
use crate::record::RecordBatch;

/// How bodies of one format are read.
pub(super) struct BodyFormat {
    /// The number in the prefix.
    pub(super) number: u8,
    /// The name in tables and JSON.
    pub(super) name: &'static str,
    /// Decodes a decompressed body.
    pub(super) decode: fn(&[u8], &mut BodyContext<'_>) -> Result<RecordBatch, DecodeError>,
}

/// What a body's decoder works with.
pub(super) struct BodyContext<'a> {
    /// What the header says: counts and clock.
    pub(super) head: &'a Head,
    /// What the decoder may spend.
    pub(super) limits: &'a Limits,
    /// Memory for columns while they are read, kept from chunk to chunk.
    pub(super) ints: &'a mut IntScratch,
    /// Memory for calls while they are followed, kept from chunk to chunk.
    pub(super) calls: &'a mut CallBlock,
    /// Filled when somebody wants to know where the bytes went.
    pub(super) layout: Option<&'a mut Layout>,
}

/// Every format; a new one is one more line here.
const FORMATS: [BodyFormat; 1] = [BodyFormat {
    number: columnar::NUMBER,
    name: "columnar",
    decode: columnar::decode,
}];

impl BodyFormat {
    /// The format with this number.
    pub(super) fn by_number(number: u8) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.number == number)
    }
}
