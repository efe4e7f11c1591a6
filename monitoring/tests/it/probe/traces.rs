//! Traces: eoi and ess as Kieker counts them, one trace an outermost call, threads apart.

use baler_monitoring::{TraceContext, probe};

use super::recording::{Recording, reconstruct};

#[probe]
fn order() {
    check();
    pay();
    check();
}

#[probe]
fn check() {
    stock();
}

#[probe]
fn pay() {}

#[probe]
fn stock() {}

#[probe]
fn count_down(from: u32) -> u32 {
    if from == 0 { 0 } else { count_down(from - 1) }
}

#[test]
fn eoi_counts_entries_and_ess_the_open_calls() {
    let recording = Recording::start();
    order();
    let records = recording.finish();
    // Records come in the order in which calls end.
    let positions: Vec<_> = records
        .iter()
        .map(|record| (record.operation(), record.eoi, record.ess))
        .collect();
    assert_eq!(
        positions,
        [
            ("stock", 2, 2),
            ("check", 1, 1),
            ("pay", 3, 1),
            ("stock", 5, 2),
            ("check", 4, 1),
            ("order", 0, 0),
        ]
    );
    assert_eq!(
        reconstruct(&records),
        ["order(check(stock) pay check(stock))"]
    );
}

#[test]
fn recursion_nests() {
    let recording = Recording::start();
    assert_eq!(count_down(3), 0);
    assert_eq!(
        reconstruct(&recording.finish()),
        ["count_down(count_down(count_down(count_down)))"]
    );
}

#[test]
fn a_trace_ends_with_its_outermost_call() {
    let recording = Recording::start();
    order();
    assert_eq!(TraceContext::current().trace_id(), None);
    order();
    let records = recording.finish();
    assert_eq!(reconstruct(&records).len(), 2);
    assert_ne!(records[0].trace_id, records[6].trace_id);
}

#[test]
fn threads_in_parallel_have_traces_of_their_own() {
    let recording = Recording::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100).for_each(|_| order()));
        }
    });
    let trees = reconstruct(&recording.finish());
    assert_eq!(trees.len(), 800);
    assert!(
        trees
            .iter()
            .all(|tree| tree == "order(check(stock) pay check(stock))")
    );
}

#[probe]
fn fan_out(threads: usize) {
    let context = TraceContext::current();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let context = context.clone();
            scope.spawn(move || {
                let _attached = context.attach();
                pay();
                pay();
            });
        }
    });
    check();
}

#[test]
fn a_trace_goes_on_in_other_threads_when_it_is_carried_over() {
    let recording = Recording::start();
    fan_out(4);
    let trees = reconstruct(&recording.finish());
    assert_eq!(
        trees,
        ["fan_out(pay pay pay pay pay pay pay pay check(stock))"]
    );
}

#[probe]
fn spawn() {
    std::thread::scope(|scope| {
        scope.spawn(check);
    });
}

#[test]
fn a_new_thread_begins_a_trace_of_its_own() {
    let recording = Recording::start();
    spawn();
    assert_eq!(reconstruct(&recording.finish()), ["check(stock)", "spawn"]);
}

struct CallsAtTheEnd;

impl Drop for CallsAtTheEnd {
    fn drop(&mut self) {
        order();
    }
}

thread_local! {
    static LATE: CallsAtTheEnd = const { CallsAtTheEnd };
}

#[test]
fn calls_in_destructors_of_a_thread_are_recorded() {
    let recording = Recording::start();
    std::thread::spawn(|| LATE.with(|_| ())).join().unwrap();
    assert_eq!(
        reconstruct(&recording.finish()),
        ["order(check(stock) pay check(stock))"]
    );
}
