use std::sync::Arc;

use baler_common::transport::{RetryClass, TransportError};

use super::*;

fn after(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

/// Returns the lines that appear while nothing moves for `seconds`, with ten checks a second.
fn lines(
    patience: &mut Patience,
    waiting: &Waiting,
    start: Instant,
    seconds: std::ops::Range<u64>,
) -> Vec<String> {
    (seconds.start * 10..seconds.end * 10)
        .filter_map(|tenth| {
            let now = start + Duration::from_millis(tenth * 100);
            patience.look_at(waiting, now).unwrap()
        })
        .collect()
}

#[test]
fn a_wait_is_told_after_two_seconds_then_every_thirty_and_when_it_is_over() {
    let start = Instant::now();
    let mut patience = Patience::new("kafka://h:1/t", None, false);
    let mut waiting = Waiting::default();
    waiting.go_on(start, Some("partitions"));
    assert!(lines(&mut patience, &waiting, start, 0..2).is_empty());
    let first = lines(&mut patience, &waiting, start, 2..32);
    assert_eq!(
        first,
        [
            "waiting for kafka://h:1/t for 2 s: no partitions yet; the wait has no limit (--give-up sets one)"
        ]
    );
    let refused = TransportError::new("connect to", "h:1", RetryClass::Retry, "refused");
    waiting.failed(Arc::new(refused));
    let second = lines(&mut patience, &waiting, start, 32..62);
    assert_eq!(second.len(), 1, "{second:?}");
    assert!(
        second[0].contains("for 32 s: refused; check that it runs"),
        "{second:?}"
    );
    waiting.end();
    let back = patience.look_at(&waiting, after(start, 62)).unwrap();
    assert_eq!(back.unwrap(), "kafka://h:1/t is back after 62 s");
    assert!(lines(&mut patience, &waiting, start, 63..70).is_empty());
}

#[test]
fn a_medium_that_moves_now_and_then_is_told_of_every_thirty_seconds_too() {
    let start = Instant::now();
    let mut patience = Patience::new("null:", None, false);
    let mut told = Vec::new();
    for round in 0..12 {
        let mut waiting = Waiting::default();
        waiting.go_on(after(start, round * 5), None);
        told.extend(lines(
            &mut patience,
            &waiting,
            start,
            round * 5..round * 5 + 5,
        ));
    }
    let waits = told.iter().filter(|line| line.starts_with("waiting"));
    assert_eq!((waits.count(), told.len()), (2, 4), "{told:?}");
    assert!(told[1].contains("back after 5 s"), "{told:?}");
}

#[test]
fn a_medium_is_given_up_when_nothing_moved_for_so_long() {
    let start = Instant::now();
    let most = Duration::from_secs(3);
    let mut patience = Patience::new("tcp://h:1", Some(most), false);
    let mut waiting = Waiting::default();
    waiting.go_on(start, Some("sender"));
    let told = lines(&mut patience, &waiting, start, 0..3);
    assert!(
        told[0].ends_with("it is given up after 3s (--give-up)"),
        "{told:?}"
    );
    let failure = patience.look_at(&waiting, after(start, 3)).unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert_eq!(
        failure.message,
        "gave up on tcp://h:1 after 3 s: no sender yet"
    );
}
