//! Readers that come and go.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkIdentity, ChunkReader, Received, Settled, Verdict};
use baler_connector_kafka::{KafkaConfig, KafkaReader, PartitionBy, RequestFault, RequestKind};
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive, drive_pair, read_label, within_patience,
};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::support::{Kafka, PARTITIONS, TOPIC, config, soon};

/// Chunks of eight lanes, which are spread over the partitions.
fn chunks(source: &mut ChunkSource, number: u32) -> Vec<baler_common::transport::Chunk> {
    (0..number).map(|at| source.next(at % 8, 64)).collect()
}

/// Receives and acknowledges until the readers have nothing and say that they are at their end; how
/// many chunks came.
fn read_to_the_end(readers: &mut [Box<dyn ChunkReader>]) -> usize {
    let (mut received, by) = (0, Instant::now() + PATIENCE);
    loop {
        let mut are_at_end = true;
        for reader in &mut *readers {
            match reader.receive(Instant::now() + Duration::from_millis(20)) {
                Ok(Received::Chunk(delivery)) => {
                    received += 1;
                    reader.settle(delivery.token, Verdict::Ack).unwrap();
                    are_at_end = false;
                }
                Ok(Received::Idle) => are_at_end &= reader.waits_for().is_none(),
                _ => are_at_end = false,
            }
        }
        if are_at_end {
            return received;
        }
        assert!(Instant::now() < by, "{received} chunks, and no end");
    }
}

/// So it is after a topic was made anew while nobody read it.
#[test]
fn a_position_beyond_the_end_is_a_removal() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    pump.push(chunks(&mut ChunkSource::new(1), 40));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let mut positions = TopicPartitionList::new();
    for partition in 0..i32::from(PARTITIONS) {
        let offset = Offset::Offset(500);
        positions
            .add_partition_offset(TOPIC, partition, offset)
            .unwrap();
    }
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.cluster.bootstrap_servers())
        .set("group.id", "late")
        .create()
        .unwrap();
    client.commit(&positions, CommitMode::Sync).unwrap();
    drop(client);
    let open = || {
        let mut reader = kafka.reader_with(kafka.config_with(&[("group.id", "late")]));
        reader.set_demand(1_000);
        [reader]
    };
    let mut readers = open();
    assert_eq!(read_to_the_end(&mut readers), 40);
    assert_eq!(readers[0].stats().removals, u64::from(PARTITIONS));
    let [first] = readers;
    first.close(soon());
    // The group has gone back.
    let mut readers = open();
    assert_eq!(read_to_the_end(&mut readers), 0);
    assert_eq!(readers[0].stats().removals, 0);
}

/// Receives until partitions are assigned. Returns the last chunk of each lane that the group settled.
fn settled_before(reader: &mut dyn ChunkReader) -> Vec<ChunkIdentity> {
    within_patience("partitions are assigned", || {
        match reader.receive(Instant::now() + Duration::from_millis(20)) {
            Ok(Received::Assigned { settled, .. }) => Some(settled),
            _ => None,
        }
    })
}

#[test]
fn group_keeps_the_last_chunk_of_each_lane() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    pump.push(chunks(&mut ChunkSource::new(1), 42));
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    drive_pair("all are settled", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 42
    });
    tap.close(soon());
    let mut reader = kafka.reader_with(kafka.config());
    let mut settled = settled_before(&mut *reader);
    settled.sort();
    let last: Vec<_> = settled.iter().map(|it| (it.lane, it.sequence)).collect();
    let expected = (0..8).map(|lane| (lane, if lane < 2 { 5 } else { 4 }));
    assert_eq!(last, expected.collect::<Vec<_>>());
}

/// As brokers with a small `offset.metadata.max.bytes` do.
#[test]
fn group_commits_without_lanes_if_brokers_refuse_them() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    pump.push(chunks(&mut ChunkSource::new(1), 40));
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let refused = [RequestFault::OffsetMetadataTooLarge];
    let commit = RequestKind::OffsetCommit;
    kafka.cluster.fail_requests(commit, &refused).unwrap();
    drive_pair("all are settled", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 40
    });
    let (_, report) = tap.close(soon());
    assert!(report.error.is_none(), "{report:?}");
    let mut readers = [kafka.reader_with(kafka.config())];
    readers[0].set_demand(1_000);
    assert_eq!(settled_before(&mut *readers[0]), []);
    assert_eq!(read_to_the_end(&mut readers), 0);
}

