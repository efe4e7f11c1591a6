//! A line of JSON a record.

use super::super::piece::{Inline, Piece};
use super::{Format, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

/// Written and read by `serde_json`.
pub(in super::super) struct Json;

impl Format for Json {
    type Decoded<'a> = Vec<Inline<'a>>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        for call in piece.plain() {
            let row = Inline::of(call.ok_or_else(no_string)?);
            serde_json::to_writer(&mut *out, &row).map_err(cannot_encode())?;
            out.push(b'\n');
        }
        Ok(())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Self::Decoded<'a>, Failure> {
        let lines = chunk.split(|byte| *byte == b'\n');
        let rows = lines
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice);
        rows.collect::<Result<_, _>>().map_err(cannot_decode())
    }
}
