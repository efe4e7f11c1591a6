//! Asynchronous calls with the time inside their polls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use baler_common::record::timing::{AsyncOperationExecutionRecord, DurationRecord};
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{Clock, Controller, TestClock, probe};

use super::asynchronous::{block_on, poll_once, yield_times};
use super::recording::{Recording, drain, of_type, one_at_a_time};

#[probe(busy)]
async fn fetch(clock: &TestClock, yields: u32) -> u32 {
    clock.advance(3);
    yield_times(yields).await;
    parse(clock).await;
    yields
}

#[probe(busy)]
async fn parse(clock: &TestClock) {
    clock.advance(4);
    yield_times(1).await;
}

#[test]
fn busy_time_is_that_of_the_polls_and_total_time_that_between_them_too() {
    let recording = Recording::start();
    let clock = recording.clock.clone();
    let mut future = Box::pin({
        let clock = clock.clone();
        async move { fetch(&clock, 1).await }
    });
    assert!(poll_once(future.as_mut()).is_pending());
    clock.advance(1_000);
    assert!(poll_once(future.as_mut()).is_pending());
    clock.advance(1_000);
    // The task continues in another thread.
    assert_eq!(
        std::thread::spawn(move || block_on(future)).join().unwrap(),
        1
    );
    let records: Vec<AsyncOperationExecutionRecord> = of_type(&recording.finish_all());
    let [parse, fetch] = records.as_slice() else {
        panic!("{records:?}");
    };
    assert_eq!(
        *fetch,
        AsyncOperationExecutionRecord {
            operation_signature: "u32 it.probe.busy.fetch(TestClock, u32)".into(),
            session_id: "<no-session-id>".into(),
            trace_id: parse.trace_id,
            tin: 1_000,
            tout: 3_007,
            hostname: "test-host".into(),
            eoi: 0,
            ess: 0,
            busy: 7,
            polls: 3,
            cancelled: false,
            panicked: false,
        }
    );
    assert_eq!((parse.eoi, parse.ess), (1, 1));
    assert_eq!((parse.tin, parse.tout), (2_003, 3_007));
    assert_eq!((parse.busy, parse.polls), (4, 2));
}

#[test]
fn a_future_that_is_dropped_is_flagged_as_cancelled() {
    let recording = Recording::start();
    let mut future = Box::pin(fetch(&recording.clock, 5));
    assert!(poll_once(future.as_mut()).is_pending());
    recording.clock.advance(20);
    drop(future);
    let records: Vec<AsyncOperationExecutionRecord> = of_type(&recording.finish_all());
    let [fetch] = records.as_slice() else {
        panic!("{records:?}");
    };
    assert!(fetch.cancelled && !fetch.panicked);
    assert_eq!(
        (fetch.tout - fetch.tin, fetch.busy, fetch.polls),
        (23, 3, 1)
    );
}

#[test]
fn a_panic_is_flagged_as_such_and_its_poll_counts() {
    #[probe(busy)]
    async fn explode(clock: &TestClock) {
        clock.advance(2);
        std::panic::resume_unwind(Box::new(()));
    }
    let recording = Recording::start();
    let clock = recording.clock.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(explode(&clock)))).is_err());
    let records: Vec<AsyncOperationExecutionRecord> = of_type(&recording.finish_all());
    assert!(records[0].panicked && !records[0].cancelled);
    assert_eq!((records[0].busy, records[0].polls), (2, 1));
}

#[test]
fn full_records_beside_durations_can_be_busy_ones_and_functions_that_never_wait_stay_as_they_are() {
    #[probe(record = duration, full = 1/2, busy)]
    async fn often() {
        yield_times(1).await;
    }
    #[probe(sample = 1/2, busy)]
    async fn seldom() {}
    #[probe(busy)]
    fn at_once() {}
    let recording = Recording::start();
    for _ in 0..10 {
        block_on(often());
        block_on(seldom());
        at_once();
    }
    let batches = recording.finish_all();
    assert_eq!(of_type::<DurationRecord>(&batches).len(), 10);
    let records: Vec<AsyncOperationExecutionRecord> = of_type(&batches);
    let of = |name: &str| {
        let named = records.iter();
        named
            .filter(|it| it.operation_signature.contains(name))
            .count()
    };
    assert_eq!((of("often"), of("seldom"), records.len()), (5, 5, 10));
}

#[test]
fn busy_times_in_ticks_become_nanoseconds() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    let controller = Controller::builder(Box::new(medium.writer()))
        .clock(Clock::Ticks)
        .metadata_record(false)
        .start()
        .unwrap();
    controller.install();
    let clock = TestClock::new(0);
    let begin = std::time::Instant::now();
    block_on(fetch(&clock, 1_000));
    let took = begin.elapsed();
    controller.shutdown(std::time::Duration::from_secs(10));
    let records: Vec<AsyncOperationExecutionRecord> = of_type(&drain(&medium));
    let fetch = records.last().unwrap();
    assert_eq!((fetch.polls, records.len()), (1_002, 2));
    let total = u64::try_from(fetch.tout - fetch.tin).unwrap();
    assert!(fetch.busy > 0 && fetch.busy <= total, "{fetch:?}");
    // A percent, for the counter's frequency is measured.
    let most = took + took / 100;
    assert!(u128::from(total) <= most.as_nanos(), "{total} {took:?}");
}