#[test]
fn new_group_is_at_its_end_when_it_has_everything_and_not_before() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    pump.push(chunks(&mut source, 200));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let mut reader = kafka.reader_with(kafka.config());
    reader.set_demand(1_000);
    assert_eq!(reader.waits_for(), Some("partitions"));
    let mut readers = [reader];
    assert_eq!(read_to_the_end(&mut readers), 200);
    // What comes later is as good.
    pump.push(chunks(&mut source, 40));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    within_patience("it comes", || {
        let received = readers[0].receive(Instant::now() + Duration::from_millis(20));
        matches!(received, Ok(Received::Chunk(_))).then_some(())
    });
    assert_eq!(read_to_the_end(&mut readers), 39);
}

#[test]
fn member_without_partitions_is_at_its_end() {
    let kafka = Kafka::fresh();
    kafka.cluster.create_topic("narrow", 1, 1).unwrap();
    let config = KafkaConfig::in_cluster(Arc::clone(&kafka.cluster), "narrow")
        // As those of the other tests: see `of_tests`.
        .client_settings(&[
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "3000"),
        ])
        .unwrap();
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut readers = [(); 2].map(|()| kafka.reader_with(config.clone()));
    readers.iter_mut().for_each(|reader| reader.set_demand(100));
    // Both have joined before the first chunk: a group that changes later may read copies.
    assert_eq!(read_to_the_end(&mut readers), 0);
    pump.push(chunks(&mut ChunkSource::new(1), 20));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let mut came = 0;
    within_patience("all come", || {
        came += read_to_the_end(&mut readers);
        (came >= 20).then_some(())
    });
    assert_eq!(came + read_to_the_end(&mut readers), 20);
}

#[test]
fn reader_without_a_broker_waits_for_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut reader = KafkaReader::open(config(&address)).unwrap();
    let mut told = String::new();
    within_patience("the reader says so, and why", || {
        if let Err(error) = reader.receive(Instant::now() + Duration::from_millis(20)) {
            told = error.to_string();
        }
        let knows_why = told.starts_with("connect to") && told.contains("refused");
        (knows_why && reader.waits_for() == Some("broker")).then_some(())
    });
}

/// Two producers agree: partition `k` has lane `k` of both.
#[test]
fn each_lane_goes_to_its_partition_whoever_the_producer_is() {
    let kafka = Kafka::fresh();
    let mut config = kafka.config();
    config.partition_by = PartitionBy::Trace;
    for producer in 1..=2 {
        let mut pump = Pump::open(kafka.writer_with(config.clone()));
        pump.push(chunks(&mut ChunkSource::new(producer), 80));
        within_patience("it is confirmed", || {
            pump.step();
            pump.is_done().then_some(())
        });
    }
    let mut reader = kafka.reader_with(config);
    reader.set_demand(1_000);
    let mut partitions = BTreeMap::new();
    within_patience("all comes", || {
        let received = reader.receive(Instant::now() + Duration::from_millis(20));
        if let Ok(Received::Chunk(delivery)) = received {
            let lane = read_label(&delivery.bytes).lane;
            let partition = delivery.origin.lane.to_string();
            partitions
                .entry(partition)
                .or_insert_with(Vec::new)
                .push(lane);
        }
        (partitions.values().map(Vec::len).sum::<usize>() == 160).then_some(())
    });
    assert_eq!(partitions.len(), usize::from(PARTITIONS));
    for lanes in partitions.values() {
        assert_eq!(lanes.len(), 40);
        let same = lanes.iter().all(|lane| lane % 4 == lanes[0] % 4);
        assert!(same, "{partitions:?}");
    }
}

#[test]
fn reader_that_joins_and_reader_that_leaves_lose_nothing() {
    let kafka = Kafka::fresh();
    let config = kafka.config();
    let mut source = ChunkSource::new(1);
    let mut pump = [Pump::open(kafka.writer_with(config.clone()))];
    let mut taps = vec![Tap::new(kafka.reader_with(config.clone()))];
    let distinct = |taps: &[Tap]| {
        let all: HashSet<_> = taps.iter().flat_map(Tap::received).copied().collect();
        all.len()
    };
    pump[0].push(chunks(&mut source, 200));
    drive("the first has all", &mut pump, &mut taps, |pumps, taps| {
        pumps[0].is_done() && distinct(taps) == 200
    });

    taps.push(Tap::new(kafka.reader_with(config)));
    let mut sent = 200;
    // Chunks go on flowing while the partitions move.
    let by = Instant::now() + PATIENCE;
    while taps[1].received().is_empty() {
        assert!(Instant::now() < by, "the second gets nothing");
        pump[0].push(chunks(&mut source, 40));
        sent += 40;
        // A partition of the mock keeps no more than 5 MiB.
        let next = Instant::now() + Duration::from_millis(50);
        drive("all is confirmed", &mut pump, &mut taps, |pumps, _| {
            pumps[0].is_done() && Instant::now() >= next
        });
    }
    drive("both have all", &mut pump, &mut taps, |_, taps| {
        distinct(taps) == sent
    });

    let (first, report) = taps
        .remove(0)
        .close(Instant::now() + Duration::from_secs(10));
    assert_eq!((report.unsettled, report.error.is_none()), (0, true));
    pump[0].push(chunks(&mut source, 80));
    sent += 80;
    drive(
        "the second has the rest",
        &mut pump,
        &mut taps,
        |pumps, taps| {
            let both = taps.iter().chain([&first]).flat_map(Tap::received);
            pumps[0].is_done() && both.copied().collect::<HashSet<_>>().len() == sent
        },
    );
}

