//! Broken invariants.

use baler_common::record::{BatchBuilder, DynamicRecord, Schema};

use super::*;

#[test]
#[should_panic(expected = "a position is outside of the batch")]
fn a_position_outside_of_the_batch_is_not_skipped() {
    let mut batch = BatchBuilder::new();
    for name in ["a", "b"] {
        let schema = Schema::new(name, Vec::new()).unwrap();
        let record = DynamicRecord::new(schema.into(), None, Vec::new()).unwrap();
        batch.push_dynamic(&record).unwrap();
    }
    rows_by_table(batch.batch(), Some(&[1, 2]));
}
