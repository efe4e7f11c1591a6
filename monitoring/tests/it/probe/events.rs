//! Probes that record an event before a call and one after it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use baler_common::record::RecordBatch;
use baler_connector_kieker::types::{
    AfterOperationEvent, AfterOperationFailedEvent, BeforeOperationEvent, TraceMetadata,
};
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{
    Clock, Controller, TestClock, TraceContext, TraceParent, enter, in_trace, probe,
};

use super::asynchronous::{block_on, poll_once, yield_times};
use super::recording::{Recording, drain, of_type, one_at_a_time};

/// An event of any kind.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    trace_id: i64,
    order: i32,
    time: i64,
    operation: String,
    /// `None` for a call that begins, `Some("")` for one that returned.
    end: Option<String>,
}

fn operation(signature: &str) -> String {
    let head = signature.split('(').next().unwrap();
    head.rsplit(['.', ' ']).next().unwrap().to_owned()
}

/// All events of a recording, by trace and order.
fn events(batches: &[RecordBatch]) -> Vec<Event> {
    let before = of_type::<BeforeOperationEvent>(batches).into_iter();
    let before = before.map(|it| {
        (
            it.trace_id,
            it.order_index,
            it.timestamp,
            it.operation_signature,
            None,
        )
    });
    let after = of_type::<AfterOperationEvent>(batches).into_iter();
    let after = after.map(|it| {
        let end = Some(String::new());
        (
            it.trace_id,
            it.order_index,
            it.timestamp,
            it.operation_signature,
            end,
        )
    });
    let failed = of_type::<AfterOperationFailedEvent>(batches).into_iter();
    let failed = failed.map(|it| {
        (
            it.trace_id,
            it.order_index,
            it.timestamp,
            it.operation_signature,
            Some(it.cause),
        )
    });
    let all = before.chain(after).chain(failed);
    let mut all: Vec<_> = all
        .map(|(trace_id, order, time, signature, end)| Event {
            trace_id,
            order,
            time,
            operation: operation(&signature),
            end,
        })
        .collect();
    all.sort_by_key(|event| (event.trace_id, event.order));
    all
}

/// The traces as call trees, `root(first second!cause)`, by their metadata in the order of emission.
///
/// Fails where Kieker's `EventRecordTraceReconstruction` would: if numbers have gaps, if a call
/// ends that is not the innermost one, or if a trace has no metadata.
fn reconstruct(batches: &[RecordBatch]) -> Vec<(TraceMetadata, String)> {
    let mut traces: BTreeMap<i64, Vec<Event>> = BTreeMap::new();
    for event in events(batches) {
        traces.entry(event.trace_id).or_default().push(event);
    }
    let metadata = of_type::<TraceMetadata>(batches);
    assert_eq!(metadata.len(), traces.len(), "{traces:#?}");
    metadata
        .into_iter()
        .map(|metadata| {
            let events = traces.remove(&metadata.trace_id).unwrap();
            let mut tree = String::new();
            let mut open: Vec<&str> = Vec::new();
            for (number, event) in (0_i32..).zip(&events) {
                assert_eq!(event.order, number, "{events:#?}");
                let Some(cause) = &event.end else {
                    if !tree.is_empty() {
                        tree.push(if tree.ends_with('(') { '\0' } else { ' ' });
                    }
                    tree.push_str(&event.operation);
                    tree.push('(');
                    open.push(&event.operation);
                    continue;
                };
                assert_eq!(open.pop(), Some(&*event.operation), "{events:#?}");
                tree.push(')');
                if !cause.is_empty() {
                    tree.push_str(&format!("!{cause}"));
                }
            }
            assert!(open.is_empty(), "{events:#?}");
            (metadata, tree.replace('\0', "").replace("()", ""))
        })
        .collect()
}

fn trees(batches: &[RecordBatch]) -> Vec<String> {
    let traces = reconstruct(batches);
    traces.into_iter().map(|(_, tree)| tree).collect()
}

#[probe(record = events)]
fn order(clock: &TestClock) {
    clock.advance(1);
    check(clock);
    check(clock);
}

#[probe(record = events)]
fn check(clock: &TestClock) {
    clock.advance(10);
}

