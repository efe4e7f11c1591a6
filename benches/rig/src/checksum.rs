//! A checksum of records: whether the same records arrived as were sent.

use baler_common::record::{Column, Record, RecordBatch, Table};

use crate::workload::{Execution, PlainCall};

/// The number of executions, and a hash of all their values that does not depend on their order.
///
/// Records of several threads and chunks of several lanes come in any order. A record that is missing,
/// doubled or changed shows in the count or the hash, but for a chance of 2^-64.
/// A batch is hashed column by column, in some ten nanoseconds a record, so that it can be part of a
/// measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum {
    /// How many records.
    pub records: u64,
    /// The sum of the hashes of all executions.
    pub hash: u64,
}

impl Checksum {
    /// Adds the records of a batch. Records of other types are counted and not hashed.
    pub fn add(&mut self, batch: &RecordBatch) {
        let strings: Vec<u64> = batch.strings().iter().map(of_text).collect();
        for table in batch.tables() {
            let records = u64::try_from(table.len()).unwrap_or(u64::MAX);
            self.records = self.records.saturating_add(records);
            let hash = of_table(table, &strings).unwrap_or(0);
            self.hash = self.hash.wrapping_add(hash);
        }
    }

    /// Adds the record of a call.
    pub fn add_call(&mut self, call: &PlainCall<'_>) {
        let fields = [
            of_text(call.operation_signature),
            of_text(call.session_id),
            call.trace_id.cast_unsigned(),
            call.tin.cast_unsigned(),
            call.tout.cast_unsigned(),
            of_text(call.hostname),
            i64::from(call.eoi).cast_unsigned(),
            i64::from(call.ess).cast_unsigned(),
        ];
        let hash = fields.into_iter().fold(of_time(call.tout), mix);
        self.records = self.records.saturating_add(1);
        self.hash = self.hash.wrapping_add(hash);
    }
}

/// The sum of the rows' hashes; `None` if they are no executions.
fn of_table(table: &Table, strings: &[u64]) -> Option<u64> {
    if table.schema().name() != Execution::schema().name() {
        return None;
    }
    let mut rows: Vec<u64> = table.timestamps().iter().map(|it| of_time(*it)).collect();
    for column in table.columns() {
        match column {
            Column::Signed(values) => {
                for (row, value) in rows.iter_mut().zip(values) {
                    *row = mix(*row, value.cast_unsigned());
                }
            }
            Column::String(ids) => {
                for (row, id) in rows.iter_mut().zip(ids) {
                    *row = mix(*row, *strings.get(usize::try_from(*id).ok()?)?);
                }
            }
            _ => return None,
        }
    }
    Some(rows.into_iter().fold(0, u64::wrapping_add))
}

fn of_time(timestamp: i64) -> u64 {
    mix(1, timestamp.cast_unsigned())
}

fn of_text(text: &str) -> u64 {
    let text = text.as_bytes();
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    text.chunks(8).fold(length, |hash, piece| {
        let bytes = piece.iter().rev();
        mix(
            hash,
            bytes.fold(0, |word, byte| (word << 8) | u64::from(*byte)),
        )
    })
}

/// Multiplies to 128 bits and folds the halves, as wyhash does (Wang Yi).
fn mix(hash: u64, value: u64) -> u64 {
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xd6e8_feb8_6659_fd93;
    let product = u128::from(hash ^ FIRST).wrapping_mul(u128::from(value ^ SECOND));
    let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
    u64::try_from(low ^ high).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use baler_common::record::BatchBuilder;

    use super::*;
    use crate::workload::{Call, Executions, Workload};

    fn of_batches(workload: &Workload, calls: &[Call]) -> Checksum {
        let mut executions = Executions::new(workload.names());
        let mut builder = BatchBuilder::new();
        let mut checksum = Checksum::default();
        for calls in calls.chunks(1_024) {
            for call in calls {
                builder.push(executions.of(call)).unwrap();
            }
            checksum.add(&builder.take());
        }
        checksum
    }

    #[test]
    fn every_field_of_every_record_matters_and_order_and_batches_do_not() {
        let mut workload = Workload::new(1);
        let mut calls: Vec<Call> = workload.by_ref().take(3_000).collect();
        let expected = of_batches(&workload, &calls);
        let mut plain = Checksum::default();
        for call in calls.iter().rev() {
            plain.add_call(&workload.names().plain(call));
        }
        assert_eq!(plain, expected);
        let changes: [fn(&mut Call); 7] = [
            |call| call.operation = (call.operation + 1) % 100,
            |call| call.session = (call.session + 1) % 50,
            |call| call.trace_id ^= 1,
            |call| call.tin += 1,
            |call| call.tout += 1,
            |call| call.eoi += 1,
            |call| call.ess += 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut calls = calls.clone();
            change(&mut calls[number * 400]);
            assert_ne!(of_batches(&workload, &calls), expected, "change {number}");
        }
        calls.reverse();
        assert_eq!(of_batches(&workload, &calls), expected);
        assert_ne!(of_batches(&workload, &calls[1..]), expected);
    }
}
