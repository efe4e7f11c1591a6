//! What aggregated records add up to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::record::timing::AggregatedDurationRecord;
use baler_common::record::{Record, read};

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// How many operations are told apart; records of further ones are counted and left out.
const MAX_OPERATIONS: usize = 10_000;

/// Adds up the `AggregatedDurationRecord`s of each operation, of whatever thread, host and time.
#[derive(Debug, Default)]
pub struct AddUp {
    sums: Aggregates,
}

/// A handle to the figures of an [`AddUp`].
#[derive(Debug, Clone, Default)]
pub struct Aggregates(Arc<Mutex<Sums>>);

#[derive(Debug, Default)]
struct Sums {
    operations: BTreeMap<Box<str>, AggregatedDurationRecord>,
    left_out: u64,
}

impl AddUp {
    /// A stage without figures, and the handle to read them.
    pub fn new() -> (Self, Aggregates) {
        let sums = Aggregates::default();
        (sums.stage(), sums)
    }
}

impl Aggregates {
    /// A stage that adds to the same figures: one for each of several workers.
    pub fn stage(&self) -> AddUp {
        AddUp { sums: self.clone() }
    }

    /// One record an operation, sorted by signature; its host is the first one that came.
    pub fn operations(&self) -> Vec<AggregatedDurationRecord> {
        self.lock().operations.values().cloned().collect()
    }

    /// Records that were left out: of operations beyond 10,000, or with buckets that are no
    /// histogram.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage for AddUp {
    fn name(&self) -> &'static str {
        "add up"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let name = AggregatedDurationRecord::schema().name();
        let mut sums = self.sums.lock();
        for (_, record) in parcel.records() {
            if record.schema().name() == name {
                sums.add(read(record.fields()).ok());
            }
        }
        Ok(())
    }
}

impl Sums {
    fn add(&mut self, record: Option<AggregatedDurationRecord>) {
        let added = record.is_some_and(|record| {
            if let Some(sum) = self.operations.get_mut(&*record.operation_signature) {
                return sum.merge(&record).is_ok();
            }
            let has_room = self.operations.len() < MAX_OPERATIONS;
            if has_room {
                let name = record.operation_signature.as_str().into();
                self.operations.insert(name, record);
            }
            has_room
        });
        self.left_out = self.left_out.saturating_add(u64::from(!added));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: &str, duration: u64) -> Option<AggregatedDurationRecord> {
        Some(AggregatedDurationRecord {
            operation_signature: operation.into(),
            hostname: "host".into(),
            since: 1,
            until: 2,
            count: 1,
            sum: duration,
            min: duration,
            max: duration,
            buckets: Vec::new(),
            bucket_counts: Vec::new(),
        })
    }

    #[test]
    fn records_of_an_operation_become_one() {
        let mut sums = Sums::default();
        for (operation, duration) in [("b()", 3), ("a()", 5), ("b()", 1)] {
            sums.add(record(operation, duration));
        }
        let found: Vec<_> = sums
            .operations
            .values()
            .map(|it| (it.count, it.sum, it.min))
            .collect();
        assert_eq!(found, [(1, 5, 5), (2, 4, 1)]);
        assert_eq!(sums.left_out, 0);
    }

    #[test]
    fn what_cannot_be_added_is_counted() {
        let mut sums = Sums::default();
        sums.add(record("a()", 1));
        let mut broken = record("a()", 1);
        broken.iter_mut().for_each(|it| it.buckets.push(1));
        sums.add(broken);
        sums.add(None);
        for operation in 0..MAX_OPERATIONS {
            sums.add(record(&operation.to_string(), 1));
        }
        assert_eq!((sums.left_out, sums.operations.len()), (3, MAX_OPERATIONS));
    }
}