#[test]
fn chunk_of_a_partition_that_left_is_stale_and_comes_again_elsewhere() {
    let kafka = Kafka::fresh();
    let mut config = kafka.config_with(&[("partition.assignment.strategy", "cooperative-sticky")]);
    config.revoke_timeout = Duration::from_millis(100);
    let mut first: Box<dyn ChunkReader> = kafka.reader_with(config.clone());
    first.set_demand(100);
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    pump.push(chunks(&mut ChunkSource::new(1), 32));
    let mut held = Vec::new();
    within_patience("all are held", || {
        pump.step();
        if let Ok(Received::Chunk(delivery)) = first.receive(Instant::now()) {
            held.push(delivery);
        }
        (held.len() == 32).then_some(())
    });

    let mut second = Tap::new(kafka.reader_with(config));
    let mut left = Vec::new();
    within_patience("the second has what left", || {
        second.poll(Duration::from_millis(5));
        if let Ok(Received::Revoked { lanes, .. }) = first.receive(Instant::now()) {
            left.extend(lanes);
        }
        let gone = held.iter().filter(|it| left.contains(&it.origin.lane));
        (!left.is_empty() && second.distinct() == gone.count()).then_some(())
    });
    assert!(
        left.len() < 4,
        "partitions that stay are not taken away: {left:?}"
    );
    let again: HashSet<_> = second.received().iter().copied().collect();
    for delivery in &held {
        let gone = left.contains(&delivery.origin.lane);
        let expected = if gone { Settled::Stale } else { Settled::Done };
        assert_eq!(
            first.settle(delivery.token, Verdict::Ack).unwrap(),
            expected
        );
        assert_eq!(again.contains(&read_label(&delivery.bytes)), gone);
    }
}

#[test]
fn reader_whose_owner_is_slow_stays_in_its_group() {
    let kafka = Kafka::fresh();
    let config = kafka.config_with(&[("max.poll.interval.ms", "6000")]);
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::holding(kafka.reader_with(config), 2);
    pump.push(chunks(&mut ChunkSource::new(1), 20));
    drive_pair("two are held", &mut pump, &mut tap, |_, tap| {
        tap.unsettled().len() == 2
    });
    // Longer than a consumer may go without polling.
    let until = Instant::now() + Duration::from_secs(8);
    let idle = tap.reader().receive(until).unwrap();
    assert!(matches!(idle, Received::Idle), "{idle:?}");
    assert_eq!(tap.reader().stats().rebalances, 0);
    tap.acknowledge();
    drive_pair("the rest comes", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 20
    });
    assert_eq!(tap.received().len(), 20, "it was not thrown out");
}

#[test]
fn partition_that_left_while_it_was_paused_is_read_when_it_returns() {
    let kafka = Kafka::fresh();
    let mut first = Tap::holding(kafka.reader_with(kafka.config()), 0);
    within_patience("the first has all partitions", || {
        first.poll(Duration::from_millis(10));
        (first.reader().stats().lag.len() == 4).then_some(())
    });
    let mut second = Tap::new(kafka.reader_with(kafka.config()));
    within_patience("some of them left", || {
        first.poll(Duration::from_millis(10));
        second.poll(Duration::from_millis(10));
        let lanes = (
            first.reader().stats().lag.len(),
            second.reader().stats().lag.len(),
        );
        (lanes == (2, 2)).then_some(())
    });
    // Those that stayed go on, so that the reader as a whole is no longer paused.
    first.set_demand(1000);
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    pump.push(chunks(&mut source, 16));
    let mut taps = vec![first, second];
    let mut pumps = [pump];
    drive("both read", &mut pumps, &mut taps, |_, taps| {
        taps.iter().map(Tap::distinct).sum::<usize>() == 16
    });
    let before = taps[0].distinct();
    assert!(before > 0, "the first reads what stayed");
    let (_, report) = taps
        .remove(1)
        .close(Instant::now() + Duration::from_secs(10));
    assert!(report.error.is_none(), "{report:?}");
    pumps[0].push(chunks(&mut source, 16));
    drive("the first reads all", &mut pumps, &mut taps, |_, taps| {
        taps[0].distinct() == before + 16
    });
}

