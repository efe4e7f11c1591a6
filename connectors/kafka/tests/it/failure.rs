//! Faults of a cluster, and what a writer makes of them.

use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{ContainerKind, Durability, RejectReason, RetryClass, Verdict};
use baler_connector_kafka::{KafkaConfig, PartitionBy, RequestFault, RequestKind};
use baler_connector_testkit::{
    ChunkSource, Pump, Tap, TestMedium, drive, drive_pair, within_patience,
};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::support::{Kafka, TOPIC, soon};

#[test]
fn writer_opens_once_a_broker_is_there() {
    let kafka = Kafka::fresh();
    kafka.cluster.broker_down(1).unwrap();
    let mut writer = kafka.writer_with(kafka.config());
    let start = Instant::now();
    let time = Duration::from_millis(700);
    let error = writer.reopen(start + time).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(
        error.to_string().contains(&kafka.config().to_string()),
        "{error}"
    );
    assert!(start.elapsed() < time + Duration::from_secs(10));
    kafka.cluster.broker_up(1).unwrap();
    writer.reopen(soon()).unwrap();
    assert_eq!(
        writer.capability().durability,
        Durability::Process,
        "a topic with one replica"
    );
}

#[test]
fn chunks_wait_for_a_broker_that_returns() {
    let kafka = Kafka::fresh();
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    for round in 1..=3 {
        kafka.cluster.broker_down(1).unwrap();
        pump.push(source.take(20));
        pump.step();
        kafka.cluster.broker_up(1).unwrap();
        drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
            pump.is_done() && tap.distinct() == 20 * round
        });
    }
    assert_eq!((pump.confirmed(), pump.breaks()), (60, 0));
    tap.assert_ordered();
}

#[test]
fn timeout_breaks_the_writer_and_nothing_is_lost() {
    let kafka = Kafka::fresh();
    let config = kafka.config_with(&[("message.timeout.ms", "1000")]);
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut pump = Pump::open(kafka.writer_with(config));
    let mut source = ChunkSource::new(1);
    kafka.cluster.broker_down(1).unwrap();
    pump.push(source.take(60));
    within_patience("the writer breaks", || {
        pump.step();
        (pump.breaks() > 0).then_some(())
    });
    assert_eq!(pump.confirmed(), 0);
    kafka.cluster.broker_up(1).unwrap();
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 60
    });
    assert_eq!(pump.confirmed(), 60);
}

#[test]
fn errors_that_pass_are_no_business_of_the_owner() {
    let kafka = Kafka::fresh();
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let passing = [
        RequestFault::NotLeader,
        RequestFault::RequestTimedOut,
        RequestFault::NotEnoughReplicas,
        RequestFault::LeaderNotAvailable,
    ];
    let produce = RequestKind::Produce;
    kafka.cluster.fail_requests(produce, &passing).unwrap();
    pump.push(ChunkSource::new(1).take(50));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 50
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (50, 0));
    tap.assert_ordered();
}

#[test]
fn chunks_larger_than_the_queue_of_the_client_pass_one_after_the_other() {
    let kafka = Kafka::fresh();
    let bootstrap = kafka.cluster.bootstrap_servers();
    let mut config = KafkaConfig::new(bootstrap, TOPIC)
        .client_settings(&[
            // Half a chunk: it is full with the first one.
            ("queued.max.messages.kbytes", "400"),
            ("session.timeout.ms", "6000"),
        ])
        .unwrap();
    config.partition_by = PartitionBy::Lane;
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::holding(kafka.reader_with(config), 2);
    let mut source = ChunkSource::new(1);
    pump.push((0..16).map(|at| source.next(at % 8, 800_000)));
    let mut settled = 0;
    within_patience("all arrives", || {
        pump.step();
        tap.poll(Duration::from_millis(1));
        for label in tap.unsettled() {
            tap.settle(label, Verdict::Ack);
            settled += 1;
        }
        (settled == 16).then_some(())
    });
    assert_eq!((pump.breaks(), tap.distinct()), (0, 16));
    tap.assert_ordered();
}

