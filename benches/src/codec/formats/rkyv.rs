//! Archives of rkyv: bytes that are read where they lie, once they are aligned and checked.

use std::borrow::Cow;
use std::mem;

use rkyv::rancor::Error;
use rkyv::util::AlignedVec;
use rkyv::with::InlineAsBox;
use rkyv::{Archive, Serialize};

use super::super::piece::{ArchivedTabled, Inline, Piece, TableRow};
use super::{DecodedTable, Format, Rows, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

/// A row that has its strings.
#[derive(Archive, Serialize)]
struct Row<'a> {
    #[rkyv(with = InlineAsBox)]
    operation_signature: &'a str,
    #[rkyv(with = InlineAsBox)]
    session_id: &'a str,
    trace_id: i64,
    tin: i64,
    tout: i64,
    #[rkyv(with = InlineAsBox)]
    hostname: &'a str,
    eoi: i32,
    ess: i32,
}

/// With a string table before the rows, or with strings in the rows.
pub(in super::super) struct Rkyv {
    string_table: bool,
    /// A chunk comes from anywhere; an archive must be aligned.
    aligned: AlignedVec,
}

impl Rkyv {
    pub(in super::super) fn new(string_table: bool) -> Self {
        Self {
            string_table,
            aligned: AlignedVec::new(),
        }
    }
}

impl Format for Rkyv {
    type Decoded<'a> = Rows<'a>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut writer = mem::take(&mut self.aligned);
        writer.clear();
        let written = if self.string_table {
            rkyv::api::high::to_bytes_in::<_, Error>(&piece.table, writer)
        } else {
            let rows = piece.plain().map(|call| {
                let call = call?;
                Some(Row {
                    operation_signature: call.operation_signature,
                    session_id: call.session_id,
                    trace_id: call.trace_id,
                    tin: call.tin,
                    tout: call.tout,
                    hostname: call.hostname,
                    eoi: call.eoi,
                    ess: call.ess,
                })
            });
            let rows: Vec<Row<'_>> = rows.collect::<Option<_>>().ok_or_else(no_string)?;
            rkyv::api::high::to_bytes_in::<_, Error>(&rows, writer)
        };
        self.aligned = written.map_err(cannot_encode())?;
        out.extend_from_slice(&self.aligned);
        Ok(())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Rows<'a>, Failure> {
        self.aligned.clear();
        self.aligned.extend_from_slice(chunk);
        if self.string_table {
            let table = rkyv::access::<ArchivedTabled, Error>(&self.aligned);
            let table = table.map_err(cannot_decode())?;
            let rows = rkyv::deserialize::<Vec<TableRow>, Error>(&table.rows);
            return Ok(Rows::Tabled(DecodedTable {
                strings: table.strings.iter().map(|text| text.as_str()).collect(),
                rows: rows.map_err(cannot_decode())?,
            }));
        }
        let rows = rkyv::access::<rkyv::vec::ArchivedVec<ArchivedRow<'_>>, Error>(&self.aligned);
        let rows = rows.map_err(cannot_decode())?.iter().map(|row| Inline {
            operation_signature: Cow::Borrowed(&*row.operation_signature),
            session_id: Cow::Borrowed(&*row.session_id),
            trace_id: row.trace_id.to_native(),
            tin: row.tin.to_native(),
            tout: row.tout.to_native(),
            hostname: Cow::Borrowed(&*row.hostname),
            eoi: row.eoi.to_native(),
            ess: row.ess.to_native(),
        });
        Ok(Rows::Inline(rows.collect()))
    }
}
