//! The message of the client library alone: one record as a row of plain bytes, and back.
//!
//! A row is its type, the numbers in little endian, and each string after its length. It has no field
//! names, no padding and no checksum: about 175 bytes, of which the strings are 150.

use crate::workload::PlainCall;

/// The first byte: the type of the record. A topic seldom has one type alone.
const TYPE: u8 = 1;

/// Writes the row of a call over the contents of `row`.
pub(super) fn write(call: &PlainCall<'_>, row: &mut Vec<u8>) {
    row.clear();
    row.push(TYPE);
    for number in [call.trace_id, call.tin, call.tout] {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for number in [call.eoi, call.ess] {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for text in [call.operation_signature, call.session_id, call.hostname] {
        // No string of the workload is longer.
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        row.extend_from_slice(&length.to_le_bytes());
        row.extend_from_slice(text.as_bytes());
    }
}

/// The call of a row; `None` if the bytes are no row.
pub(super) fn read(row: &[u8]) -> Option<PlainCall<'_>> {
    let (first, mut rest) = row.split_first()?;
    if *first != TYPE {
        return None;
    }
    let mut long = || take(&mut rest).map(i64::from_le_bytes);
    let (trace_id, tin, tout) = (long()?, long()?, long()?);
    let mut int = || take(&mut rest).map(i32::from_le_bytes);
    let (eoi, ess) = (int()?, int()?);
    let mut text = || {
        let length = take(&mut rest).map(u16::from_le_bytes)?;
        let (text, after) = rest.split_at_checked(usize::from(length))?;
        rest = after;
        str::from_utf8(text).ok()
    };
    let (operation_signature, session_id, hostname) = (text()?, text()?, text()?);
    rest.is_empty().then_some(PlainCall {
        operation_signature,
        session_id,
        trace_id,
        tin,
        tout,
        hostname,
        eoi,
        ess,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (found, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*found)
}

#[cfg(test)]
mod tests;
