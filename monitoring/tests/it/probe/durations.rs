//! Probes that record durations, and sampled calls.

use baler_common::record::timing::DurationRecord;
use baler_connector_kieker::types::OperationExecutionRecord;
use baler_monitoring::{TestClock, probe};

use super::asynchronous::{block_on, yield_times};
use super::recording::{Recording, of_type, reconstruct};

#[probe(record = duration)]
fn measured(clock: &TestClock, time: i64) {
    clock.advance(time);
    inner();
}

#[probe]
fn inner() {}

#[probe]
fn outer(clock: &TestClock) {
    measured(clock, 5);
}

#[test]
fn a_duration_has_exact_times_and_no_place_in_the_trace() {
    let recording = Recording::start();
    outer(&recording.clock);
    let batches = recording.finish_all();
    assert_eq!(
        of_type::<DurationRecord>(&batches),
        [DurationRecord {
            operation_signature: "void it.probe.durations.measured(TestClock, i64)".into(),
            tin: 1_000,
            tout: 1_005,
        }]
    );
    let logged = batches
        .iter()
        .flat_map(|batch| batch.records())
        .find(|record| record.schema().name().ends_with("DurationRecord"))
        .unwrap()
        .timestamp();
    assert_eq!(logged, Some(1_005));
    let calls: Vec<_> = of_type::<OperationExecutionRecord>(&batches);
    let places: Vec<_> = calls.iter().map(|call| (call.eoi, call.ess)).collect();
    assert_eq!(places, [(1, 1), (0, 0)]);
}

#[test]
fn durations_fill_blocks_between_other_rows_and_none_is_lost() {
    let recording = Recording::start();
    for _ in 0..10_000 {
        outer(&recording.clock);
    }
    let batches = recording.finish_all();
    let durations: Vec<DurationRecord> = of_type(&batches);
    assert_eq!(durations.len(), 10_000);
    let tins = durations.iter().map(|it| it.tin);
    assert!(tins.eq((0..10_000).map(|call| 1_000 + call * 5)));
    assert_eq!(of_type::<OperationExecutionRecord>(&batches).len(), 20_000);
}

#[probe(record = duration)]
async fn later(clock: &TestClock) -> u32 {
    clock.advance(1);
    yield_times(3).await;
    clock.advance(1);
    7
}

#[test]
fn a_duration_of_an_asynchronous_function_is_the_whole_time() {
    let recording = Recording::start();
    let future = later(&recording.clock);
    recording.clock.advance(100);
    assert_eq!(block_on(future), 7);
    let durations: Vec<DurationRecord> = of_type(&recording.finish_all());
    assert_eq!((durations[0].tin, durations[0].tout), (1_100, 1_102));
}

#[probe(record = duration, full = 1/100)]
fn both() {
    inner();
}

#[probe(record = duration, full = 1/100)]
async fn both_later() {
    yield_times(1).await;
    inner();
}

#[test]
fn durations_come_always_and_full_records_now_and_then() {
    let recording = Recording::start();
    for _ in 0..1_000 {
        both();
        block_on(both_later());
    }
    let batches = recording.finish_all();
    assert_eq!(of_type::<DurationRecord>(&batches).len(), 2_000);
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    let of = |name: &str| {
        calls
            .iter()
            .filter(|it| it.operation_signature.contains(name))
            .count()
    };
    assert_eq!(
        (of(".both()"), of(".both_later()"), of(".inner()")),
        (10, 10, 2_000)
    );
    // A call within one that is recorded in full is nested in it.
    let nested = calls.iter().filter(|it| it.ess == 1 && it.eoi == 1).count();
    assert_eq!(nested, 20);
}

#[probe(sample = 1/8)]
fn sampled(depth: u32) {
    if depth > 0 {
        sampled(depth - 1);
    }
}

#[probe(sample = 1/8, record = duration)]
fn sampled_duration() {}

#[probe(sample = 1/8)]
async fn sampled_later() {
    yield_times(1).await;
}

#[test]
fn the_same_share_of_calls_is_sampled_on_every_thread() {
    let recording = Recording::start();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..80 {
                    sampled(0);
                    sampled_duration();
                    block_on(sampled_later());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let batches = recording.finish_all();
    assert_eq!(of_type::<DurationRecord>(&batches).len(), 40);
    assert_eq!(of_type::<OperationExecutionRecord>(&batches).len(), 80);
}

#[test]
fn calls_left_out_by_a_sample_leave_no_gap_in_the_trace() {
    let recording = Recording::start();
    sampled(79);
    let trees = reconstruct(&recording.finish());
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].matches("sampled").count(), 10);
}

#[test]
fn nothing_is_recorded_while_monitoring_is_off() {
    let recording = Recording::start();
    recording.switch(false);
    both();
    sampled(10);
    recording.switch(true);
    let batches = recording.finish_all();
    assert!(batches.iter().all(|batch| batch.is_empty()));
}
