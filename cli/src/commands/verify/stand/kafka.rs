//! `kafka+mock:`: librdkafka's mock cluster of three brokers, in this process.

use std::num::NonZeroU16;
use std::time::Duration;

use baler_connector_kafka::{EmbeddedCluster, RequestFault, RequestKind};
use baler_connector_testkit::faults::KafkaProxy;

use super::{Harm, LATE, Medium, Stand, broken, faults_of_broker, name_and_settings};
use crate::args::{FaultChoice, VerifyArgs};
use crate::exit::Failure;
use crate::random::Random;

/// Faults that only this medium has.
const FAULTS: &[FaultChoice] = &[
    FaultChoice::LeaderMove,
    FaultChoice::CoordinatorMove,
    FaultChoice::RequestErrors,
    FaultChoice::Throttle,
    FaultChoice::Rebalance,
];

/// The number of brokers: three. Two of them, or all, may be down at a time.
const BROKERS: NonZeroU16 = baler_common::non_zero!(3);

const PARTITIONS: u16 = 4;

const GROUP: &str = "verify";

/// The maximum number of records in flight. All producers may share one partition, of which the
/// mock keeps [`EmbeddedCluster::RETAINED_BYTES`]; this many records need far less.
const WINDOW: u64 = 40_000;

/// Settings that make a run quick, and the mock follow Kafka's rules.
const DEFAULTS: &[(&str, &str)] = &[
    ("group.id", GROUP),
    // Longer than it takes to notice a half-open connection. If chunks time out, later chunks may
    // arrive before them (see the connector).
    ("message.timeout.ms", "20000"),
    // Unlike a broker, the mock does not check sequence numbers. With several requests in flight,
    // it takes a later request after the first one failed, and order is lost.
    ("max.in.flight.requests.per.connection", "1"),
    // How long to wait for the answer to a join request.
    ("max.poll.interval.ms", "8000"),
    ("auto.commit.interval.ms", "200"),
];

/// A cluster, and the proxies that clients connect to.
struct Kafka {
    cluster: EmbeddedCluster,
    /// The proxy for producers, which does every harm.
    proxy: KafkaProxy,
    /// The proxy for consumers, which is only slow or frozen. If a member's connection ends while
    /// the group forms, the mock fails an assertion (`!member->resp` in rdkafka_mock_cgrp.c). That
    /// would end this process.
    calm: KafkaProxy,
    topic: String,
    /// The brokers that are down.
    down: Vec<i32>,
    /// The broker whose turn it is.
    turn: i32,
}

/// Sets up the endpoint. `rest` is the part after the scheme: the topic, and settings of
/// librdkafka.
pub(super) fn stand(args: &VerifyArgs, rest: &str) -> Result<Stand, Failure> {
    let (topic, settings) = name_and_settings(rest, DEFAULTS);
    let cluster = EmbeddedCluster::with_brokers(BROKERS).map_err(broken)?;
    cluster
        .create_topic(&topic, PARTITIONS, BROKERS.get())
        .map_err(broken)?;
    let before = || KafkaProxy::start(cluster.bootstrap_servers()).map_err(broken);
    let (proxy, calm) = (before()?, before()?);
    let uri = |proxy: &KafkaProxy| {
        let servers = proxy.bootstrap_servers();
        format!("kafka://{servers}/{topic}?{settings}")
    };
    Ok(Stand {
        producer_uris: vec![uri(&proxy); args.producers.into()],
        consumer_uris: vec![uri(&calm); args.consumers.into()],
        faults: faults_of_broker(FAULTS),
        orders_competitors: true,
        window: WINDOW,
        folders: None,
        medium: Some(Box::new(Kafka {
            cluster,
            proxy,
            calm,
            topic,
            down: Vec::new(),
            turn: 0,
        })),
    })
}

impl Kafka {
    fn next_broker(&mut self) -> i32 {
        self.turn = self.turn % i32::from(BROKERS.get()) + 1;
        self.turn
    }

