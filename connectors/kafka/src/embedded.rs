//! An embedded cluster for trials and for faults: librdkafka's mock.

use std::fmt;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rdkafka::error::KafkaResult;
use rdkafka::mocking::{MockCluster, MockCoordinator};
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use crate::error::KafkaConfigError;

/// A cluster inside the process: librdkafka's mock. Other processes of the machine can reach it.
///
/// It is for trials, and for the faults of a real cluster. It keeps 5 MiB
/// ([`RETAINED_BYTES`](Self::RETAINED_BYTES)) or 100,000 batches of each partition in memory, and
/// silently drops older ones. It lives until this value is dropped.
///
/// Its methods can be called from any thread, and return when the cluster has finished the order.
/// A client's request for an unknown topic creates it, with four partitions.
pub struct EmbeddedCluster {
    bootstrap_servers: Box<str>,
    brokers: u16,
    /// Orders for the thread with the cluster, which cannot leave that thread. When the channel
    /// closes, the cluster ends.
    orders: Sender<Order>,
}

type Cluster = MockCluster<'static, DefaultProducerContext>;
type Order = Box<dyn FnOnce(&mut ClusterState) + Send>;

/// The cluster and its topics.
struct ClusterState {
    cluster: Cluster,
    topics: Vec<(Box<str>, u16)>,
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .field("brokers", &self.brokers)
            .finish_non_exhaustive()
    }
}

fn failed(error: impl fmt::Display) -> KafkaConfigError {
    KafkaConfigError::Client(format!("the embedded cluster: {error}").into())
}

impl EmbeddedCluster {
    /// How many bytes of a partition it keeps. It drops older ones, read or not.
    pub const RETAINED_BYTES: u64 = 5 << 20;

    /// Starts one broker on a port of the loopback, with one topic.
    ///
    /// # Errors
    ///
    /// There is no free port, or the topic's name or number of partitions is invalid.
    pub fn start(topic: &str, partitions: u16) -> Result<Self, KafkaConfigError> {
        let cluster = Self::with_brokers(NonZeroU16::MIN)?;
        cluster.create_topic(topic, partitions, 1)?;
        Ok(cluster)
    }

