//! Blocks, with every kind of record.

use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_connector_kieker::types::OperationExecutionRecord;
use baler_monitoring::enter;

use super::recording::{Recording, of_type};

#[test]
fn a_block_is_recorded_as_its_options_say() {
    const NAME: &str = "guards.named()";
    let recording = Recording::start();
    for _ in 0..100 {
        let _probe = enter!(NAME, record = operation);
        let _probe = enter!("guards.duration()", record = duration);
        recording.clock.advance(7);
    }
    let batches = recording.finish_all();
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    assert_eq!((calls.len(), &*calls[99].operation_signature), (100, NAME));
    let durations: Vec<DurationRecord> = of_type(&batches);
    assert_eq!(durations.len(), 100);
    assert!(durations.iter().all(|it| it.tout - it.tin == 7));
}

#[test]
fn a_block_can_have_two_kinds_of_records() {
    let recording = Recording::start();
    for _ in 0..100 {
        let _probe = enter!("guards.often()", record = duration, full = 1 / 10);
        let _probe = enter!(
            "guards.hot()",
            full = 1 / 20,
            record = aggregated,
            histogram
        );
        recording.clock.advance(7);
    }
    let batches = recording.finish_all();
    assert_eq!(of_type::<DurationRecord>(&batches).len(), 100);
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    let of = |name: &str| {
        let named = calls.iter();
        named.filter(|it| it.operation_signature == name).count()
    };
    assert_eq!((of("guards.often()"), of("guards.hot()")), (10, 5));
    let sums: Vec<AggregatedDurationRecord> = of_type(&batches);
    let counts: Vec<_> = sums.iter().map(|it| it.count).collect();
    assert_eq!(counts, [100]);
    assert!(
        sums.iter()
            .all(|it| it.bucketed() == it.count && it.min == 7)
    );
}

#[test]
fn a_share_of_blocks_is_sampled() {
    let recording = Recording::start();
    for _ in 0..100 {
        let _probe = enter!("guards.seldom()", sample = 1 / 10);
        let _probe = enter!("guards.sum()", record = aggregated, sample = 1 / 4,);
    }
    let batches = recording.finish_all();
    assert_eq!(of_type::<OperationExecutionRecord>(&batches).len(), 10);
    let sums: Vec<AggregatedDurationRecord> = of_type(&batches);
    assert_eq!(sums.iter().map(|it| it.count).sum::<u64>(), 25);
}
