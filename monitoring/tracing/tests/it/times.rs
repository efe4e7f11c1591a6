//! Busy and idle times, and links between spans.

use std::future::poll_fn;
use std::task::Poll;

use tracing::{Instrument as _, info_span};

use super::support::Recording;

#[test]
fn a_task_is_busy_in_its_polls_and_idle_between() {
    let recording = Recording::start();
    let clock = recording.clock.clone();
    let mut polls = 0;
    let future = poll_fn(|task| {
        clock.advance(100);
        polls += 1;
        task.waker().wake_by_ref();
        if polls == 3 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    let span = info_span!("task");
    recording.clock.advance(7);
    let mut future = Box::pin(future.instrument(span));
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    while future.as_mut().poll(&mut task).is_pending() {
        recording.clock.advance(20);
    }
    drop(future);
    let records = recording.finish();
    let end = records.end("task");
    // The span is entered once more when the future is dropped.
    assert_eq!((end.signed("tin"), end.signed("tout")), (1_000, 1_347));
    assert_eq!((end.unsigned("busy"), end.unsigned("idle")), (300, 47));
}

#[test]
fn a_clock_that_is_set_back_makes_no_time_negative() {
    let recording = Recording::start();
    let span = info_span!("span");
    span.in_scope(|| recording.clock.set(500));
    drop(span);
    let records = recording.finish();
    let end = records.end("span");
    assert_eq!((end.signed("tin"), end.signed("tout")), (1_000, 1_000));
    assert_eq!((end.unsigned("busy"), end.unsigned("idle")), (0, 0));
}

#[test]
fn a_span_that_follows_from_others_has_a_record_of_each() {
    let recording = Recording::start();
    let (cause, other) = (info_span!("cause"), info_span!("other"));
    let effect = info_span!(parent: &other, "effect");
    effect.follows_from(&cause);
    effect.follows_from(&other);
    drop((cause, other, effect));
    let records = recording.finish();
    let links = records.of_type("baler.SpanLinkRecord");
    let effect = records.end("effect");
    for (link, name) in links.iter().zip(["cause", "other"]) {
        let followed = records.end(name);
        assert_eq!((link.trace(), link.id()), (effect.trace(), effect.id()));
        assert_eq!(link.unsigned("followedSpanId"), followed.id());
        assert_eq!(
            link.unsigned("followedTraceLow"),
            followed.unsigned("w3cTraceLow")
        );
        assert_eq!(
            link.unsigned("followedTraceHigh"),
            followed.unsigned("w3cTraceHigh")
        );
    }
    assert_eq!(links.len(), 2);
}

#[test]
fn a_link_to_a_span_that_has_ended_is_counted_as_lost() {
    let recording = Recording::start();
    let lost = recording.lost.clone();
    let cause = info_span!("cause");
    let id = cause.id();
    drop(cause);
    info_span!("effect").follows_from(id);
    let records = recording.finish_with_losses();
    assert_eq!((records.ends().len(), lost.count()), (2, 1));
}
