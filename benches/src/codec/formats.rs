//! The formats: each from the records of a chunk to bytes, and back.

mod baler;
mod otlp;
mod rows;

pub(super) use baler::Baler;
pub(super) use otlp::Otlp;
pub(super) use rows::{Avro, Postcard};

use super::piece::Piece;
use crate::Failure;

/// A format of self-contained chunks: neither direction uses data of earlier chunks.
pub(super) trait Format {
    /// Appends the records as a chunk.
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Decodes a chunk in the way of its library, to columns or rows; returns the number of
    /// records.
    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure>;

    /// Decodes a chunk to rows with borrowed strings, and returns their number; `None` if
    /// [`decode`](Self::decode) yields rows already.
    fn rows(&mut self, _chunk: &[u8]) -> Result<Option<usize>, Failure> {
        Ok(None)
    }

    /// Whether a chunk has the records of this piece, in their order.
    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure>;
}

fn cannot_encode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("encode a chunk")
}

fn cannot_decode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("decode a chunk")
}
