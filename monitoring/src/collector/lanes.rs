//! The batches being filled, one a lane, and the choice of a row's lane.

use std::sync::Arc;
use std::time::Instant;

use baler_common::number::{to_u64, to_usize};
use baler_common::record::{BatchBuilder, RowNumber, Schema};

use super::calls;
use crate::queue::CALL_WORDS;
use crate::trace::lane_group;

/// The names of the field with a trace's number, in Kieker's records and in Rust.
const TRACE_FIELDS: &[&str] = &["traceId", "trace_id"];

/// A batch being filled.
#[derive(Default)]
pub(super) struct LaneBatch {
    pub(super) builder: BatchBuilder,
    /// The earliest time at which the oldest record in the builder can have been emitted.
    pub(super) oldest: Option<Instant>,
}

/// Chooses the lane of a row by the number of its trace. Related traces, which call each other,
/// stay together.
///
/// All producers with the same number of lanes choose the same lane. Rows without a trace go to
/// lane 0. With one lane, all rows do.
pub(super) struct LaneRouter {
    lanes: u64,
    /// The position of the number, by type. An application has few types.
    known: Vec<(Arc<Schema>, Option<RowNumber>)>,
}

impl LaneRouter {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: to_u64(lanes).max(1),
            known: Vec::new(),
        }
    }

    /// Returns the lane of a call.
    #[inline]
    pub(super) fn lane_of_call(&self, call: [u64; CALL_WORDS]) -> usize {
        let [_, trace, ..] = call;
        if self.lanes == 1 || calls::is_duration(call) {
            0
        } else {
            self.lane_of_trace(trace)
        }
    }

    /// Returns the lane of a record.
    pub(super) fn lane_of_record(&mut self, schema: &Arc<Schema>, fields: &[u8]) -> usize {
        if self.lanes == 1 {
            return 0;
        }
        let mut known = self.known.iter();
        let known = known.position(|(known, _)| Arc::ptr_eq(known, schema));
        let at = known.unwrap_or_else(|| self.learn(schema));
        let number = self
            .known
            .get(at)
            .and_then(|(_, number)| number.as_ref()?.read(fields));
        number.map_or(0, |trace| self.lane_of_trace(trace))
    }

    fn lane_of_trace(&self, trace: u64) -> usize {
        let group = u64::from(lane_group(trace));
        to_usize(spread(group) % self.lanes)
    }

    fn learn(&mut self, schema: &Arc<Schema>) -> usize {
        // An application that creates types all the time must not grow the list without end.
        if self.known.len() >= 1_024 {
            self.known.clear();
        }
        let number = RowNumber::find(schema, TRACE_FIELDS);
        self.known.push((Arc::clone(schema), number));
        self.known.len() - 1
    }
}

/// Trace numbers are often dense or share some bits: the finaliser of SplitMix64 (Steele,
/// Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014) spreads them.
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
