//! Calls whose future is dropped, or panics, before it is done.

use std::panic::{AssertUnwindSafe, catch_unwind};

use baler_monitoring::{TestClock, TraceContext, probe};

use super::asynchronous::{block_on, poll_once, yield_times};
use super::recording::{Recording, reconstruct};

#[probe]
async fn request(clock: &TestClock) {
    clock.advance(5);
    wait().await;
    clock.advance(1_000_000);
}

#[probe]
async fn wait() {
    yield_times(1_000).await;
}

#[test]
fn a_cancelled_call_is_recorded_until_its_cancellation() {
    let recording = Recording::start();
    let mut future = Box::pin(request(&recording.clock));
    assert!(poll_once(future.as_mut()).is_pending());
    recording.clock.advance(20);
    drop(future);
    let records = recording.finish();
    assert_eq!(reconstruct(&records), ["request(wait)"]);
    assert_eq!((records[1].tin, records[1].tout), (1_000, 1_025));
}

#[test]
fn a_future_that_was_never_polled_is_no_call() {
    let recording = Recording::start();
    drop(request(&recording.clock));
    assert_eq!(recording.finish(), []);
}

#[test]
fn a_call_cancelled_by_another_thread_keeps_its_trace() {
    #[probe]
    fn elsewhere(cancel: impl FnOnce()) {
        cancel();
    }
    let recording = Recording::start();
    let clock = recording.clock.clone();
    let mut future = Box::pin(async move { request(&clock).await });
    assert!(poll_once(future.as_mut()).is_pending());
    std::thread::spawn(move || elsewhere(|| drop(future)))
        .join()
        .unwrap();
    assert_eq!(
        reconstruct(&recording.finish()),
        ["elsewhere", "request(wait)"]
    );
}

#[probe]
async fn fail() {
    step();
    yield_times(1).await;
    panic!("on purpose");
}

#[probe]
fn step() {}

#[test]
fn a_panic_in_a_poll_restores_the_context_of_the_thread() {
    #[probe]
    fn poller() {
        assert!(catch_unwind(AssertUnwindSafe(|| block_on(fail()))).is_err());
        step();
    }
    let recording = Recording::start();
    poller();
    assert_eq!(TraceContext::current().trace_id(), None);
    assert_eq!(
        reconstruct(&recording.finish()),
        ["poller(fail(step) step)"]
    );
}
