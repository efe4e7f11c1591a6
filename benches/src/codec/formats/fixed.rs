//! Fixed rows: numbers in little endian as wide as their type, texts behind their length, nothing
//! else.

use std::borrow::Cow;

use baler_rig::recording::PlainCall;

use super::super::piece::{Inline, Piece, TableRow};
use super::{DecodedTable, Format, Rows, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

/// Of a row that names its strings by position.
const ROW_BYTES: usize = 44;

/// With a string table before the rows, or with strings in the rows.
pub(in super::super) struct Fixed {
    pub(in super::super) string_table: bool,
}

impl Format for Fixed {
    type Decoded<'a> = Rows<'a>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        if self.string_table {
            write_length(piece.table.strings.len(), out)?;
            for text in &piece.table.strings {
                write_text(text, out)?;
            }
            write_length(piece.table.rows.len(), out)?;
            out.reserve(piece.table.rows.len() * ROW_BYTES);
            for row in &piece.table.rows {
                out.extend_from_slice(&row_bytes(row)?);
            }
            return Ok(());
        }
        write_length(piece.table.rows.len(), out)?;
        for call in piece.plain() {
            write_inline(&call.ok_or_else(no_string)?, out)?;
        }
        Ok(())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Rows<'a>, Failure> {
        let mut rest = chunk;
        let rows = match self.string_table {
            true => read_table(&mut rest).map(Rows::Tabled),
            false => read_inline(&mut rest).map(Rows::Inline),
        };
        let rows = rows.ok_or_else(|| cannot_decode()("it ends"))?;
        match rest.is_empty() {
            true => Ok(rows),
            false => Err(cannot_decode()("something follows")),
        }
    }
}

fn write_length(length: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let length = u32::try_from(length).map_err(cannot_encode())?;
    out.extend_from_slice(&length.to_le_bytes());
    Ok(())
}

fn write_text(text: &str, out: &mut Vec<u8>) -> Result<(), Failure> {
    write_length(text.len(), out)?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// All fields at once, so that one copy writes the row.
fn row_bytes(row: &TableRow) -> Result<[u8; ROW_BYTES], Failure> {
    let fields: [&[u8]; 8] = [
        &row.operation_signature.to_le_bytes(),
        &row.session_id.to_le_bytes(),
        &row.trace_id.to_le_bytes(),
        &row.tin.to_le_bytes(),
        &row.tout.to_le_bytes(),
        &row.hostname.to_le_bytes(),
        &row.eoi.to_le_bytes(),
        &row.ess.to_le_bytes(),
    ];
    let mut bytes = [0; ROW_BYTES];
    let mut rest = bytes.as_mut_slice();
    for field in fields {
        let Some((head, tail)) = rest.split_at_mut_checked(field.len()) else {
            return Err(cannot_encode()("a row is longer than it should be"));
        };
        head.copy_from_slice(field);
        rest = tail;
    }
    Ok(bytes)
}

fn write_inline(call: &PlainCall<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
    write_text(call.operation_signature, out)?;
    write_text(call.session_id, out)?;
    for number in [call.trace_id, call.tin, call.tout] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    write_text(call.hostname, out)?;
    for number in [call.eoi, call.ess] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    Ok(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

fn take_i32(rest: &mut &[u8]) -> Option<i32> {
    take(rest).map(i32::from_le_bytes)
}

fn take_i64(rest: &mut &[u8]) -> Option<i64> {
    take(rest).map(i64::from_le_bytes)
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    // Nothing that is counted is shorter than a byte.
    usize::try_from(take_u32(rest)?)
        .ok()
        .filter(|length| *length <= rest.len())
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = take_length(rest)?;
    let (text, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    std::str::from_utf8(text).ok()
}

fn read_table<'a>(rest: &mut &'a [u8]) -> Option<DecodedTable<'a>> {
    let count = take_length(rest)?;
    let strings = (0..count).map(|_| take_text(rest)).collect::<Option<_>>()?;
    let count = take_length(rest)?;
    let (rows, tail) = rest.split_at_checked(count.checked_mul(ROW_BYTES)?)?;
    *rest = tail;
    let rows = rows.as_chunks::<ROW_BYTES>().0.iter().map(|row| {
        let mut row = row.as_slice();
        Some(TableRow {
            operation_signature: take_u32(&mut row)?,
            session_id: take_u32(&mut row)?,
            trace_id: take_i64(&mut row)?,
            tin: take_i64(&mut row)?,
            tout: take_i64(&mut row)?,
            hostname: take_u32(&mut row)?,
            eoi: take_i32(&mut row)?,
            ess: take_i32(&mut row)?,
        })
    });
    Some(DecodedTable {
        strings,
        rows: rows.collect::<Option<_>>()?,
    })
}

fn read_inline<'a>(rest: &mut &'a [u8]) -> Option<Vec<Inline<'a>>> {
    let count = take_length(rest)?;
    let rows = (0..count).map(|_| {
        Some(Inline {
            operation_signature: Cow::Borrowed(take_text(rest)?),
            session_id: Cow::Borrowed(take_text(rest)?),
            trace_id: take_i64(rest)?,
            tin: take_i64(rest)?,
            tout: take_i64(rest)?,
            hostname: Cow::Borrowed(take_text(rest)?),
            eoi: take_i32(rest)?,
            ess: take_i32(rest)?,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_ends_early_is_refused() {
        let mut format = Fixed { string_table: true };
        let mut chunk = vec![1, 0, 0, 0, 1, 0, 0, 0, b'a', 1, 0, 0, 0];
        chunk.extend([0; ROW_BYTES]);
        assert!(format.decode(&chunk).is_ok());
        for length in 0..chunk.len() {
            assert!(format.decode(&chunk[..length]).is_err(), "{length}");
        }
        chunk.push(0);
        assert!(format.decode(&chunk).is_err());
    }
}
