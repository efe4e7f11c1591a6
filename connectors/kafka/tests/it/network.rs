//! A network that stalls, resets and slows down: a proxy before the cluster.

use std::time::{Duration, Instant};

use baler_connector_testkit::faults::KafkaProxy;
use baler_connector_testkit::{ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive_pair};

use crate::support::{Kafka, config};

/// Timeouts short enough for a connection that says nothing to be given up within the test.
const IMPATIENT: [(&str, &str); 2] = [
    ("socket.timeout.ms", "2000"),
    ("session.timeout.ms", "6000"),
];

/// Sends through the proxy while `fault` happens to it, and takes everything on the other side.
fn survives(mut fault: impl FnMut(&KafkaProxy, u32)) {
    let kafka = Kafka::with_brokers(2);
    let proxy = KafkaProxy::start(kafka.cluster.bootstrap_servers()).unwrap();
    let config = config(proxy.bootstrap_servers())
        .client_settings(&IMPATIENT)
        .unwrap();
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    let mut sent = 8;
    pump.push((0..8).map(|at| source.next(at, 500)));
    // Only then: librdkafka's mock aborts the process when a member that waits for its partitions
    // comes by another connection.
    drive_pair("the group has formed", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 8
    });
    for round in 0..6 {
        let chunks: Vec<_> = (0..40).map(|at| source.next(at % 8, 500)).collect();
        sent += chunks.len();
        pump.push(chunks);
        pump.step();
        fault(&proxy, round);
        let until = Instant::now() + Duration::from_millis(100);
        drive_pair("some pass", &mut pump, &mut tap, |pump, _| {
            pump.is_done() || Instant::now() > until
        });
    }
    proxy.set_frozen(false);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == sent
    });
    assert_eq!(pump.confirmed(), sent);
    tap.assert_ordered();
    assert!(proxy.connections() >= 4, "{}", proxy.connections());
}

#[test]
fn resets_between_frames_and_in_them_lose_nothing() {
    survives(|proxy, round| {
        if round % 2 == 0 {
            proxy.cut();
        } else {
            proxy.cut_after(3001);
        }
    });
}

#[test]
fn half_open_connections_lose_nothing() {
    survives(|proxy, round| proxy.set_frozen(round % 2 == 0));
}

#[test]
fn connections_that_stay_half_open_are_given_up() {
    let kafka = Kafka::fresh();
    let proxy = KafkaProxy::start(kafka.cluster.bootstrap_servers()).unwrap();
    let config = config(proxy.bootstrap_servers())
        .client_settings(&IMPATIENT)
        .unwrap();
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    pump.push(source.take(20));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 20
    });
    let before = proxy.connections();
    proxy.set_frozen(true);
    pump.push(source.take(20));
    pump.step();
    drive_pair(
        "another connection is tried",
        &mut pump,
        &mut tap,
        |_, _| proxy.connections() > before,
    );
    proxy.set_frozen(false);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 40
    });
    tap.assert_ordered();
}

#[test]
fn slow_network_loses_nothing() {
    survives(|proxy, round| {
        proxy.set_delay(Duration::from_millis(u64::from(round % 3) * 20));
        proxy.set_bytes_per_second((round % 2 == 0).then_some(200_000));
    });
}

#[test]
fn quota_holds_both_ends_back_and_is_told_and_loses_nothing() {
    const THROTTLE: Duration = Duration::from_millis(200);
    let kafka = Kafka::fresh();
    let proxy = KafkaProxy::start(kafka.cluster.bootstrap_servers()).unwrap();
    let config = config(proxy.bootstrap_servers());
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    pump.push((0..8).map(|at| source.next(at % 8, 500)));
    drive_pair("the group has formed", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 8
    });
    assert_eq!(pump.writer().stats().throttled, Duration::ZERO);
    assert_eq!(tap.reader().stats().throttled, Duration::ZERO);

    proxy.set_throttle(THROTTLE);
    let mut sent = 8;
    let by = Instant::now() + PATIENCE;
    let mut held_back = Duration::ZERO;
    while pump.writer().stats().throttled < THROTTLE || tap.reader().stats().throttled < THROTTLE {
        assert!(Instant::now() < by, "nobody says that it is held back");
        let start = Instant::now();
        for _ in 0..3 {
            pump.push((0..8).map(|at| source.next(at % 8, 500)));
            sent += 8;
            drive_pair("it arrives", &mut pump, &mut tap, |pump, tap| {
                pump.is_done() && tap.distinct() == sent
            });
        }
        held_back = held_back.max(start.elapsed());
    }
    // The second and the third could not be asked for before.
    assert!(held_back >= THROTTLE * 2, "{held_back:?}");

    proxy.set_throttle(Duration::ZERO);
    pump.push((0..80).map(|at| source.next(at % 8, 500)));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == sent + 80
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (sent + 80, 0));
    assert_eq!(tap.received().len(), sent + 80);
    tap.assert_ordered();
}
