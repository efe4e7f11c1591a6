//! The formats: each from the records of a chunk to bytes, and back.

mod arrow;
mod avro;
mod baler;
mod json;
mod otlp;
mod postcard;

use baler_rig::recording::PlainCall;

pub(super) use self::postcard::Postcard;
pub(super) use arrow::Arrow;
pub(super) use avro::Avro;
pub(super) use baler::Baler;
pub(super) use json::Json;
pub(super) use otlp::Otlp;

use super::piece::{Inline, Piece, TableRow};
use crate::failure::Failure;

/// Chunks that stand for themselves: nothing is known from the chunk before, in either direction.
pub(super) trait Format {
    /// What its decoder yields.
    type Decoded<'a>: Calls
    where
        Self: 'a;

    /// Appends the records as a chunk.
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// The records of a chunk.
    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Self::Decoded<'a>, Failure>;

    /// As [`Format::encode`], from records as an application emits them; `false` where that is
    /// not measured.
    fn encode_records(&mut self, _piece: &Piece<'_>, _out: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// How many rows a chunk holds, each of them made and looked at; `None` where [`Format::decode`]
    /// yields rows, or rows are not measured.
    fn decode_rows(&mut self, _chunk: &[u8]) -> Result<Option<usize>, Failure> {
        Ok(None)
    }
}

/// Decoded calls, in order.
pub(super) trait Calls {
    /// How many there are.
    fn count(&self) -> usize;

    /// Shows each of them.
    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure>;
}

/// Rows behind a string table.
pub(super) struct DecodedTable<'a> {
    strings: Vec<&'a str>,
    rows: Vec<TableRow>,
}

impl Calls for DecodedTable<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        for row in &self.rows {
            see(row.plain(&self.strings).ok_or_else(no_string)?);
        }
        Ok(())
    }
}

impl Calls for Vec<Inline<'_>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        self.iter().for_each(|row| see(row.plain()));
        Ok(())
    }
}

/// As the case has it: rows behind a string table, or each with its strings.
pub(super) enum Rows<'a> {
    Tabled(DecodedTable<'a>),
    Inline(Vec<Inline<'a>>),
}

impl Calls for Rows<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Tabled(table) => table.count(),
            Self::Inline(rows) => rows.count(),
        }
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        match self {
            Self::Tabled(table) => table.each(see),
            Self::Inline(rows) => rows.each(see),
        }
    }
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
