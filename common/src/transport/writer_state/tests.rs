use std::num::NonZeroUsize;

use super::*;
use crate::transport::window::tests::{capability, chunk};
use crate::transport::writer::tests::Counter;

/// A writer for at most 3 chunks of 8 bytes each, and the count of its notifications.
fn writer() -> (WriterState<()>, Capability, Arc<Counter>) {
    let mut capability = capability(3, 100);
    capability.max_chunk_bytes = NonZeroUsize::new(8).unwrap();
    let writer = WriterState::new("test:", Arc::default(), ());
    let counter = Arc::<Counter>::default();
    writer.notify().set(counter.clone());
    (writer, capability, counter)
}

fn tickets(reports: &[DeliveryReport]) -> Vec<u64> {
    reports.iter().map(|it| it.ticket).collect()
}

fn reason(offered: Result<(), Rejected>) -> RejectReason {
    offered.expect_err("the chunk is not taken").reason
}

fn is_broken(offered: Result<(), Rejected>, message: &str) -> bool {
    matches!(reason(offered), RejectReason::Broken(error) if &*error.message == message)
}

#[test]
fn chunks_are_taken_while_open_and_each_is_reported_once() {
    let (writer, capability, _) = writer();
    let offer = |ticket, bytes| writer.offer(chunk(ticket, bytes), &capability);
    assert!(is_broken(offer(0, 1), "it was not opened"));
    writer.open();
    assert!(matches!(
        reason(offer(0, 9)),
        RejectReason::TooLarge { max_chunk_bytes: 8 }
    ));
    for ticket in 0..3 {
        offer(ticket, 8).unwrap();
    }
    assert!(matches!(reason(offer(3, 1)), RejectReason::Full));
    assert_eq!(writer.lock().queue.len(), 3);
    let mut state = writer.lock();
    assert!(state.answer(1, Outcome::Confirmed) && !state.answer(1, Outcome::Confirmed));
    assert!(state.answer_oldest(Outcome::Confirmed) && state.answer_oldest(Outcome::Confirmed));
    assert!(!state.answer_oldest(Outcome::Confirmed));
    drop(state);
    let mut reports = Vec::new();
    writer.delivery_reports(&mut reports).unwrap();
    writer.delivery_reports(&mut reports).unwrap();
    assert_eq!(tickets(&reports), [1, 0, 2]);
    writer.update(|state| state.is_blocked = true);
    assert!(matches!(reason(offer(3, 1)), RejectReason::Full));
}

#[test]
fn first_failure_stays_until_the_writer_is_opened_again() {
    let (writer, capability, counter) = writer();
    writer.open();
    for ticket in 0..2 {
        writer.offer(chunk(ticket, 1), &capability).unwrap();
    }
    writer.lock().answer_oldest(Outcome::Confirmed);
    writer.fail(Failure::retry("write to", "first"));
    writer.fail(Failure::retry("write to", "second"));
    assert_eq!(counter.count(), 1);
    writer.open();
    assert!(is_broken(writer.offer(chunk(2, 1), &capability), "first"));
    assert!(writer.lock().queue.is_empty(), "the thread sends no more");
    let report = writer.close_report(None);
    assert_eq!(tickets(&report.delivery_reports), [0]);
    assert_eq!(report.unconfirmed, [1]);
    writer.reset();
    assert!(is_broken(
        writer.offer(chunk(2, 1), &capability),
        "it was not opened"
    ));
    writer.open();
    writer.offer(chunk(2, 1), &capability).unwrap();
    assert_eq!(writer.close_report(None).unconfirmed, [2]);
}

#[test]
fn owner_is_notified_of_what_it_waits_for() {
    let (writer, capability, counter) = writer();
    let is_notified = |is_urgent| {
        let before = counter.count();
        writer.answered(writer.lock(), is_urgent);
        counter.count() > before
    };
    writer.open();
    assert!(is_notified(false), "it awaits confirmations");
    writer.notify().set_awaited(false);
    assert!(!is_notified(false));
    assert!(is_notified(true));
    for ticket in 0..3 {
        writer.offer(chunk(ticket, 1), &capability).unwrap();
    }
    assert!(!is_notified(false));
    writer.offer(chunk(3, 1), &capability).unwrap_err();
    assert!(is_notified(false), "it lacks room");
    writer.lock().answer_oldest(Outcome::Confirmed);
    writer.offer(chunk(3, 1), &capability).unwrap();
    assert!(!is_notified(false));
    writer.lock().give_back(3);
    assert!(is_notified(false), "the client has no room");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test needs some instant to wait until"
)]
fn drain_ends_with_the_last_answer_a_failure_or_the_deadline() {
    let (writer, capability, _) = writer();
    let now = Instant::now();
    let drained = || writer.drain(now, now).map(|error| error.message);
    assert_eq!(drained(), None, "it was never opened");
    writer.open();
    assert_eq!(drained(), None);
    writer.offer(chunk(0, 1), &capability).unwrap();
    let late = "not everything was confirmed in time";
    assert_eq!(drained().as_deref(), Some(late));
    assert!(writer.lock().failure().is_some(), "later answers are late");
    writer.reset();
    writer.open();
    writer.offer(chunk(0, 1), &capability).unwrap();
    writer.fail(Failure::retry("write to", "broken"));
    assert_eq!(drained().as_deref(), Some("broken"));
}