    /// Starts brokers, each on a port of the loopback, without a topic.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn with_brokers(brokers: NonZeroU16) -> Result<Self, KafkaConfigError> {
        let (started, told) = channel();
        let (orders, given) = channel();
        thread::Builder::new()
            .name("baler-kafka-mock".into())
            .spawn(move || keep(brokers.get(), &started, &given))
            .map_err(failed)?;
        let bootstrap_servers = told.recv().map_err(failed)?.map_err(failed)?;
        Ok(Self {
            bootstrap_servers: bootstrap_servers.into(),
            brokers: brokers.get(),
            orders,
        })
    }

    /// The addresses of its brokers: `127.0.0.1:port`, separated by commas.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// The numbers of its brokers.
    pub fn brokers(&self) -> RangeInclusive<i32> {
        1..=i32::from(self.brokers)
    }

    fn order(
        &self,
        order: impl FnOnce(&mut ClusterState) -> KafkaResult<()> + Send + 'static,
    ) -> Result<(), KafkaConfigError> {
        let (done, told) = channel();
        let order: Order = Box::new(move |kept| {
            // The caller waits for this.
            done.send(order(kept)).ok();
        });
        self.orders.send(order).map_err(failed)?;
        told.recv().map_err(failed)?.map_err(failed)
    }

    /// Creates a topic. `replication` is the number of brokers that have each partition; all of them
    /// have it if there are fewer.
    ///
    /// # Errors
    ///
    /// It exists, or its name or number of partitions is invalid.
    pub fn create_topic(
        &self,
        topic: &str,
        partitions: u16,
        replication: u16,
    ) -> Result<(), KafkaConfigError> {
        if partitions == 0 {
            return Err(failed(format_args!("topic {topic} needs a partition")));
        }
        let topic = topic.to_owned();
        self.order(move |kept| {
            let (count, replication) = (i32::from(partitions), i32::from(replication));
            kept.cluster.create_topic(&topic, count, replication)?;
            kept.topics.push((topic.into(), partitions));
            Ok(())
        })
    }

    /// Kills a broker: it resets its connections and refuses new ones. Its partitions have no leader
    /// until it is up again or [`move_leader`](Self::move_leader) elects another.
    ///
    /// # Errors
    ///
    /// There is no such broker.
    pub fn broker_down(&self, broker: i32) -> Result<(), KafkaConfigError> {
        self.order(move |kept| kept.cluster.broker_down(broker))
    }

    /// Starts a broker again that was down. It still has all its messages.
    ///
    /// # Errors
    ///
    /// There is no such broker.
    pub fn broker_up(&self, broker: i32) -> Result<(), KafkaConfigError> {
        self.order(move |kept| kept.cluster.broker_up(broker))
    }

    /// Shuts a broker down as an administrator does. First the other brokers, if there are any,
    /// become leaders of the partitions of every topic that was created here.
    ///
    /// The groups that it coordinates stay with it; see [`move_coordinator`](Self::move_coordinator).
    ///
    /// # Errors
    ///
    /// There is no such broker.
    pub fn broker_leaves(&self, broker: i32) -> Result<(), KafkaConfigError> {
        let others: Vec<i32> = self.brokers().filter(|other| *other != broker).collect();
        self.order(move |kept| {
            for (topic, partitions) in &kept.topics {
                for (partition, other) in (0..i32::from(*partitions)).zip(others.iter().cycle()) {
                    kept.cluster
                        .partition_leader(topic, partition, Some(*other))?;
                }
            }
            kept.cluster.broker_down(broker)
        })
    }

    /// Makes a broker the leader of a partition. The old one answers `NOT_LEADER_OR_FOLLOWER`.
    ///
    /// # Errors
    ///
    /// There is no such broker or partition.
    pub fn move_leader(
        &self,
        topic: &str,
        partition: u16,
        broker: i32,
    ) -> Result<(), KafkaConfigError> {
        let topic = topic.to_owned();
        self.order(move |kept| {
            let partition = i32::from(partition);
            kept.cluster
                .partition_leader(&topic, partition, Some(broker))
        })
    }

    /// Makes a broker the coordinator of a consumer group.
    ///
    /// # Errors
    ///
    /// The mock refuses it.
    pub fn move_coordinator(&self, group: &str, broker: i32) -> Result<(), KafkaConfigError> {
        let group = MockCoordinator::Group(group.to_owned());
        self.order(move |kept| kept.cluster.coordinator(group, broker))
    }

    /// Makes the next requests of a kind fail with these errors, one each, at any broker.
    ///
    /// # Errors
    ///
    /// The cluster has ended.
    pub fn fail_requests(
        &self,
        kind: RequestKind,
        faults: &[RequestFault],
    ) -> Result<(), KafkaConfigError> {
        let codes: Vec<_> = faults.iter().map(|fault| (*fault).into()).collect();
        self.order(move |kept| {
            kept.cluster.request_errors(kind.into(), &codes);
            Ok(())
        })
    }

    /// Removes the remaining errors for requests of a kind.
    ///
    /// # Errors
    ///
    /// The cluster has ended.
    pub fn stop_failing(&self, kind: RequestKind) -> Result<(), KafkaConfigError> {
        self.order(move |kept| {
            kept.cluster.clear_request_errors(kind.into());
            Ok(())
        })
    }

    /// Answers every request for a topic with this error. `None` ends that.
    ///
    /// # Errors
    ///
    /// The topic's name is invalid.
    pub fn fail_topic(
        &self,
        topic: &str,
        fault: Option<RequestFault>,
    ) -> Result<(), KafkaConfigError> {
        let topic = topic.to_owned();
        let code = fault.map_or(RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR, Into::into);
        self.order(move |kept| kept.cluster.topic_error(&topic, code))
    }

    /// Delays every answer of every broker by this time, in whole milliseconds.
    ///
    /// # Errors
    ///
    /// The cluster has ended.
    pub fn round_trip(&self, time: Duration) -> Result<(), KafkaConfigError> {
        const ALL: i32 = -1;
        self.order(move |kept| kept.cluster.broker_round_trip_time(ALL, time))
    }
}

