//! Requests that brokers refuse: what passes, what ends a producer, what ends the writing.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use baler_common::transport::{Chunk, RejectReason, RetryClass};
use baler_connector_kafka::{RequestFault, RequestKind};
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive, drive_pair, within_patience,
};

use crate::support::{Kafka, soon};

/// Chunks of eight lanes.
fn chunks(source: &mut ChunkSource, number: u32) -> Vec<Chunk> {
    (0..number).map(|at| source.next(at % 8, 100)).collect()
}

/// Sends while requests of a kind meet these faults, and takes everything on the other side; how
/// often the writer broke.
fn passes(kind: RequestKind, faults: &[RequestFault]) -> usize {
    passes_with(&[], kind, faults)
}

/// The same with settings of the writer.
fn passes_with(settings: &[(&str, &str)], kind: RequestKind, faults: &[RequestFault]) -> usize {
    let kafka = Kafka::with_brokers(2);
    let mut pump = Pump::open(kafka.writer_with(kafka.config_with(settings)));
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    let mut sent = 0;
    for fault in faults {
        pump.push(chunks(&mut source, 24));
        sent += 24;
        kafka.cluster.fail_requests(kind, &[*fault]).unwrap();
        drive_pair(
            &format!("all arrives after {fault:?}"),
            &mut pump,
            &mut tap,
            |pump, tap| pump.is_done() && tap.distinct() == sent,
        );
    }
    assert_eq!(pump.confirmed(), sent);
    tap.assert_ordered();
    pump.breaks()
}

#[test]
fn faults_of_a_moment_are_no_business_of_the_owner() {
    let faults = [
        RequestFault::NotLeader,
        RequestFault::RequestTimedOut,
        RequestFault::NotEnoughReplicas,
        RequestFault::NotEnoughReplicasAfterAppend,
        RequestFault::StorageFailed,
        RequestFault::Disconnect,
    ];
    assert_eq!(passes(RequestKind::Produce, &faults), 0);
}

#[test]
fn errors_that_end_a_producer_make_a_new_one_and_lose_nothing() {
    let faults = [
        RequestFault::InvalidProducerEpoch,
        RequestFault::UnknownProducer,
        RequestFault::OutOfOrderSequence,
        RequestFault::Throttled,
    ];
    // Brokers refuse the requests that were sent behind a refused one, by their sequence numbers. The
    // mock takes them, and they would overtake it.
    let one_by_one = [("max.in.flight", "1")];
    let breaks = passes_with(&one_by_one, RequestKind::Produce, &faults);
    assert!((1..=8).contains(&breaks), "{breaks}");
}

#[test]
fn reader_survives_what_fetches_meet() {
    let faults = [
        RequestFault::NotLeader,
        RequestFault::StorageFailed,
        RequestFault::Disconnect,
    ];
    assert_eq!(passes(RequestKind::Fetch, &faults), 0);
}

#[test]
fn group_survives_what_commits_and_heartbeats_meet() {
    let faults = [
        RequestFault::CoordinatorLoading,
        RequestFault::NotCoordinator,
        RequestFault::CoordinatorNotAvailable,
    ];
    passes(RequestKind::OffsetCommit, &faults);
    passes(RequestKind::Heartbeat, &faults);
}

#[test]
fn writing_that_is_not_allowed_is_final() {
    for fault in [
        RequestFault::TopicAuthorizationFailed,
        RequestFault::ClusterAuthorizationFailed,
    ] {
        let kafka = Kafka::fresh();
        let mut writer = kafka.writer_with(kafka.config());
        writer.reopen(soon()).unwrap();
        let produce = RequestKind::Produce;
        kafka.cluster.fail_requests(produce, &[fault]).unwrap();
        let chunk = ChunkSource::new(1).next(0, 100);
        writer.offer(chunk).unwrap();
        let error = within_patience("it is told", || {
            writer.delivery_reports(&mut Vec::new()).err()
        });
        assert_eq!(error.class, RetryClass::Final, "{error}");
    }
}

