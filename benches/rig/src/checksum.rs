//! Whether the records that came out are those that went in.

#[cfg(test)]
use baler_common::record::{BatchBuilder, PushError};
use baler_common::record::{Column, Record, RecordBatch, Table};

use crate::workload::Execution;
#[cfg(test)]
use crate::workload::{Call, Executions, Workload};

/// The number of executions, and a hash of all their values that does not depend on their order.
///
/// Records of several threads and chunks of several lanes come in any order; a record that is
/// missing, doubled or changed shows in the count or the hash, but for a chance of 2^-64.
/// The hash is made column by column, in some ten nanoseconds a record, so that it can be part of
/// a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum {
    /// How many executions.
    pub records: u64,
    /// The sum of their hashes.
    pub hash: u64,
    /// Records of other types, whose values are not in the hash.
    pub foreign: u64,
}

impl Checksum {
    /// Adds the records of a batch.
    pub fn add(&mut self, batch: &RecordBatch) {
        let strings: Vec<u64> = batch.strings().iter().map(of_text).collect();
        for table in batch.tables() {
            let records = u64::try_from(table.len()).unwrap_or(u64::MAX);
            match of_table(table, &strings) {
                Some(hash) => {
                    self.records = self.records.saturating_add(records);
                    self.hash = self.hash.wrapping_add(hash);
                }
                None => self.foreign = self.foreign.saturating_add(records),
            }
        }
    }
}

/// The sum of the rows' hashes; `None` if they are no executions.
fn of_table(table: &Table, strings: &[u64]) -> Option<u64> {
    if table.schema().name() != Execution::schema().name() {
        return None;
    }
    let mut rows: Vec<u64> = table
        .timestamps()
        .iter()
        .map(|time| mix(1, bits(*time)))
        .collect();
    for (field, column) in table.schema().fields().iter().zip(table.columns()) {
        // The name, so that two columns that changed places are noticed.
        let name = of_text(field.name());
        match column {
            Column::Signed(values) => {
                for (row, value) in rows.iter_mut().zip(values) {
                    *row = mix(*row ^ name, bits(*value));
                }
            }
            Column::String(ids) => {
                for (row, id) in rows.iter_mut().zip(ids) {
                    let text = strings.get(usize::try_from(*id).ok()?)?;
                    *row = mix(*row ^ name, *text);
                }
            }
            _ => return None,
        }
    }
    Some(rows.into_iter().fold(0, u64::wrapping_add))
}

fn bits(value: i64) -> u64 {
    u64::from_le_bytes(value.to_le_bytes())
}

fn of_text(text: &str) -> u64 {
    let text = text.as_bytes();
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    text.chunks(8).fold(length, |hash, piece| {
        let word = piece
            .iter()
            .rev()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte));
        mix(hash, word)
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
impl Checksum {
    /// That of the records of these calls.
    pub(crate) fn of_calls(workload: &Workload, calls: &[Call]) -> Result<Self, PushError> {
        let mut executions = Executions::new(workload);
        let mut builder = BatchBuilder::new();
        let mut checksum = Self::default();
        for calls in calls.chunks(1_024) {
            for call in calls {
                builder.push(executions.of(call))?;
            }
            checksum.add(&builder.take());
        }
        Ok(checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> (Workload, Vec<Call>) {
        let mut workload = Workload::new(1);
        let calls = workload.by_ref().take(3_000).collect();
        (workload, calls)
    }

    #[test]
    fn order_and_batches_do_not_matter() {
        let (workload, mut calls) = calls();
        let expected = Checksum::of_calls(&workload, &calls).unwrap();
        assert_eq!((expected.records, expected.foreign), (3_000, 0));
        calls.reverse();
        let (one, other) = calls.split_at(7);
        let parts = [one, other].map(|calls| Checksum::of_calls(&workload, calls).unwrap());
        let sum = parts
            .map(|part| part.hash)
            .into_iter()
            .fold(0, u64::wrapping_add);
        assert_eq!(sum, expected.hash);
    }

    #[test]
    fn every_field_of_every_record_matters() {
        let (workload, calls) = calls();
        let expected = Checksum::of_calls(&workload, &calls).unwrap();
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
            let changed = Checksum::of_calls(&workload, &calls).unwrap();
            assert_ne!(changed, expected, "change {number}");
        }
        let missing = Checksum::of_calls(&workload, &calls[1..]).unwrap();
        assert_ne!(missing, expected);
    }

    #[test]
    fn records_of_other_types_are_told_apart() {
        #[derive(Record)]
        struct Other {
            number: u8,
        }
        let mut builder = BatchBuilder::new();
        builder.push(&Other { number: 1 }).unwrap();
        let mut checksum = Checksum::default();
        checksum.add(&builder.take());
        let expected = Checksum {
            foreign: 1,
            ..Checksum::default()
        };
        assert_eq!(checksum, expected);
    }

    #[test]
    fn calls_of_a_workload_can_be_told_from_those_of_another() {
        let (workload, calls) = calls();
        let other: Vec<_> = Workload::new(2).take(3_000).collect();
        assert_ne!(
            Checksum::of_calls(&workload, &calls).map(|sum| sum.hash),
            Checksum::of_calls(&workload, &other).map(|sum| sum.hash)
        );
    }
}
