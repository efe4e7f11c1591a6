//! The sampler of threads: which calls it sees, and on which it leaves no mark.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Scope};
use std::time::Duration;

use baler_common::record::sampling::ThreadSampleRecord;
use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_monitoring::{Controller, Sampler, enter, probe};

use crate::probe::recording::one_at_a_time;
use crate::support::{Medium, PATIENCE, await_that, of_type, plain};

/// No probe records, and threads are sampled.
const ONLY_SAMPLED: &str = "- *\n+ %THREADS";

fn patterns(text: &str) -> PatternList {
    let (list, errors) = PatternList::parse(text, Dialect::Strict);
    assert_eq!(errors, []);
    list
}

/// A sampler, and the chunks that it fills.
struct Sampling {
    controller: Controller,
    medium: Medium,
}

impl Sampling {
    fn start() -> Self {
        let medium = Medium::default();
        let controller = plain(medium.writer(8))
            .patterns(patterns(ONLY_SAMPLED))
            .sampler(Sampler::Threads, Duration::from_millis(1))
            .start()
            .unwrap();
        controller.install();
        Self { controller, medium }
    }

    /// Waits for new samples of `threads` threads, and returns a last one of each.
    fn look(&self, threads: usize) -> Vec<ThreadSampleRecord> {
        let samples = || {
            self.controller.flush(PATIENCE).unwrap();
            of_type::<ThreadSampleRecord>(&self.medium)
        };
        let round = |samples: &[ThreadSampleRecord]| samples.last().map_or(0, |it| it.round);
        // A sample that was taken meanwhile may show the past.
        let before = round(&samples()) + 1;
        let mut seen = Vec::new();
        await_that("samples", || {
            let samples = samples();
            let last = round(&samples);
            seen = samples.into_iter().filter(|it| it.round == last).collect();
            last > before && seen.len() == threads
        });
        seen
    }

    /// Waits until nothing is seen for some time.
    fn await_nothing(&self) {
        let records = || self.controller.sampler_stats().records;
        await_that("samples to end", || {
            let before = records();
            thread::park_timeout(Duration::from_millis(20));
            records() == before
        });
    }

    fn end(self) {
        let report = self.controller.shutdown(PATIENCE);
        assert!(report.adds_up(), "{report}");
        assert_eq!(self.controller.sampler_stats().failed, 0);
    }
}

/// The operations of a sample, the outermost first.
fn stack(sample: &ThreadSampleRecord) -> String {
    let stack = format!("{};{}", sample.callers, sample.operation_signature);
    stack.trim_start_matches(';').to_owned()
}

fn stacks(samples: &[ThreadSampleRecord]) -> Vec<String> {
    let mut stacks: Vec<_> = samples.iter().map(stack).collect();
    stacks.sort();
    stacks
}

/// Lets calls wait.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// The calls that have come.
    calls: usize,
    is_open: bool,
}

impl Gate {
    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |it| !it.is_open).unwrap());
    }

    /// Waits until this number of calls wait at the gate. A sample taken earlier may show callers only.
    fn await_calls(&self, calls: usize) {
        let state = self.state.lock().unwrap();
        drop(
            self.changed
                .wait_while(state, |it| it.calls < calls)
                .unwrap(),
        );
    }

    fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

/// Opens all gates, also when a check fails.
struct Open<'a>(&'a [Gate]);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(Gate::open);
    }
}

#[probe(name = "s.outer()")]
fn outer(body: impl FnOnce()) {
    body();
}

#[probe(name = "s.inner()")]
fn inner(gate: &Gate) {
    gate.wait();
}

#[probe(name = "s.step()")]
fn step() {}

