//! The same against a cluster named by `KAFKA_BOOTSTRAP`, in plain text. Each case has a topic and
//! a group of its own, which it leaves behind.

mod churn;
mod positions;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::{NonZeroU16, NonZeroU32};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::{ChunkReader, ChunkWriter, RejectReason, RetryClass};
use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter, NewTopicShape, PartitionBy};
use baler_connector_testkit::faults::KafkaProxy;
use baler_connector_testkit::{ChunkSource, Pump, Tap, TestMedium, drive_pair, within_patience};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaResult;

use crate::support::{limited, soon};

pub(crate) fn bootstrap() -> String {
    std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP is host:port")
}

/// The name of a topic and group of their own.
pub(crate) fn name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("baler-test-{}", now.as_nanos())
}

fn config_at(bootstrap: &str) -> KafkaConfig {
    let name = name();
    let mut config = KafkaConfig::new(bootstrap, name.as_str())
        .client_settings(&[("group.id", &name)])
        .unwrap();
    config.create_topic = Some(shape());
    config
}

/// The shape of the topic of each case.
pub(crate) fn shape() -> NewTopicShape {
    NewTopicShape {
        partitions: NonZeroU16::new(4).unwrap(),
        replication: NonZeroU16::MIN,
    }
}

fn config() -> KafkaConfig {
    config_at(&bootstrap())
}

/// A client that administers the cluster.
fn administrator() -> AdminClient<DefaultClientContext> {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", bootstrap());
    settings.create().unwrap()
}

/// Waits for the answer to a question to the cluster.
fn answer<T>(answer: impl Future<Output = KafkaResult<T>>) -> T {
    let mut answer = pin!(answer);
    let mut context = Context::from_waker(Waker::noop());
    within_patience("the cluster answers", || {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(result) => Some(result.unwrap()),
            Poll::Pending => None,
        }
    })
}

/// Creates a topic.
fn create(topic: &NewTopic<'_>) {
    let administrator = administrator();
    let created = administrator.create_topics([topic], &AdminOptions::new());
    for topic in answer(created) {
        topic.unwrap();
    }
}

/// A topic of the cluster, behind a proxy. Its readers use the classic group protocol, or that of
/// KIP-848.
struct Cluster<const KIP_848: bool> {
    proxy: KafkaProxy,
    config: KafkaConfig,
}

impl<const KIP_848: bool> TestMedium for Cluster<KIP_848> {
    fn fresh() -> Self {
        let proxy = KafkaProxy::start(&bootstrap()).unwrap();
        let protocol = if KIP_848 { "consumer" } else { "classic" };
        let config = limited(config_at(proxy.bootstrap_servers()))
            .client_settings(&[("group.protocol", protocol)])
            .unwrap();
        // A reader that comes first finds the topic.
        KafkaWriter::new(config.clone()).reopen(soon()).unwrap();
        Self { proxy, config }
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        Box::new(KafkaWriter::new(self.config.clone()))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(KafkaReader::open(self.config.clone()).unwrap())
    }

    fn stall(&mut self) {
        self.proxy.set_frozen(true);
    }

    fn resume(&mut self) {
        self.proxy.set_frozen(false);
    }
}

