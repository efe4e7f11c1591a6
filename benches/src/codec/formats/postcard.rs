//! Postcard: integers of variable length, no names.

use std::mem;

use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Deserialize, Serialize, Serializer};

use super::super::piece::{Inline, Piece, TableRow};
use super::{DecodedTable, Format, Rows, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

/// With a string table before the rows, or with strings in the rows.
pub(in super::super) struct Postcard {
    pub(in super::super) string_table: bool,
}

/// As [`Tabled`](super::super::piece::Tabled) is written.
#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow)]
    strings: Vec<&'a str>,
    rows: Vec<TableRow>,
}

/// The rows of a piece, each with its strings, made while they are written.
struct InlineRows<'a>(&'a Piece<'a>);

impl Serialize for InlineRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.plain();
        let mut sequence = serializer.serialize_seq(Some(rows.len()))?;
        for row in rows {
            let row = row.ok_or_else(|| S::Error::custom(no_string()))?;
            sequence.serialize_element(&Inline::of(row))?;
        }
        sequence.end()
    }
}

impl Format for Postcard {
    type Decoded<'a> = Rows<'a>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let begun = mem::take(out);
        let written = match self.string_table {
            true => postcard::to_extend(&piece.table, begun),
            false => postcard::to_extend(&InlineRows(piece), begun),
        };
        *out = written.map_err(cannot_encode())?;
        Ok(())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Rows<'a>, Failure> {
        if !self.string_table {
            let rows = postcard::from_bytes(chunk).map_err(cannot_decode())?;
            return Ok(Rows::Inline(rows));
        }
        let Table { strings, rows } = postcard::from_bytes(chunk).map_err(cannot_decode())?;
        Ok(Rows::Tabled(DecodedTable { strings, rows }))
    }
}