#[test]
fn batch_above_the_limit_is_sent_again_chunk_by_chunk_and_only_a_chunk_is_refused() {
    let kafka = Kafka::fresh();
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    let too_large = [RequestFault::MessageTooLarge];
    let produce = RequestKind::Produce;
    kafka.cluster.fail_requests(produce, &too_large).unwrap();
    pump.push(source.take(10));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 10
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (10, 1));

    // Now every batch is one chunk, so the broker speaks of that chunk.
    kafka.cluster.fail_requests(produce, &too_large).unwrap();
    pump.push(source.take(5));
    drive_pair("the rest arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 14
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (14, 1));
    let refused: Vec<_> = pump
        .refused()
        .iter()
        .map(|(ticket, error)| (*ticket, error.class))
        .collect();
    assert_eq!(refused, [(10, RetryClass::Final)]);
}

#[test]
fn chunk_that_is_too_large_for_the_topic_is_handed_back_to_be_split() {
    let kafka = Kafka::fresh();
    let mut writer = kafka.writer_with(kafka.config());
    writer.reopen(soon()).unwrap();
    let mut source = ChunkSource::new(1);
    let chunk = source.next(0, 4000);
    let bytes = chunk.bytes.len();
    let produce = RequestKind::Produce;
    // First a batch is too large, then the chunk alone.
    let too_large = [RequestFault::MessageTooLarge; 2];
    kafka.cluster.fail_requests(produce, &too_large).unwrap();
    for _ in 0..2 {
        writer.offer(chunk.clone()).unwrap();
        let error = within_patience("the writer breaks", || {
            writer.delivery_reports(&mut Vec::new()).err()
        });
        assert!(error.is_retryable(), "{error}");
        writer.reopen(soon()).unwrap();
    }
    let lowered = ("limits_lowered", 1);
    assert!(writer.stats().counts.contains(&lowered), "it is counted");
    let limit = writer.capability().max_chunk_bytes.get();
    assert!(
        limit < bytes && limit >= bytes / 2 - 12,
        "{limit} of {bytes}"
    );
    let rejected = writer.offer(chunk).unwrap_err();
    assert!(
        matches!(rejected.reason, RejectReason::TooLarge { max_chunk_bytes } if max_chunk_bytes == limit),
        "{rejected:?}"
    );
    writer.offer(source.next(0, limit - 200)).unwrap();
    within_patience("a smaller one passes", || {
        let mut delivery_reports = Vec::new();
        writer.delivery_reports(&mut delivery_reports).unwrap();
        delivery_reports.pop().map(|it| assert_eq!(it.ticket, 1))
    });
}

#[test]
fn topic_that_is_refused_is_final() {
    for fault in [
        RequestFault::TopicAuthorizationFailed,
        RequestFault::UnknownTopic,
    ] {
        let kafka = Kafka::fresh();
        kafka.cluster.fail_topic(TOPIC, Some(fault)).unwrap();
        let mut writer = kafka.writer_with(kafka.config());
        let error = writer.reopen(soon()).unwrap_err();
        assert_eq!(error.class, RetryClass::Final, "{error}");
    }
}

#[test]
fn unknown_topic_is_final_after_a_while_of_short_openings() {
    let kafka = Kafka::fresh();
    let settings = [("allow.auto.create.topics", "false")];
    let config = KafkaConfig::new(kafka.cluster.bootstrap_servers(), "unknown");
    let mut writer = kafka.writer_with(config.client_settings(&settings).unwrap());
    let mut openings = 0;
    let last = within_patience("it is final", || {
        openings += 1;
        let short = Instant::now() + Duration::from_secs(1);
        let error = writer.reopen(short).unwrap_err();
        let text = error.to_string();
        for part in [
            "kafka://127.0.0.1:",
            "topic unknown does not exist",
            "create_topic=",
        ] {
            assert!(text.contains(part), "{text}");
        }
        (error.class == RetryClass::Final).then_some(text)
    });
    assert!(openings > 1, "{last}");
}

