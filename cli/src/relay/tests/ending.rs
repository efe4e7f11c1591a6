//! Shutdowns: one deadline, and everything accounted for.

use std::time::{Duration, Instant};

use baler_connector_testkit::{ChunkSource, MemoryMedium, within_patience};

use super::support::{contents, fill, relay, set, soon};

#[test]
fn closing_waits_for_what_is_in_flight() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let labels = fill(&from, ChunkSource::new(1).take(20));
    to.hold_confirmations(true);
    let mut relay = relay(&from, &to);
    within_patience("the chunks are in the sink", || {
        relay
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        (to.len() == 20).then_some(())
    });
    let sink = to.clone();
    let opener = std::thread::spawn(move || sink.hold_confirmations(false));
    let report = relay.close(soon());
    opener.join().unwrap();
    assert_eq!((report.stats.forwarded, report.stats.given_back), (20, 0));
    assert!(from.is_empty());
    assert_eq!(set(&contents(&to)), labels);
}

#[test]
fn what_the_sink_does_not_take_until_the_deadline_is_given_back() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let labels = fill(&from, ChunkSource::new(1).take(20));
    to.set_unreachable(true);
    let mut relay = relay(&from, &to);
    within_patience("everything is received", || {
        relay
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        (relay.received() == 20).then_some(())
    });
    let began = Instant::now();
    let deadline = began + Duration::from_millis(200);
    let report = relay.close(deadline);
    assert!(Instant::now() < deadline + Duration::from_secs(10));
    let stats = &report.stats;
    assert_eq!(
        (stats.received, stats.given_back, stats.in_flight),
        (20, 20, 0)
    );
    assert!(stats.adds_up());
    assert_eq!(set(&contents(&from)), labels, "it is still at the source");
    assert!(to.is_empty());
}

#[test]
fn a_relay_that_is_dropped_loses_nothing() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let labels = fill(&from, ChunkSource::new(1).take(20));
    to.hold_confirmations(true);
    let mut first = relay(&from, &to);
    within_patience("the chunks are in the sink", || {
        first
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        (to.len() == 20).then_some(())
    });
    drop(first);
    to.hold_confirmations(false);
    let mut second = relay(&from, &to);
    within_patience("the second one relays them", || {
        second
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        from.is_empty().then_some(())
    });
    let stats = second.close(soon()).stats;
    assert_eq!((stats.redelivered, stats.forwarded), (20, 20));
    let tap = contents(&to);
    assert_eq!((set(&tap), tap.received().len()), (labels, 40));
}
