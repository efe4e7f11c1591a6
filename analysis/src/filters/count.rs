//! Counts records by type.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use baler_common::mutex::lock;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// The most types with a count of their own; records of further types are counted together.
const MAX_TYPES: usize = 4_096;

/// Counts records and chunks; Kieker's `CountingFilter`.
#[derive(Debug, Default)]
pub struct Count {
    counts: Counts,
}

/// A handle to the figures of a [`Count`].
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Mutex<RecordTotals>>);

#[derive(Debug, Default)]
struct RecordTotals {
    records: u64,
    chunks: u64,
    by_type: BTreeMap<Box<str>, u64>,
    other_types: u64,
}

/// The number of records of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeCount {
    /// The type's name; `(other)` for the types beyond the limit.
    pub type_name: Box<str>,
    /// The number of records.
    pub records: u64,
}

impl Count {
    /// Creates a counter at zero, and the handle to read it.
    pub fn new() -> (Self, Counts) {
        let counts = Counts::default();
        (counts.stage(), counts)
    }
}

impl Counts {
    /// Returns a stage that adds to the same figures: one for each of several workers.
    pub fn stage(&self) -> Count {
        Count {
            counts: self.clone(),
        }
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        lock(&self.0).records
    }

    /// Returns the number of parcels: chunks, or parts of them.
    pub fn chunks(&self) -> u64 {
        lock(&self.0).chunks
    }

    /// Returns the number of records of each type, sorted by name.
    pub fn by_type(&self) -> Vec<TypeCount> {
        let totals = lock(&self.0);
        let mut counts: Vec<TypeCount> = totals
            .by_type
            .iter()
            .map(|(name, records)| TypeCount {
                type_name: name.clone(),
                records: *records,
            })
            .collect();
        if totals.other_types > 0 {
            counts.push(TypeCount {
                type_name: "(other)".into(),
                records: totals.other_types,
            });
        }
        counts
    }

    /// Counts a parcel.
    pub(crate) fn parcel(&self, parcel: &Parcel) {
        let mut totals = lock(&self.0);
        totals.chunks += 1;
        let whole = parcel.len() == parcel.chunk().batch.len();
        if whole {
            for table in parcel.chunk().batch.tables() {
                totals.add(table.schema().name(), table.len() as u64);
            }
        } else {
            parcel
                .records()
                .for_each(|(_, record)| totals.add(record.type_name(), 1));
        }
    }

    /// Counts records of a type, for a sink that does not count by parcels.
    pub fn add(&self, type_name: &str, records: u64) {
        lock(&self.0).add(type_name, records);
    }
}

impl Stage for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.counts.parcel(&parcel);
        Ok(())
    }
}

impl RecordTotals {
    fn add(&mut self, type_name: &str, records: u64) {
        self.records += records;
        if let Some(count) = self.by_type.get_mut(type_name) {
            *count += records;
        } else if self.by_type.len() < MAX_TYPES {
            self.by_type.insert(type_name.into(), records);
        } else {
            self.other_types += records;
        }
    }
}