#[test]
fn topic_that_is_gone_is_waited_for() {
    let kafka = Kafka::fresh();
    let mut writer = kafka.writer_with(kafka.config());
    writer.reopen(soon()).unwrap();
    let gone = Some(RequestFault::UnknownTopic);
    kafka.cluster.fail_topic(TOPIC, gone).unwrap();
    let error = writer
        .reopen(Instant::now() + Duration::from_secs(5))
        .unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.message.contains("topic chunks is gone"), "{error}");
    kafka.cluster.fail_topic(TOPIC, None).unwrap();
    writer.reopen(soon()).unwrap();
}

#[test]
fn message_without_a_value_is_told_as_damaged_and_passed() {
    let kafka = Kafka::fresh();
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", kafka.cluster.bootstrap_servers())
        .create()
        .unwrap();
    producer
        .send(BaseRecord::<str, [u8], ()>::to(TOPIC).partition(0).key("a"))
        .unwrap();
    producer.flush(Duration::from_secs(10)).unwrap();
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    within_patience("it is told", || {
        tap.poll(Duration::from_millis(10));
        tap.damaged().first().map(|damaged| {
            assert_eq!((&*damaged.origin.lane, damaged.origin.position), ("0", 0));
        })
    });
    assert!(tap.received().is_empty());
}

/// The partitions in which 16 chunks of 8 lanes of each of two producers arrive.
fn partitions(partition_by: PartitionBy) -> Vec<Vec<String>> {
    let kafka = Kafka::fresh();
    let mut config = kafka.config();
    config.partition_by = partition_by;
    let mut tap = Tap::holding(kafka.reader_with(config.clone()), 1000);
    let mut pumps = [1, 2].map(|producer| {
        let mut pump = Pump::open(kafka.writer_with(config.clone()));
        let mut source = ChunkSource::new(producer);
        pump.push((0..16).map(|at| source.next(at % 8, 50)));
        pump
    });
    drive(
        "all arrives",
        &mut pumps,
        slice::from_mut(&mut tap),
        |pumps, taps| pumps.iter().all(Pump::is_done) && taps[0].distinct() == 32,
    );
    let mut lanes = vec![Vec::new(); 2];
    for delivery in tap.deliveries() {
        let producer = delivery.meta.unwrap().identity.producer.as_u128();
        let lanes = &mut lanes[usize::try_from(producer).unwrap() - 1];
        lanes.push(delivery.origin.lane.to_string());
    }
    for lanes in &mut lanes {
        lanes.sort();
        lanes.dedup();
    }
    lanes
}

#[test]
fn producer_keeps_to_one_partition() {
    let lanes = partitions(PartitionBy::Producer);
    assert!(lanes.iter().all(|lanes| lanes.len() == 1), "{lanes:?}");
}

#[test]
fn lanes_of_a_producer_are_spread() {
    let lanes = partitions(PartitionBy::Lane);
    assert!(lanes.iter().all(|lanes| lanes.len() > 1), "{lanes:?}");
}

#[test]
fn round_robin_reaches_every_partition() {
    let lanes = partitions(PartitionBy::RoundRobin);
    assert!(lanes.iter().all(|lanes| lanes.len() == 4), "{lanes:?}");
}

#[test]
fn container_with_an_identity_speaks_for_itself() {
    let kafka = Kafka::fresh();
    let config = kafka.config();
    let mut reader = kafka.reader_with(config.clone());
    reader.set_demand(8);
    let mut pump = Pump::open(kafka.writer_with(config));
    let mut source = ChunkSource::new(1);
    let mut native = source.next(0, 50);
    native.meta.container = ContainerKind::Native;
    pump.push([native, source.next(0, 50)]);
    let mut metas = Vec::new();
    within_patience("both arrive", || {
        pump.step();
        let received = reader.receive(Instant::now() + Duration::from_millis(10));
        if let Ok(baler_common::transport::Received::Chunk(delivery)) = received {
            metas.push(delivery.meta.map(|meta| meta.identity.sequence));
        }
        (metas.len() == 2).then_some(())
    });
    assert_eq!(metas, [None, Some(1)]);
}
