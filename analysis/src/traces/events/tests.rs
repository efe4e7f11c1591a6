use super::EventKind::{After, AfterFailed, Before};
use super::*;

fn event(order: i32, kind: EventKind, operation: u32) -> Event {
    Event {
        order,
        kind,
        time: i64::from(order) * 10,
        operation: KindId(operation),
    }
}

/// 1 calls 2 and 3; 3 fails.
fn whole() -> Vec<Event> {
    vec![
        event(0, Before, 1),
        event(1, Before, 2),
        event(2, After, 2),
        event(3, Before, 3),
        event(4, AfterFailed, 3),
        event(5, After, 1),
    ]
}

fn made(events: &[Event], repair: bool) -> Result<EventCalls, Reason> {
    EventCalls::of(events, repair, |kind| OperationId(kind.0))
}

fn shape(calls: &EventCalls) -> Vec<(u32, i32)> {
    let calls = calls.calls.iter();
    calls.map(|call| (call.operation.0, call.ess)).collect()
}

#[test]
fn events_become_calls() {
    let calls = made(&whole(), false).unwrap();
    assert_eq!(shape(&calls), [(1, 0), (2, 1), (3, 1)]);
    assert_eq!(calls.event_calls, [0, 1, 0, 2, 0, 0]);
    let failed: Vec<_> = calls.calls.iter().map(|call| call.failed).collect();
    assert_eq!((failed, calls.added), (vec![false, false, true], 0));
    assert_eq!(calls.calls[1].nanos(), 10);
}

#[test]
fn any_end_that_is_missing_is_repaired_and_any_beginning_is_not() {
    for missing in 0..6 {
        let mut events = whole();
        let removed = events.remove(missing);
        let plain = made(&events, false).unwrap_err();
        let repaired = made(&events, true);
        if removed.kind == Before {
            assert_eq!(repaired.unwrap_err(), Reason::EventMissing, "{missing}");
            assert_eq!(plain, Reason::EventMissing);
        } else {
            let repaired = repaired.unwrap();
            assert_eq!(shape(&repaired), [(1, 0), (2, 1), (3, 1)], "{missing}");
            assert_eq!(repaired.added, 1);
        }
    }
    let repaired = made(&whole()[..2], true).unwrap();
    assert_eq!(
        (shape(&repaired), repaired.added),
        (vec![(1, 0), (2, 1)], 2)
    );
    assert_eq!(
        made(&whole()[..2], false).unwrap_err(),
        Reason::AfterMissing
    );
}

#[test]
fn contradictions_are_named() {
    let mut events = whole();
    events[2].operation = KindId(9);
    assert_eq!(made(&events, true).unwrap_err(), Reason::AfterMismatch);
    let mut events = whole();
    events[2].order = 1;
    assert_eq!(made(&events, true).unwrap_err(), Reason::OrderRepeated);
    assert_eq!(
        made(&whole()[2..3], true).unwrap_err(),
        Reason::EventMissing
    );
}
