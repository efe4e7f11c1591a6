//! The batches being filled, one a lane, and which of them a row belongs to.

use std::sync::Arc;
use std::time::Instant;

use baler_common::record::{BatchBuilder, RowNumber, Schema};

use super::calls;
use crate::queue::CALL_WORDS;
use crate::trace::lane_group;

/// What the fields with a trace's number are called, in Kieker's records and in Rust.
const TRACE_FIELDS: &[&str] = &["traceId", "trace_id"];

/// A batch being filled.
#[derive(Default)]
pub(super) struct LaneBatch {
    pub(super) builder: BatchBuilder,
    /// When the oldest record in the builder was emitted at the earliest.
    pub(super) oldest: Option<Instant>,
}

/// Chooses the lane of a row by the number of its trace, so that a trace stays together with the
/// traces that it calls.
///
/// All producers with the same number of lanes choose the same lane.
/// Rows without a trace go to lane 0, and so does everything when there is one lane.
pub(super) struct LaneRouter {
    lanes: u64,
    /// Where the number is, by type: an application has few of them.
    known: Vec<(Arc<Schema>, Option<RowNumber>)>,
}

impl LaneRouter {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: u64::try_from(lanes).unwrap_or(u64::MAX).max(1),
            known: Vec::new(),
        }
    }

    /// The lane of a call.
    #[inline]
    pub(super) fn lane_of_call(&self, call: [u64; CALL_WORDS]) -> usize {
        let [_, trace, ..] = call;
        if self.lanes == 1 || calls::is_duration(call) {
            0
        } else {
            self.lane_of_trace(trace)
        }
    }

    /// The lane of a record.
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
        usize::try_from(spread(group) % self.lanes).unwrap_or_default()
    }

    fn learn(&mut self, schema: &Arc<Schema>) -> usize {
        // Types made anew all the time must not grow the list without end.
        if self.known.len() >= 1_024 {
            self.known.clear();
        }
        let number = RowNumber::find(schema, TRACE_FIELDS);
        self.known.push((Arc::clone(schema), number));
        self.known.len().saturating_sub(1)
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
