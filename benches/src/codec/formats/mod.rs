//! The formats: each from the records of a chunk to bytes, and back.

mod arrow;
mod baler;
mod otlp;
mod rows;

pub(super) use arrow::Arrow;
pub(super) use baler::Baler;
pub(super) use otlp::Otlp;
pub(super) use rows::{Avro, Json, Postcard};

use super::piece::Piece;
use super::recording::PlainCall;
use crate::Failure;

/// Self-contained chunks: nothing is known from the chunk before, in either direction.
pub(super) trait Format {
    /// Appends the records as a chunk.
    fn encode(&mut self, piece: &Piece, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Decodes a chunk as its library does, to columns or rows; yields the number of records.
    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure>;

    /// Passes each record of a chunk to `see`, in order.
    fn each(&mut self, chunk: &[u8], see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure>;
}

fn no_string() -> Failure {
    Failure::new("a record names a string that there is not")
}

fn cannot_encode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("encode a chunk")
}

fn cannot_decode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("decode a chunk")
}