#[test]
fn inactive_probes_are_sampled_with_their_callers() {
    let _alone = one_at_a_time();
    let sampling = Sampling::start();
    let gates: [Gate; 3] = Default::default();
    thread::scope(|scope| {
        let _open = Open(&gates);
        let [first, second, has_panicked] = &gates;
        let thread = scope.spawn(move || outer(|| inner(first)));
        first.await_calls(1);
        let seen = sampling.look(1).remove(0);
        assert_eq!(
            (stack(&seen).as_str(), seen.depth),
            ("s.outer();s.inner()", 2)
        );
        assert!(seen.interval > 0, "{seen:?}");
        let again = sampling.look(1).remove(0);
        assert!(again.thread == seen.thread && again.round > seen.round);
        first.open();
        thread.join().unwrap();
        sampling.await_nothing();
        // Another thread, and a panic.
        scope.spawn(move || {
            outer(|| {
                let panics = AssertUnwindSafe(|| outer(|| panic!("as planned")));
                catch_unwind(panics).unwrap_err();
                has_panicked.open();
                second.wait();
            });
        });
        has_panicked.wait();
        second.await_calls(1);
        let other = sampling.look(1).remove(0);
        assert_eq!((stack(&other).as_str(), other.depth), ("s.outer()", 1));
        assert!(other.thread > seen.thread, "{other:?}");
    });
    sampling.await_nothing();
    let stats = sampling.controller.sampler_stats();
    // Nothing but samples.
    assert_eq!(sampling.controller.stats().emitted, stats.records);
    sampling.end();
}

#[test]
fn a_sample_of_a_busy_thread_is_one_of_its_stacks() {
    let _alone = one_at_a_time();
    let sampling = Sampling::start();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    outer(|| outer(|| (0..3).for_each(|_| step())));
                }
            });
        }
        await_that("many samples", || {
            sampling.controller.sampler_stats().records >= 400
        });
        is_over.store(true, Ordering::Relaxed);
    });
    sampling.controller.flush(PATIENCE).unwrap();
    for sample in of_type::<ThreadSampleRecord>(&sampling.medium) {
        let stacks = [
            "s.outer()",
            "s.outer();s.outer()",
            "s.outer();s.outer();s.step()",
        ];
        let seen = stack(&sample);
        let depth = usize::try_from(sample.depth).unwrap();
        assert_eq!(
            stacks.iter().position(|it| *it == seen),
            Some(depth - 1),
            "{seen}"
        );
    }
    sampling.end();
}

#[test]
fn patterns_choose_sites_at_run_time() {
    let _alone = one_at_a_time();
    let sampling = Sampling::start();
    let gates: [Gate; 3] = Default::default();
    let run = |gate| move || outer(|| inner(gate));
    thread::scope(|scope| {
        let _open = Open(&gates);
        let [first, second, third] = &gates;
        let thread = scope.spawn(run(first));
        first.await_calls(1);
        assert_eq!(stacks(&sampling.look(1)), ["s.outer();s.inner()"]);
        let controller = &sampling.controller;
        controller.set_sampled_sites(patterns("- *\n+ s.inner()"));
        // A call in progress is no longer seen, but a new one.
        sampling.await_nothing();
        first.open();
        thread.join().unwrap();
        scope.spawn(run(second));
        second.await_calls(1);
        assert_eq!(stacks(&sampling.look(1)), ["s.inner()"]);
        controller.deactivate("%THREADS").unwrap();
        sampling.await_nothing();
        controller.activate("%THREADS").unwrap();
        sampling.await_nothing();
        scope.spawn(run(third));
        third.await_calls(1);
        assert_eq!(stacks(&sampling.look(1)), ["s.inner()"]);
        controller.disable();
        sampling.await_nothing();
    });
    sampling.end();
}