#[test]
fn a_trace_has_metadata_and_its_events_are_numbered_from_0() {
    let recording = Recording::start();
    order(&recording.clock);
    let batches = recording.finish_all();
    let traces = reconstruct(&batches);
    let [(metadata, tree)] = traces.as_slice() else {
        panic!("{traces:?}");
    };
    assert_eq!(tree, "order(check check)");
    assert_eq!(metadata.parent_trace_id, metadata.trace_id);
    assert_eq!(metadata.parent_order_id, -1);
    assert_eq!(metadata.hostname, "test-host");
    assert_eq!(metadata.session_id, "<no-session-id>");
    assert!(metadata.thread_id > 0);
    let before: Vec<BeforeOperationEvent> = of_type(&batches);
    assert_eq!(
        before[0],
        BeforeOperationEvent {
            timestamp: 1_000,
            trace_id: metadata.trace_id,
            order_index: 0,
            operation_signature: "void it.probe.events.order(TestClock)".into(),
            class_signature: "it.probe.events".into(),
        }
    );
    let times: Vec<_> = events(&batches).iter().map(|event| event.time).collect();
    assert_eq!(times, [1_000, 1_001, 1_011, 1_011, 1_021, 1_021]);
    let logged = batches.iter().flat_map(|batch| batch.records());
    assert_eq!(logged.last().unwrap().timestamp(), Some(1_021));
}