mod contract {
    baler_connector_testkit::contract_tests!(super::Cluster<false>: reads redelivers stalls many_writers many_readers, #[ignore = "needs KAFKA_BOOTSTRAP"]);
}

mod contract_of_kip_848 {
    baler_connector_testkit::contract_tests!(super::Cluster<true>: reads redelivers stalls many_writers many_readers, #[ignore = "needs KAFKA_BOOTSTRAP, of Kafka 4"]);
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn topic_is_created_once_and_tells_its_limit() {
    let config = config();
    for _ in 0..2 {
        let mut writer = KafkaWriter::new(config.clone());
        writer.reopen(soon()).unwrap();
        let limit = writer.topic_limit().unwrap();
        let most = usize::try_from(limit).unwrap().min(1_000_000) - 512;
        assert_eq!(writer.capability().max_chunk_bytes.get(), most);
    }
    let mut above = config;
    above.max_message_bytes = NonZeroU32::new(1_000_000_000);
    let error = KafkaWriter::new(above).reopen(soon()).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    let text = error.to_string();
    assert!(
        text.contains("message.max.bytes=") && text.contains("max.message.bytes="),
        "{text}"
    );
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn compacted_topic_is_refused() {
    for policy in ["compact", "compact,delete"] {
        let name = name();
        let topic = NewTopic::new(&name, 1, TopicReplication::Fixed(1));
        create(&topic.set("cleanup.policy", policy));
        let error = KafkaWriter::new(KafkaConfig::new(&bootstrap(), name.as_str()))
            .reopen(soon())
            .unwrap_err();
        assert_eq!(error.class, RetryClass::Final);
        let text = error.to_string();
        assert!(text.contains(&format!("cleanup.policy={policy}")), "{text}");
    }
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP, with auto.create.topics.enable"]
fn topic_that_comes_back_empty_is_told_as_a_loss() {
    let name = name();
    create(&NewTopic::new(&name, 1, TopicReplication::Fixed(1)));
    let mut writer: Box<dyn ChunkWriter> = Box::new(KafkaWriter::new(KafkaConfig::new(
        &bootstrap(),
        name.as_str(),
    )));
    writer.reopen(soon()).unwrap();
    let mut source = ChunkSource::new(1);
    for chunk in source.take(200) {
        writer.offer(chunk).unwrap();
    }
    let mut known = Vec::new();
    within_patience("they are confirmed", || {
        writer.delivery_reports(&mut known).unwrap();
        (known.len() == 200).then_some(())
    });
    let administrator = administrator();
    for deleted in answer(administrator.delete_topics(&[&name], &AdminOptions::new())) {
        deleted.unwrap();
    }
    let told = within_patience("the loss is told", || {
        for chunk in source.take(1) {
            let offered = writer.offer(chunk).map_err(|rejected| rejected.reason);
            if let Err(RejectReason::Broken(error)) = offered {
                return Some(error.to_string());
            }
        }
        writer
            .delivery_reports(&mut known)
            .err()
            .map(|error| error.to_string())
    });
    assert!(told.contains("partition 0 went back by"), "{told}");
    let stats = writer.stats();
    assert_eq!(stats.losses, 1);
    assert!(stats.lost_chunks > 100, "{stats:?}");
    writer.reopen(soon()).unwrap();
    writer.offer(source.take(1).remove(0)).unwrap();
    assert_eq!(writer.close(soon()).delivery_reports.len(), 1);
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn lanes_stay_on_their_partitions_while_others_are_added() {
    let mut config = config()
        .client_settings(&[
            ("statistics.interval.ms", "100"),
            ("topic.metadata.refresh.interval.ms", "500"),
        ])
        .unwrap();
    config.partition_by = PartitionBy::Lane;
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    let mut source = ChunkSource::new(1);
    pump.push((0..64).map(|at| source.next(at % 8, 50)));
    within_patience("the first are confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let topic = config.to_string();
    let topic = topic.rsplit('/').next().unwrap();
    let more = [NewPartitions::new(topic, 12)];
    let administrator = administrator();
    let added = administrator.create_partitions(&more, &AdminOptions::new());
    answer(added).into_iter().for_each(|it| drop(it.unwrap()));
    within_patience("the writer finds them", || {
        let counts = pump.writer().stats().counts;
        counts.contains(&("partitions_added", 8)).then_some(())
    });
    pump.push((0..64).map(|at| source.next(at % 8, 50)));
    pump.push((0..64).map(|at| source.next(100 + at % 32, 50)));
    let mut tap = Tap::holding(Box::new(KafkaReader::open(config).unwrap()), 1000);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 192
    });
    assert_eq!(pump.breaks(), 0);
    tap.assert_ordered();
    let mut partitions = BTreeMap::<u32, BTreeSet<i32>>::new();
    for delivery in tap.deliveries() {
        let lane = delivery.meta.unwrap().identity.lane;
        let partition = delivery.origin.lane.parse().unwrap();
        partitions.entry(lane).or_default().insert(partition);
    }
    assert!(
        partitions.values().all(|it| it.len() == 1),
        "{partitions:?}"
    );
    let highest = |lanes| partitions.range(lanes).flat_map(|(_, it)| it).max();
    assert!(highest(0..8) < Some(&4), "{partitions:?}");
    assert!(highest(100..200) >= Some(&4), "{partitions:?}");
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn resets_and_stalls_lose_nothing() {
    let proxy = KafkaProxy::start(&bootstrap()).unwrap();
    let mut config = config_at(proxy.bootstrap_servers());
    config.partition_by = PartitionBy::Lane;
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    let mut tap = Tap::new(Box::new(KafkaReader::open(config).unwrap()));
    let mut source = ChunkSource::new(1);
    let mut sent = 0;
    for round in 0..6 {
        let chunks: Vec<_> = (0..40).map(|at| source.next(at % 8, 500)).collect();
        sent += chunks.len();
        pump.push(chunks);
        pump.step();
        match round % 3 {
            0 => proxy.cut(),
            1 => proxy.cut_after(5001),
            _ => proxy.set_frozen(true),
        }
        let until = Instant::now() + Duration::from_millis(300);
        drive_pair("some pass", &mut pump, &mut tap, |_, _| {
            Instant::now() > until
        });
        proxy.set_frozen(false);
    }
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == sent
    });
    tap.assert_ordered();
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn lag_ends_with_the_last_settlement() {
    let config = config();
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    let mut tap = Tap::new(Box::new(KafkaReader::open(config).unwrap()));
    pump.push(ChunkSource::new(1).take(100));
    within_patience("nothing is behind any more", || {
        pump.step();
        tap.poll(Duration::from_millis(5));
        let lag = tap.reader().stats().total_lag();
        (tap.distinct() == 100 && lag == Some(0)).then_some(())
    });
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn offsets_survive_the_restart_of_a_reader() {
    let config = config();
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    let mut source = ChunkSource::new(1);
    let mut tap = Tap::new(Box::new(KafkaReader::open(config.clone()).unwrap()));
    for round in 0..3 {
        pump.push(source.take(500));
        drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
            pump.is_done() && tap.distinct() == 500
        });
        assert_eq!(
            tap.received().len(),
            500,
            "round {round}: nothing comes twice"
        );
        tap.assert_ordered();
        let (_, report) = tap.close(Instant::now() + Duration::from_secs(10));
        assert_eq!((report.unsettled, report.error.is_none()), (0, true));
        tap = Tap::new(Box::new(KafkaReader::open(config.clone()).unwrap()));
    }
    assert_eq!((pump.confirmed(), pump.breaks()), (1500, 0));
}
