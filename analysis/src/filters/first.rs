//! Passes on the first records of a stream.

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes on exactly the first records.
///
/// Chunks with later records are given back to the medium, not lost. If only a part of a chunk was
/// passed on, the whole chunk is delivered again: after a second run its first records have come
/// twice. The owner of the source stops it when [`Taken::is_enough`] is true.
#[derive(Debug)]
pub struct First<S> {
    taken: Taken,
    next: S,
}

/// A handle to the number of records that a [`First`] has passed on.
#[derive(Debug, Clone)]
pub struct Taken {
    limit: Option<u64>,
    records: Arc<AtomicU64>,
    offered: Arc<AtomicU64>,
}

impl<S: Stage> First<S> {
    /// Passes on the first `limit` records to `next`.
    pub fn new(limit: u64, next: S) -> (Self, Taken) {
        let taken = Taken::of(Some(limit));
        (taken.stage(next), taken)
    }
}

impl Taken {
    /// Creates a limit of which nothing is taken yet; `None` limits nothing.
    pub fn of(limit: Option<u64>) -> Self {
        Self {
            limit,
            records: Arc::default(),
            offered: Arc::default(),
        }
    }

    /// Returns a stage that shares the limit: one for each of several workers.
    pub fn stage<S: Stage>(&self, next: S) -> First<S> {
        First {
            taken: self.clone(),
            next,
        }
    }

    /// Takes up to `wanted` records; returns how many it got.
    fn take(&self, wanted: u64) -> u64 {
        let got = |before: u64| {
            self.limit
                .map_or(wanted, |limit| wanted.min(limit - before))
        };
        let more = |before: u64| Some(before + got(before));
        let before = self
            .records
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        before.map_or(0, got)
    }

    /// Returns the number of records that were passed on, or are just being passed on.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Acquire)
    }

    /// Returns the number of records that arrived, passed on or not.
    pub fn offered(&self) -> u64 {
        self.offered.load(Ordering::Acquire)
    }

    /// Whether the limit is used up.
    pub fn is_enough(&self) -> bool {
        self.limit.is_some_and(|limit| self.records() >= limit)
    }
}

impl<S: Stage> Stage for First<S> {
    fn name(&self) -> &'static str {
        "first"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let all = parcel.len() as u64;
        self.taken.offered.fetch_add(all, Ordering::AcqRel);
        let passed = self.taken.take(all);
        if passed == all {
            return self.next.accept(parcel);
        }
        parcel.fail();
        if passed > 0 {
            let mut positions = 0..all;
            let selected = parcel.select(|_| positions.next() < Some(passed));
            self.next.accept(selected)?;
        }
        Ok(())
    }
}
