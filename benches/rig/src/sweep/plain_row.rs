//! The message of the client library alone: one record as a row of plain bytes.
//!
//! A row is its type, the number of its run, the time at which it is due, and the record's fields.
//! Numbers are little-endian, and each string follows its length. It has no field names, no padding
//! and no checksum. A call has about 190 bytes, of which the strings are 150. Fields of a user's
//! record are in the form of `RowWriter`.

use crate::workload::PlainCall;

/// The first byte: the type of the record. A real topic rarely has only one type.
const TYPE: u8 = 1;

/// Writes the beginning of a row over the contents of `row`.
pub(super) fn begin(run: u32, due_ns: i64, row: &mut Vec<u8>) {
    row.clear();
    row.push(TYPE);
    row.extend_from_slice(&run.to_le_bytes());
    row.extend_from_slice(&due_ns.to_le_bytes());
}

/// Appends the fields of a call, except its end, which is its due time.
pub(super) fn append_call(call: &PlainCall<'_>, row: &mut Vec<u8>) {
    for number in [call.trace_id, call.tin] {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for number in [call.eoi, call.ess] {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for text in [call.operation_signature, call.session_id, call.hostname] {
        let length = u16::try_from(text.len()).expect("a string of the workload is short");
        row.extend_from_slice(&length.to_le_bytes());
        row.extend_from_slice(text.as_bytes());
    }
}

/// Returns the run of a row, and the time at which it is due; `None` if the bytes are not a row.
pub(super) fn read(row: &[u8]) -> Option<(u32, i64)> {
    let (first, rest) = row.split_first()?;
    let (run, rest) = rest.split_first_chunk()?;
    let (due_ns, _) = rest.split_first_chunk()?;
    (*first == TYPE).then_some((u32::from_le_bytes(*run), i64::from_le_bytes(*due_ns)))
}

#[cfg(test)]
mod tests;