#[test]
fn a_call_is_recorded_if_its_probe_was_active_when_it_began() {
    let _alone = one_at_a_time();
    let sampling = Sampling::start();
    let controller = &sampling.controller;
    let calls = || {
        let stats = controller.stats();
        stats.emitted - controller.sampler_stats().records
    };
    outer(|| {
        controller.activate("s.outer()").unwrap();
        controller.deactivate("%THREADS").unwrap();
        // Not in the middle of a sample.
        sampling.await_nothing();
    });
    assert_eq!(calls(), 0);
    outer(|| outer(|| controller.activate("%THREADS").unwrap()));
    assert_eq!(calls(), 2);
    outer(|| {
        controller.deactivate("s.outer()").unwrap();
        outer(|| ());
    });
    controller.deactivate("%THREADS").unwrap();
    sampling.await_nothing();
    assert_eq!(calls(), 3);
    sampling.end();
}

#[probe(name = "s.events()", record = events)]
fn with_events(gate: &Gate) {
    gate.wait();
}

#[probe(name = "s.duration()", record = duration)]
fn with_duration(gate: &Gate) {
    gate.wait();
}

#[probe(name = "s.aggregated()", record = aggregated)]
fn with_sums(gate: &Gate) {
    gate.wait();
}

/// Only some calls are probed.
#[probe(name = "s.some()", sample = 1/1)]
fn with_some(gate: &Gate) {
    gate.wait();
}

#[probe(name = "s.full()", record = aggregated, full = 1/1)]
fn with_full(gate: &Gate) {
    gate.wait();
}

fn with_block(gate: &Gate) {
    let _operation = enter!("s.block()");
    // May be held over an `.await`.
    let _duration = enter!("s.hidden()", record = duration);
    gate.wait();
}

#[test]
fn all_kinds_of_records_are_sampled_whether_they_are_recorded_or_not() {
    let _alone = one_at_a_time();
    for switch in [Controller::deactivate, Controller::activate] {
        let sampling = Sampling::start();
        switch(&sampling.controller, "s.*()").unwrap();
        let gates: [Gate; 1] = Default::default();
        thread::scope(|scope| {
            let _open = Open(&gates);
            let [gate] = &gates;
            let calls = [
                with_events,
                with_duration,
                with_sums,
                with_some,
                with_full,
                with_block,
            ];
            for call in calls {
                scope.spawn(move || call(gate));
            }
            gate.await_calls(calls.len());
            let seen = ["s.aggregated()", "s.block()", "s.duration()", "s.events()"];
            assert_eq!(stacks(&sampling.look(4)), seen);
        });
        sampling.await_nothing();
        sampling.end();
    }
}

#[probe(name = "s.task()")]
async fn task(pause: impl Future<Output = ()>, gate: &Gate) {
    pause.await;
    with_time().await;
    inner(gate);
}

#[probe(name = "s.hidden()", record = duration)]
async fn with_time() {}

/// Waits once.
fn pause() -> impl Future<Output = ()> {
    let mut has_waited = false;
    std::future::poll_fn(move |_| {
        if std::mem::replace(&mut has_waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

#[test]
fn a_future_is_seen_while_it_is_polled() {
    let _alone = one_at_a_time();
    for switch in [Controller::deactivate, Controller::activate] {
        let sampling = Sampling::start();
        switch(&sampling.controller, "s.*()").unwrap();
        let gates: [Gate; 1] = Default::default();
        thread::scope(|scope| {
            let _open = Open(&gates);
            let [gate] = &gates;
            let mut future = Box::pin(task(pause(), gate));
            let mut context = Context::from_waker(Waker::noop());
            assert!(future.as_mut().poll(&mut context).is_pending());
            sampling.await_nothing();
            poll_elsewhere(scope, future);
            gate.await_calls(1);
            assert_eq!(stacks(&sampling.look(1)), ["s.task();s.inner()"]);
        });
        sampling.await_nothing();
        sampling.end();
    }
}

fn poll_elsewhere<'scope>(
    scope: &'scope Scope<'scope, '_>,
    future: impl Future<Output = ()> + Send + 'scope,
) {
    scope.spawn(move || {
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(future).poll(&mut context).is_ready());
    });
}