#[test]
fn commit_that_is_refused_while_the_group_changes_is_tried_again() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    // The commit at the end is the only one.
    let config = kafka.config_with(&[("auto.commit.interval.ms", "60000")]);
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    pump.push(chunks(&mut source, 16));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 16
    });
    let refused = [RequestFault::RebalanceInProgress; 5];
    let commit = RequestKind::OffsetCommit;
    kafka.cluster.fail_requests(commit, &refused).unwrap();
    let (_, report) = tap.close(Instant::now() + Duration::from_secs(10));
    assert!(report.error.is_none(), "{report:?}");

    let mut next = Tap::new(kafka.reader_with(kafka.config()));
    pump.push(chunks(&mut source, 16));
    drive_pair("what follows arrives", &mut pump, &mut next, |pump, tap| {
        pump.is_done() && tap.distinct() == 16
    });
    assert!(next.received().iter().all(|label| label.sequence >= 2));
}

#[test]
fn commit_that_stays_refused_is_told_and_what_it_held_comes_again() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let config = kafka.config_with(&[("auto.commit.interval.ms", "60000")]);
    let mut tap = Tap::new(kafka.reader_with(config));
    pump.push(chunks(&mut ChunkSource::new(1), 16));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 16
    });
    // Far more than it tries.
    let refused = [RequestFault::RebalanceInProgress; 300];
    let commit = RequestKind::OffsetCommit;
    kafka.cluster.fail_requests(commit, &refused).unwrap();
    let (_, report) = tap.close(Instant::now() + Duration::from_secs(4));
    let error = report.error.expect("it is told").to_string();
    assert!(error.contains("comes again"), "{error}");
    kafka.cluster.stop_failing(commit).unwrap();

    let mut next = Tap::new(kafka.reader_with(kafka.config()));
    within_patience("all comes again", || {
        next.poll(Duration::from_millis(10));
        (next.distinct() == 16).then_some(())
    });
}

#[test]
fn commit_without_a_coordinator_is_given_up_in_time_and_told() {
    let kafka = Kafka::with_brokers(2);
    kafka.cluster.move_coordinator("baler", 2).unwrap();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    // Without a coordinator librdkafka waits for the session's time.
    let settings = [
        ("auto.commit.interval.ms", "60000"),
        ("session.timeout.ms", "20000"),
    ];
    let config = kafka.config_with(&settings);
    let mut tap = Tap::new(kafka.reader_with(config));
    pump.push(chunks(&mut ChunkSource::new(1), 16));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 16
    });
    kafka.cluster.broker_down(2).unwrap();
    let start = Instant::now();
    let (_, report) = tap.close(start + Duration::from_secs(8));
    let took = start.elapsed();
    let error = report.error.expect("it is told").to_string();
    assert!(error.contains("comes again"), "{error} after {took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[test]
fn topic_that_is_created_later_is_found() {
    let kafka = Kafka::fresh();
    let bootstrap = kafka.cluster.bootstrap_servers();
    let later = KafkaConfig::new(bootstrap, "later")
        .client_settings(&[("topic.metadata.refresh.interval.ms", "1000")])
        .unwrap();
    let mut tap = Tap::new(kafka.reader_with(later.clone()));
    tap.poll(Duration::from_secs(1));
    kafka.cluster.create_topic("later", 2, 1).unwrap();
    let mut pump = Pump::open(kafka.writer_with(later));
    pump.push(ChunkSource::new(1).take(5));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 5
    });
}

#[test]
fn commit_never_passes_the_first_chunk_that_is_not_settled() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut tap = Tap::holding(kafka.reader_with(kafka.config()), 8);
    pump.push(ChunkSource::new(1).take(8));
    drive_pair("all are held", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.unsettled().len() == 8
    });
    // The last to be settled is the last of the partition.
    let all = tap.unsettled();
    for label in all.iter().filter(|label| label.sequence != 3) {
        assert_eq!(tap.settle(*label, Verdict::Ack).1, Settled::Done);
    }
    let (_, report) = tap.close(Instant::now() + Duration::from_secs(10));
    assert_eq!((report.unsettled, report.error.is_none()), (1, true));
    let mut again = Tap::new(kafka.reader_with(kafka.config()));
    within_patience("what follows the watermark comes again", || {
        again.poll(Duration::from_millis(10));
        (again.distinct() == 5).then_some(())
    });
    assert_eq!(again.received(), &all[3..]);
}