/// Starts a cluster, sends its addresses, and executes orders until the channel closes.
fn keep(brokers: u16, started: &Sender<KafkaResult<String>>, orders: &Receiver<Order>) {
    let cluster = match MockCluster::new(i32::from(brokers)) {
        Ok(cluster) => cluster,
        Err(error) => {
            // A caller that does not wait for this does not need the cluster.
            started.send(Err(error)).ok();
            return;
        }
    };
    started.send(Ok(cluster.bootstrap_servers())).ok();
    let topics = Vec::new();
    let mut kept = ClusterState { cluster, topics };
    for order in orders {
        order(&mut kept);
    }
}

/// Makes an enum of names for codes of librdkafka.
macro_rules! names {
    ($(#[$about:meta])* $name:ident of $codes:ident { $($(#[$doc:meta])* $variant:ident = $code:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl From<$name> for $codes {
            fn from(name: $name) -> Self {
                match name {
                    $($name::$variant => Self::$code,)*
                }
            }
        }
    };
}

names! {
    /// A request of Kafka's protocol, by its name there.
    RequestKind of RDKafkaApiKey {
        /// A producer sends chunks.
        Produce = Produce,
        /// A consumer asks for chunks.
        Fetch = Fetch,
        /// A consumer joins its group.
        JoinGroup = JoinGroup,
        /// A consumer says that it lives.
        Heartbeat = Heartbeat,
        /// A consumer commits its settled offsets.
        OffsetCommit = OffsetCommit,
    }
}

names! {
    /// An error that a broker answers with, by its name in Kafka's protocol.
    RequestFault of RDKafkaRespErr {
        /// The broker closes the connection without an answer. The mock expects the client's own code
        /// for it.
        Disconnect = RD_KAFKA_RESP_ERR__TRANSPORT,
        /// `NOT_LEADER_OR_FOLLOWER`.
        NotLeader = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        /// `LEADER_NOT_AVAILABLE`.
        LeaderNotAvailable = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        /// `REQUEST_TIMED_OUT`.
        RequestTimedOut = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        /// `THROTTLING_QUOTA_EXCEEDED`.
        Throttled = RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
        /// `NOT_ENOUGH_REPLICAS`: nothing was written.
        NotEnoughReplicas = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        /// `NOT_ENOUGH_REPLICAS_AFTER_APPEND`: it was written to too few.
        NotEnoughReplicasAfterAppend = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        /// `KAFKA_STORAGE_ERROR`: the broker's disk failed.
        StorageFailed = RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        /// `MESSAGE_TOO_LARGE`.
        MessageTooLarge = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        /// `OFFSET_METADATA_TOO_LARGE`.
        OffsetMetadataTooLarge = RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE,
        /// `UNKNOWN_TOPIC_OR_PARTITION`.
        UnknownTopic = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        /// `TOPIC_AUTHORIZATION_FAILED`.
        TopicAuthorizationFailed = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        /// `GROUP_AUTHORIZATION_FAILED`.
        GroupAuthorizationFailed = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        /// `CLUSTER_AUTHORIZATION_FAILED`.
        ClusterAuthorizationFailed = RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
        /// `OUT_OF_ORDER_SEQUENCE_NUMBER`: fatal for an idempotent producer.
        OutOfOrderSequence = RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        /// `UNKNOWN_PRODUCER_ID`.
        UnknownProducer = RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        /// `INVALID_PRODUCER_EPOCH`.
        InvalidProducerEpoch = RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        /// `COORDINATOR_LOAD_IN_PROGRESS`.
        CoordinatorLoading = RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
        /// `COORDINATOR_NOT_AVAILABLE`.
        CoordinatorNotAvailable = RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        /// `NOT_COORDINATOR`.
        NotCoordinator = RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        /// `REBALANCE_IN_PROGRESS`.
        RebalanceInProgress = RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
    }
}
