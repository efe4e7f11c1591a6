//! Columns of integers, written in their cheapest encoding.

use super::dictionary::Dictionary;
use super::runs::Runs;
use super::stats::{Stats, column_bytes};
use super::{REFERENCE, Sign};
use crate::container::native::write::prefixed_by_length;
use crate::container::varint;

/// Writes columns of integers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntEncoder {
    lanes: Vec<u64>,
    runs: Runs,
    dictionary: Dictionary,
}

impl IntEncoder {
    /// Appends a column in its cheapest encoding; one without a lane takes no byte.
    pub(in crate::container::native) fn write(
        &mut self,
        lanes: impl Iterator<Item = u64>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        self.lanes.clear();
        self.lanes.extend(lanes);
        if self.lanes.is_empty() {
            return;
        }
        let stats = Stats::of(&self.lanes, sign);
        let (simple, payload_bytes) = stats.cheapest();
        let simple_bytes = column_bytes(payload_bytes);
        let run_bytes = self
            .runs
            .find(&self.lanes, &stats)
            .filter(|bytes| *bytes < simple_bytes);
        let best = run_bytes.unwrap_or(simple_bytes);
        // A dictionary has at least two entries, a bit for each lane and four bytes around them.
        let least = self.lanes.len() / 8 + 6;
        let dictionary_bytes = (best > least)
            .then(|| self.dictionary.find(&self.lanes, sign))
            .flatten()
            .filter(|bytes| *bytes < best);
        if dictionary_bytes.is_some() {
            self.dictionary.write(sign, out);
        } else if run_bytes.is_some() {
            self.runs.write(sign, out);
        } else {
            simple.write(&self.lanes, &stats, out);
        }
    }
}

/// Appends a column that is equal to that of an earlier field of its table.
pub(in crate::container::native) fn write_reference(field: u64, out: &mut Vec<u8>) {
    out.push(REFERENCE);
    prefixed_by_length(out, |out| varint::write(out, field));
}