    /// Delays clients as brokers do when clients exceed their quotas.
    fn hold_back(&self, time: Duration) {
        for proxy in [&self.proxy, &self.calm] {
            proxy.set_throttle(time);
        }
    }

    fn fail(&self, kind: RequestKind, fault: RequestFault, times: usize) -> Result<(), Failure> {
        let faults = vec![fault; times];
        self.cluster.fail_requests(kind, &faults).map_err(broken)
    }
}

impl Medium for Kafka {
    fn network(&self, harm: Harm) {
        let both = [&self.proxy, &self.calm].into_iter();
        match harm {
            Harm::Abandon => self.proxy.abandon(),
            Harm::CutAfter(bytes) => self.proxy.cut_after(bytes),
            Harm::Frozen(frozen) => both.for_each(|proxy| proxy.set_frozen(frozen)),
            Harm::Slow(rate) => both.for_each(|proxy| {
                proxy.set_delay(rate.map_or(Duration::ZERO, |_| LATE));
                proxy.set_bytes_per_second(rate);
            }),
        }
    }

    fn start(&mut self) -> Result<(), Failure> {
        for broker in self.down.drain(..) {
            self.cluster.broker_up(broker).map_err(broken)?;
        }
        Ok(())
    }

    fn end(&mut self, kill: bool) -> Result<(), Failure> {
        if kill {
            // All brokers go down at once, so that partitions have no leader.
            for broker in self.cluster.brokers() {
                self.cluster.broker_down(broker).map_err(broken)?;
                self.down.push(broker);
            }
            return Ok(());
        }
        let broker = self.next_broker();
        self.cluster.broker_leaves(broker).map_err(broken)?;
        self.down.push(broker);
        Ok(())
    }

    fn begin(&mut self, fault: FaultChoice, random: &mut Random) -> Result<String, Failure> {
        let times = usize::try_from(random.between(1, 4)).unwrap_or(1);
        match fault {
            FaultChoice::LeaderMove => {
                for partition in 0..PARTITIONS {
                    let broker = self.next_broker();
                    self.cluster
                        .move_leader(&self.topic, partition, broker)
                        .map_err(broken)?;
                }
                self.next_broker();
                Ok("another leader for each partition".to_owned())
            }
            FaultChoice::CoordinatorMove => {
                let broker = self.next_broker();
                self.cluster
                    .move_coordinator(GROUP, broker)
                    .map_err(broken)?;
                Ok(format!("coordinator is broker {broker}"))
            }
            FaultChoice::RequestErrors => {
                use RequestFault as Fault;
                let produce = [
                    Fault::NotEnoughReplicas,
                    Fault::NotEnoughReplicasAfterAppend,
                    Fault::RequestTimedOut,
                    Fault::NotLeader,
                    Fault::Disconnect,
                    Fault::StorageFailed,
                ];
                let choice = produce.get(random.below(produce.len()));
                let produced = choice.copied().unwrap_or(Fault::RequestTimedOut);
                self.fail(RequestKind::Produce, produced, times)?;
                self.fail(RequestKind::Fetch, Fault::Disconnect, 1)?;
                self.fail(RequestKind::OffsetCommit, Fault::CoordinatorLoading, 1)?;
                self.fail(RequestKind::Heartbeat, Fault::NotCoordinator, 1)?;
                Ok(format!(
                    "{times} of produce fail with {produced:?}, and others"
                ))
            }
            FaultChoice::Throttle => {
                let millis = random.between(50, 300);
                let time = Duration::from_millis(millis);
                self.cluster.round_trip(time).map_err(broken)?;
                self.hold_back(time);
                Ok(format!(
                    "each answer takes {millis} ms, and clients are held back for as long"
                ))
            }
            other => Err(broken(format_args!("{} is not known here", other.name()))),
        }
    }

    fn heal(&mut self, fault: FaultChoice) -> Result<(), Failure> {
        if fault == FaultChoice::Throttle {
            self.cluster.round_trip(Duration::ZERO).map_err(broken)?;
            self.hold_back(Duration::ZERO);
        }
        Ok(())
    }
}
