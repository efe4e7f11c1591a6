//! The parents of spans: on one thread, across threads and tasks, and with a filter.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use tracing::dispatcher::with_default;
use tracing::instrument::WithSubscriber as _;
use tracing::{Instrument as _, info_span, instrument, trace_span};
use tracing_subscriber::layer::{Identity, SubscriberExt as _};
use tracing_subscriber::{EnvFilter, Layer as _, registry};

use super::support::{Recording, Records};

#[test]
fn spans_are_nested_as_they_are_entered() {
    let recording = Recording::start();
    info_span!("outer").in_scope(|| {
        info_span!("first").in_scope(|| ());
        info_span!("second").in_scope(|| info_span!("inner").in_scope(|| ()));
    });
    let records = recording.finish();
    records.assert_paired();
    let places = ["outer", "first", "second", "inner"].map(|name| records.end(name));
    let trace = places[0].trace();
    assert!(places.iter().all(|it| it.trace() == trace && trace != 0));
    let parents = places.map(|it| it.parent());
    assert_eq!(parents, [0, places[0].id(), places[0].id(), places[2].id()]);
    // As calls in Kieker's order, too.
    let id = places[0].signed("traceId");
    let places = places.map(|it| it.place());
    assert_eq!(places, [(id, 0, 0), (id, 1, 1), (id, 2, 1), (id, 3, 2)]);
}

#[test]
fn a_root_begins_a_trace_even_within_another_span() {
    let recording = Recording::start();
    let _outer = info_span!("outer").entered();
    info_span!(parent: None, "root").in_scope(|| info_span!("child").in_scope(|| ()));
    drop(_outer);
    let records = recording.finish();
    let [outer, root, child] = ["outer", "root", "child"].map(|name| records.end(name));
    assert_ne!(outer.trace(), root.trace());
    assert_eq!((root.parent(), child.parent()), (0, root.id()));
    assert_eq!((root.signed("eoi"), root.signed("ess")), (0, 0));
    assert_eq!(child.trace(), root.trace());
}

#[test]
fn an_explicit_parent_counts_on_any_thread() {
    let recording = Recording::start();
    let parent = info_span!("parent");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                with_default(&recording.dispatch, || {
                    let _other = info_span!("other").entered();
                    for _ in 0..50 {
                        info_span!(parent: &parent, "child").in_scope(|| ());
                    }
                });
            });
        }
    });
    drop(parent);
    let records = recording.finish();
    records.assert_paired();
    let parent = records.end("parent");
    let children: Vec<_> = records
        .ends()
        .into_iter()
        .filter(|it| it.text("name") == "child")
        .collect();
    assert_eq!(children.len(), 400);
    let ids: BTreeSet<_> = children.iter().map(|it| it.id()).collect();
    assert_eq!(ids.len(), 400);
    for child in children {
        assert_eq!(
            (child.trace(), child.parent()),
            (parent.trace(), parent.id())
        );
        assert_eq!(child.signed("ess"), 1);
    }
}

#[test]
fn spans_left_in_another_order_keep_their_parents() {
    let recording = Recording::start();
    let first = info_span!("first").entered();
    let second = info_span!("second").entered();
    drop(first);
    info_span!("in_second").in_scope(|| ());
    drop(second);
    info_span!("alone").in_scope(|| ());
    let records = recording.finish();
    let second = records.end("second");
    assert_eq!(records.end("in_second").parent(), second.id());
    assert_eq!(records.end("alone").parent(), 0);
    assert_ne!(records.end("alone").trace(), second.trace());
    assert_eq!(records.end("alone").signed("ess"), 0);
}

#[test]
fn a_span_that_a_thread_enters_twice_is_left_once() {
    let recording = Recording::start();
    let span = info_span!("span");
    span.in_scope(|| {
        span.in_scope(|| recording.clock.advance(5));
        recording.clock.advance(5);
        info_span!("child").in_scope(|| ());
    });
    drop(span);
    info_span!("alone").in_scope(|| ());
    let records = recording.finish();
    let span = records.end("span");
    assert_eq!(records.end("child").parent(), span.id());
    assert_eq!(records.end("alone").parent(), 0);
    assert_eq!(span.unsigned("busy"), 10);
}

#[instrument]
async fn request(number: u64) {
    tokio::task::yield_now().await;
    let branches = (0..3).map(|_| tokio::spawn(step(number).in_current_span()));
    let branches: Vec<_> = branches.collect();
    step(number).await;
    for branch in branches {
        branch.await.unwrap();
    }
}

#[instrument]
async fn step(number: u64) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
        trace_span!("leaf", number).in_scope(|| ());
    }
}

fn number_of(records: &Records) -> BTreeMap<(u128, u64), (&str, u64, u64)> {
    let ends = records.ends().into_iter();
    ends.map(|end| {
        let data = (end.text("name"), end.unsigned("number"), end.parent());
        ((end.trace(), end.id()), data)
    })
    .collect()
}

#[test]
fn tasks_on_eight_threads_never_take_the_parent_of_another_task() {
    let recording = Recording::start();
    let runtime = recording.runtime(8);
    let tasks: Vec<_> = (0..100)
        .map(|number| runtime.spawn(request(number)))
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    drop(runtime);
    let records = recording.finish();
    records.assert_paired();
    let spans = number_of(&records);
    assert_eq!(spans.len(), 100 * (1 + 4 + 12));
    for ((trace, _), (name, number, parent)) in &spans {
        let parent = spans.get(&(*trace, *parent));
        let expected = match *name {
            "request" => None,
            "step" => Some(("request", *number)),
            _ => Some(("step", *number)),
        };
        assert_eq!(parent.map(|it| (it.0, it.1)), expected);
    }
}

#[test]
fn a_cancelled_request_ends_and_a_leaked_span_only_starts() {
    let recording = Recording::start();
    let runtime = recording.runtime(2);
    let task = runtime.spawn(
        async {
            let _inner = std::future::pending::<()>()
                .instrument(info_span!("waits"))
                .await;
        }
        .instrument(info_span!("cancelled"))
        .with_current_subscriber(),
    );
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    drop(runtime);
    std::mem::forget(info_span!("hangs", path = "/slow"));
    let records = recording.finish();
    records.assert_paired();
    assert_eq!(records.end("cancelled").parent(), 0);
    let starts = records.starts();
    let hanging: Vec<_> = starts
        .iter()
        .filter(|it| it.text("name") == "hangs")
        .collect();
    assert_eq!(hanging.len(), 1);
    assert_eq!(hanging[0].text("path"), "/slow");
    assert_eq!(starts.len(), records.ends().len() + 1);
}

#[test]
fn a_span_that_is_filtered_is_left_out_of_its_trace() {
    let recording =
        Recording::with(|layer| registry().with(EnvFilter::new("info").and_then(layer)));
    nest();
    assert_nested_without_detail(&recording.finish());

    // The span exists, for another layer.
    let recording = Recording::with(|layer| {
        let layer = layer.with_filter(EnvFilter::new("info"));
        registry().with(layer).with(Identity::new())
    });
    nest();
    assert_nested_without_detail(&recording.finish());
}

fn nest() {
    let outer = info_span!("outer").entered();
    trace_span!("detail").in_scope(|| {
        info_span!("inner").in_scope(|| ());
    });
    drop(outer);
}

fn assert_nested_without_detail(records: &Records) {
    records.assert_paired();
    assert_eq!(records.ends().len(), 2);
    let [outer, inner] = ["outer", "inner"].map(|name| records.end(name));
    assert_eq!(inner.parent(), outer.id());
    assert_eq!(inner.trace(), outer.trace());
}
