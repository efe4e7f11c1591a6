//! The message of the client library alone: one record as a row of plain bytes, and back.

use baler_common::record::{BatchBuilder, Record};

use crate::failure::Failure;
use crate::workload::{Call, HOSTNAME, Workload};

/// The first byte: which type of record. A topic seldom has one alone.
const TYPE: u8 = 1;

/// The record of a row, with its call's end as its timestamp.
#[derive(Debug, Record)]
#[record(
    name = "kieker.common.record.controlflow.OperationExecutionRecord",
    rename_all = "camelCase"
)]
struct Execution {
    operation_signature: String,
    session_id: String,
    trace_id: i64,
    #[record(unix_nanos)]
    tin: i64,
    #[record(timestamp)]
    tout: i64,
    hostname: String,
    eoi: i32,
    ess: i32,
}

/// Makes rows of calls: type, numbers in little endian, and each string with its length before it.
///
/// It has no field names, no padding and no checksum: about 175 bytes a record of the rig's workload, of
/// which the strings are 150.
#[derive(Debug)]
pub struct Rows<'a> {
    workload: &'a Workload,
}

impl<'a> Rows<'a> {
    /// For the calls of this workload.
    pub fn new(workload: &'a Workload) -> Self {
        Self { workload }
    }

    /// Writes the row of a call over what is in `row`.
    pub fn write(&self, call: &Call, row: &mut Vec<u8>) {
        let text = |strings: &'a [String], index: usize| strings.get(index).map_or("", |text| text);
        row.clear();
        row.push(TYPE);
        for number in [call.trace_id, call.tin, call.tout] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        for number in [call.eoi, call.ess] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        let operation = text(self.workload.operations(), call.operation);
        let session = text(self.workload.sessions(), call.session);
        for text in [operation, session, HOSTNAME] {
            // No string of the workload is longer.
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            row.extend_from_slice(&length.to_le_bytes());
            row.extend_from_slice(text.as_bytes());
        }
    }
}

/// Adds the record of a row to a batch.
///
/// # Errors
///
/// The bytes are no row.
pub fn read_into(row: &[u8], builder: &mut BatchBuilder) -> Result<(), Failure> {
    let record = record(row).ok_or_else(|| Failure::new("a message is no row"))?;
    let pushed = builder.push(&record);
    pushed.map(drop).map_err(Failure::cannot("make a batch"))
}

/// When the call of a row ended, in nanoseconds since the Unix epoch; nothing if the bytes are no row.
pub fn end_of(row: &[u8]) -> Option<i64> {
    // Behind type, trace and begin.
    row.get(17..)?
        .first_chunk()
        .copied()
        .map(i64::from_le_bytes)
}

fn record(row: &[u8]) -> Option<Execution> {
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
        let (text, behind) = rest.split_at_checked(usize::from(length))?;
        rest = behind;
        String::from_utf8(text.to_vec()).ok()
    };
    let (operation_signature, session_id, hostname) = (text()?, text()?, text()?);
    rest.is_empty().then_some(Execution {
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
    let (found, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Checksum;

    #[test]
    fn rows_say_what_the_calls_say() {
        let mut workload = Workload::new(1);
        let calls: Vec<Call> = workload.by_ref().take(500).collect();
        let (rows, mut row) = (Rows::new(&workload), Vec::new());
        let mut found = Checksum::default();
        let read = |row: &[u8]| {
            let mut builder = BatchBuilder::new();
            read_into(row, &mut builder).map(|()| builder.take())
        };
        let mut bytes = 0;
        for call in &calls {
            rows.write(call, &mut row);
            assert_eq!(end_of(&row), Some(call.tout));
            bytes += row.len();
            found.add(&read(&row).unwrap());
        }
        assert_eq!(found, Checksum::of_calls(&workload, &calls).unwrap());
        let mean = bytes / calls.len();
        assert!((170..200).contains(&mean), "{mean} bytes a record");
        assert!(read(&row[..row.len() - 1]).is_err() && read(&[]).is_err());
    }
}