#[test]
fn full_window_hands_back_what_is_too_much_while_brokers_are_away() {
    let kafka = Kafka::fresh();
    let mut writer = kafka.writer_with(kafka.config());
    writer.reopen(soon()).unwrap();
    kafka.cluster.broker_down(1).unwrap();
    let mut source = ChunkSource::new(1);
    let mut taken = HashSet::new();
    let rejected = loop {
        let chunk = source.next(0, 100);
        let ticket = chunk.ticket;
        match writer.offer(chunk) {
            Ok(()) => taken.insert(ticket),
            Err(rejected) => break rejected,
        };
    };
    assert!(
        matches!(rejected.reason, RejectReason::Full),
        "{rejected:?}"
    );
    assert_eq!(taken.len(), writer.capability().window_chunks.get());
    kafka.cluster.broker_up(1).unwrap();
    let mut delivery_reports = Vec::new();
    within_patience("all that was taken is confirmed", || {
        writer.delivery_reports(&mut delivery_reports).unwrap();
        (delivery_reports.len() == taken.len()).then_some(())
    });
    let confirmed: HashSet<_> = delivery_reports.iter().map(|it| it.ticket).collect();
    assert_eq!(confirmed, taken);
}

#[test]
fn readers_killed_while_chunks_flow_lose_nothing() {
    let kafka = Kafka::with_brokers(2);
    let mut source = ChunkSource::new(1);
    let mut pump = [Pump::open(kafka.writer_with(kafka.config()))];
    let mut taps = vec![Tap::new(kafka.reader_with(kafka.config()))];
    let mut gone = HashSet::new();
    let mut sent = 0;
    for round in 0..4 {
        pump[0].push(chunks(&mut source, 80));
        sent += 80;
        drive("it is confirmed", &mut pump, &mut taps, |pumps, _| {
            pumps[0].is_done()
        });
        taps.push(Tap::new(kafka.reader_with(kafka.config())));
        if round % 2 == 1 {
            // It ends without settling what it holds: dropped, not closed.
            let killed = taps.remove(0);
            gone.extend(killed.received().iter().copied());
            drop(killed);
        }
    }
    drive("all arrives", &mut pump, &mut taps, |_, taps| {
        let all = taps.iter().flat_map(|tap| tap.received());
        let all: HashSet<_> = all.chain(&gone).collect();
        all.len() == sent
    });
    assert_eq!(pump[0].confirmed(), sent);
}

#[test]
fn static_member_that_comes_back_soon_moves_nothing() {
    let kafka = Kafka::fresh();
    // The mock has the group deal its partitions again; this assignor leaves them where they are.
    let assignor = ("partition.assignment.strategy", "cooperative-sticky");
    let member = |name| kafka.config_with(&[("group.instance.id", name), assignor]);
    let mut taps = vec![
        Tap::new(kafka.reader_with(member("a"))),
        Tap::new(kafka.reader_with(member("b"))),
    ];
    let mut pump = [Pump::open(kafka.writer_with(kafka.config()))];
    let mut source = ChunkSource::new(1);
    let mut sent = 0;
    let by = Instant::now() + PATIENCE;
    while taps.iter().any(|tap| tap.received().is_empty()) {
        assert!(Instant::now() < by, "a reader gets nothing");
        pump[0].push(chunks(&mut source, 16));
        sent += 16;
        drive("it is confirmed", &mut pump, &mut taps, |pumps, _| {
            pumps[0].is_done()
        });
    }
    let before = taps[0].reader().stats().rebalances;
    let (left, report) = taps.remove(1).close(soon());
    assert!(report.error.is_none(), "{report:?}");
    taps.push(Tap::new(kafka.reader_with(member("b"))));
    pump[0].push(chunks(&mut source, 64));
    sent += 64;
    drive("all arrives", &mut pump, &mut taps, |pumps, taps| {
        let all = taps.iter().chain([&left]).flat_map(|tap| tap.received());
        pumps[0].is_done() && all.collect::<HashSet<_>>().len() == sent
    });
    assert!(
        !taps[1].received().is_empty(),
        "it has its partitions again"
    );
    taps[0].poll(Duration::from_millis(100));
    assert_eq!(taps[0].reader().stats().rebalances, before);
}