#[test]
fn traces_follow_each_other_and_fill_many_blocks() {
    let recording = Recording::start();
    for _ in 0..3_000 {
        order(&recording.clock);
    }
    let batches = recording.finish_all();
    let trees = trees(&batches);
    assert_eq!(trees.len(), 3_000);
    assert!(trees.iter().all(|tree| tree == "order(check check)"));
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("no {0} left")]
struct Sold(&'static str);

#[probe(record = events, err)]
fn reserve(item: &'static str) -> Result<&'static str, Sold> {
    if item == "hat" {
        return Err(Sold(item));
    }
    Ok(item)
}

#[probe(record = events)]
fn tolerant(item: &'static str) -> Result<&'static str, Sold> {
    reserve(item)?;
    Ok(item)
}

#[test]
fn an_error_that_is_returned_fails_the_operation_if_that_is_asked_for() {
    let recording = Recording::start();
    assert_eq!(tolerant("hat"), Err(Sold("hat")));
    assert_eq!(tolerant("shoe"), Ok("shoe"));
    let batches = recording.finish_all();
    assert_eq!(
        trees(&batches),
        ["tolerant(reserve!no hat left)", "tolerant(reserve)"]
    );
    let failed: Vec<AfterOperationFailedEvent> = of_type(&batches);
    assert_eq!(
        failed[0].operation_signature,
        "Result it.probe.events.reserve(str)"
    );
    assert_eq!(failed[0].class_signature, "it.probe.events");
    assert_eq!((failed[0].timestamp, failed[0].order_index), (1_000, 2));
}

#[probe(record = events)]
fn explode() {
    std::panic::resume_unwind(Box::new(()));
}

#[test]
fn a_panic_fails_all_operations_that_it_leaves_and_none_that_run_meanwhile() {
    struct Cleaner;
    impl Drop for Cleaner {
        fn drop(&mut self) {
            #[probe(record = events)]
            fn clean() {}
            clean();
        }
    }
    #[probe(record = events)]
    fn risky() {
        let _cleaner = Cleaner;
        explode();
    }
    let recording = Recording::start();
    assert!(catch_unwind(risky).is_err());
    order(&recording.clock);
    assert_eq!(
        trees(&recording.finish_all()),
        ["risky(explode!panic clean)!panic", "order(check check)"]
    );
}

#[probe(record = events)]
fn say(what: Option<u32>) -> u32 {
    match what {
        Some(number) => panic!("{number} is wrong"),
        None => panic!("nothing is wrong"),
    }
}

#[probe(record = events, sample = 1/1)]
fn say_by_turns(what: &'static str) {
    std::panic::panic_any(what.to_owned());
}

#[probe(record = events, err)]
fn say_or_fail(what: &str) -> Result<u32, std::num::ParseIntError> {
    let number = what.parse()?;
    Ok(say(Some(number)))
}

#[probe(record = events)]
async fn say_later() {
    yield_times(1).await;
    say(None);
}

#[probe(record = events)]
#[track_caller]
fn say_from() {
    panic!("{}", std::panic::Location::caller().file());
}

#[test]
fn what_a_panic_says_is_the_cause_of_the_failure_and_goes_on() {
    let recording = Recording::start();
    let text = |payload: Box<dyn std::any::Any + Send>| {
        let text = payload.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap().to_string())
    };
    assert_eq!(
        text(catch_unwind(|| say(Some(7))).unwrap_err()),
        "7 is wrong"
    );
    assert_eq!(
        text(catch_unwind(|| say(None)).unwrap_err()),
        "nothing is wrong"
    );
    assert_eq!(text(catch_unwind(|| say_by_turns("a")).unwrap_err()), "a");
    assert!(say_or_fail("x").is_err());
    assert!(catch_unwind(|| say_or_fail("8")).is_err());
    assert!(catch_unwind(|| block_on(say_later())).is_err());
    assert_eq!(text(catch_unwind(|| say_from()).unwrap_err()), file!());
    recording.switch(false);
    assert_eq!(
        text(catch_unwind(|| say(None)).unwrap_err()),
        "nothing is wrong"
    );
    recording.switch(true);
    assert_eq!(
        trees(&recording.finish_all()),
        [
            "say!panic: 7 is wrong",
            "say!panic: nothing is wrong",
            "say_by_turns!panic: a",
            "say_or_fail!invalid digit found in string",
            "say_or_fail(say!panic: 8 is wrong)!panic: 8 is wrong",
            "say_later(say!panic: nothing is wrong)!panic: nothing is wrong",
            "say_from!panic",
        ]
    );
}

struct Till {
    total: u32,
}

#[probe(record = events, err)]
impl Till {
    /// A reference that comes from a captured variable.
    fn total(&mut self) -> Result<&mut u32, std::fmt::Error> {
        self.total += 1;
        Ok(&mut self.total)
    }

    fn count(&self) -> u32 {
        self.total
    }

    fn parsed(mut text: String) -> Result<impl Copy, std::num::ParseIntError> {
        text.push('1');
        let number: u32 = text.parse()?;
        Ok(number)
    }

    async fn fetched(&self, text: &str) -> Result<u32, std::num::ParseIntError> {
        yield_times(1).await;
        Ok(text.parse::<u32>()? + self.total)
    }
}

#[probe(record = events)]
mod depot {
    pub(super) fn store() {
        shelve();
    }

    fn shelve() {}
}

#[test]
fn functions_of_a_block_and_of_a_module_tell_events() {
    let recording = Recording::start();
    let mut till = Till { total: 0 };
    *till.total().unwrap() += 1;
    assert_eq!(till.count(), 2);
    assert!(Till::parsed("x".into()).is_err());
    assert!(Till::parsed("2".into()).is_ok());
    assert_eq!(block_on(till.fetched("40")), Ok(42));
    assert!(block_on(till.fetched("")).is_err());
    depot::store();
    assert_eq!(
        trees(&recording.finish_all()),
        [
            "total",
            "count",
            "parsed!invalid digit found in string",
            "parsed",
            "fetched",
            "fetched!cannot parse integer from empty string",
            "store(shelve)"
        ]
    );
}

#[test]
fn a_guard_tells_events_and_is_told_of_errors() {
    let recording = Recording::start();
    {
        let _outer = enter!("shop.ship()", record = events);
        let mut inner = enter!("shop.pack()", record = events);
        inner.look_at(&Ok::<_, Sold>(1));
        drop(inner);
        let mut inner = enter!("shop.pack()", record = events);
        inner.fail("the box broke");
    }
    assert_eq!(
        trees(&recording.finish_all()),
        ["ship(pack pack!the box broke)"]
    );
}

#[test]
fn what_is_dropped_out_of_order_is_told_so() {
    let recording = Recording::start();
    let outer = enter!("shop.outer()", record = events);
    let inner = enter!("shop.inner()", record = events);
    drop(outer);
    drop(inner);
    order(&recording.clock);
    let events = events(&recording.finish_all());
    let orders: Vec<_> = events.iter().map(|event| event.order).collect();
    assert_eq!(orders, [-1, 0, 1, 2, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn executions_and_events_have_traces_of_their_own() {
    #[probe]
    fn execution(clock: &TestClock) {
        order(clock);
        inner();
    }
    #[probe]
    fn inner() {}
    let recording = Recording::start();
    execution(&recording.clock);
    let batches = recording.finish_all();
    assert_eq!(trees(&batches), ["order(check check)"]);
    let executions: Vec<_> = batches
        .iter()
        .flat_map(RecordBatch::records)
        .filter(|it| it.schema().name().ends_with("ExecutionRecord"))
        .map(super::recording::execution)
        .collect();
    assert_eq!(
        super::recording::reconstruct(&executions),
        ["execution(inner)"]
    );
}

#[probe(record = events)]
async fn deliver(clock: &TestClock, yields: u32) {
    check(clock);
    carry(yields).await;
    check(clock);
}

#[probe(record = events)]
async fn carry(yields: u32) {
    yield_times(yields).await;
}

#[test]
fn a_trace_follows_its_task_over_polls_and_threads() {
    let recording = Recording::start();
    let clock = recording.clock.clone();
    let mut first = Box::pin({
        let clock = clock.clone();
        async move { deliver(&clock, 3).await }
    });
    assert!(poll_once(first.as_mut()).is_pending());
    // Another trace on this thread, while the first one waits.
    order(&clock);
    std::thread::spawn(move || block_on(first)).join().unwrap();
    assert_eq!(
        trees(&recording.finish_all()),
        ["deliver(check carry check)", "order(check check)"]
    );
}

#[test]
fn branches_that_run_at_once_are_traces_that_name_their_parent() {
    #[probe(record = events)]
    async fn both() {
        let (mut one, mut two) = (pin!(carry(2)), pin!(carry(1)));
        assert!(poll_once(one.as_mut()).is_pending());
        assert!(poll_once(two.as_mut()).is_pending());
        two.await;
        one.await;
        carry(0).await;
    }
    let recording = Recording::start();
    block_on(both());
    let traces = reconstruct(&recording.finish_all());
    let trees: Vec<_> = traces.iter().map(|(_, tree)| &**tree).collect();
    assert_eq!(trees, ["both(carry carry)", "carry"]);
    let (first, second) = (&traces[0].0, &traces[1].0);
    assert_eq!(second.parent_trace_id, first.trace_id);
    // The last events before were the beginnings of `both` and of the first `carry`.
    assert_eq!(second.parent_order_id, 1);
}

#[test]
fn another_thread_or_task_begins_a_trace_with_its_parent() {
    let recording = Recording::start();
    let clock = recording.clock.clone();
    {
        let _outer = enter!("shop.outer()", record = events);
        let context = TraceContext::current();
        assert!(context.trace_id().is_some());
        assert!(context.traceparent().is_some());
        let here = context.clone();
        std::thread::spawn(move || {
            let _attached = context.attach();
            order(&clock);
        })
        .join()
        .unwrap();
        block_on(in_trace(here, async { carry(1).await }));
    }
    let traces = reconstruct(&recording.finish_all());
    let find = |name: &str| {
        let found = traces.iter().find(|(_, tree)| tree.starts_with(name));
        &found.unwrap().0
    };
    let outer = find("outer");
    for name in ["order", "carry"] {
        let parent = find(name);
        assert_eq!(
            (parent.parent_trace_id, parent.parent_order_id),
            (outer.trace_id, 0)
        );
    }
    assert_ne!(find("order").thread_id, outer.thread_id);
}

#[test]
fn a_trace_of_another_process_is_the_parent() {
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let parent: TraceParent = header.parse().unwrap();
    let recording = Recording::start();
    {
        let _attached = TraceContext::continuing(&parent).attach();
        order(&recording.clock);
    }
    let traces = reconstruct(&recording.finish_all());
    assert_eq!(traces[0].0.parent_trace_id, parent.kieker_trace_id());
    assert_eq!(traces[0].0.parent_order_id, -1);
}

#[test]
fn a_cancelled_call_and_those_that_it_waits_for_fail() {
    let recording = Recording::start();
    let mut future = Box::pin(deliver(&recording.clock, 9));
    assert!(poll_once(future.as_mut()).is_pending());
    drop(future);
    let mut future = Box::pin(async {
        #[probe(record = events)]
        async fn explode_later() {
            yield_times(1).await;
            explode();
        }
        explode_later().await;
    });
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(future.as_mut()))).is_err());
    drop(future);
    assert_eq!(
        trees(&recording.finish_all()),
        [
            "deliver(check carry!cancelled)!cancelled",
            "explode_later(explode!panic)!panic"
        ]
    );
}

#[test]
fn a_sampled_call_records_its_events() {
    #[probe(record = events, sample = 1/4, err)]
    fn sampled() -> Result<(), Sold> {
        Err(Sold("hat"))
    }
    #[probe(record = events, sample = 1/4)]
    async fn sampled_later() {}
    let recording = Recording::start();
    for _ in 0..40 {
        assert!(sampled().is_err());
        block_on(sampled_later());
    }
    let trees = trees(&recording.finish_all());
    let of = |name: &str| trees.iter().filter(|tree| *tree == name).count();
    assert_eq!((of("sampled!no hat left"), of("sampled_later")), (10, 10));
}

/// With the processor's counter, if it can be trusted: times are then read in another way.
#[test]
fn events_in_ticks_have_times_in_order_and_failures_too() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    let controller = Controller::builder(Box::new(medium.writer()))
        .clock(Clock::Ticks)
        .metadata_record(false)
        .start()
        .unwrap();
    controller.install();
    let before = Clock::System.unix_ns();
    let clock = TestClock::new(0);
    for _ in 0..100 {
        let _outer = enter!("shop.outer()", record = events);
        reserve("hat").unwrap_err();
        order(&clock);
    }
    let after = Clock::System.unix_ns();
    controller.shutdown(std::time::Duration::from_secs(10));
    let batches = drain(&medium);
    let trees = trees(&batches);
    assert_eq!(trees.len(), 100);
    assert_eq!(trees[0], "outer(reserve!no hat left order(check check))");
    // The mapping of ticks to time may be some microseconds off.
    const OFF_NS: i64 = 10_000_000;
    let events = events(&batches);
    for pair in events.windows(2) {
        assert!(pair[0].trace_id != pair[1].trace_id || pair[0].time <= pair[1].time);
    }
    let times = || events.iter().map(|event| event.time);
    assert!(times().min().unwrap() >= before - OFF_NS);
    assert!(times().max().unwrap() <= after + OFF_NS);
}
