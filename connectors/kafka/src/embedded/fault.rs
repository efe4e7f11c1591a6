//! What brokers of an embedded cluster can be told to answer.

use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

/// A request of Kafka's protocol, by its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RequestKind {
    /// A producer brings chunks.
    Produce,
    /// A consumer takes chunks.
    Fetch,
    /// A consumer enters its group.
    JoinGroup,
    /// A consumer lives.
    Heartbeat,
    /// A consumer says what it has settled.
    OffsetCommit,
}

/// An error that a broker answers with, by its name in Kafka's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RequestFault {
    /// No answer: the connection is closed.
    Disconnect,
    /// `NOT_LEADER_OR_FOLLOWER`.
    NotLeader,
    /// `LEADER_NOT_AVAILABLE`.
    LeaderNotAvailable,
    /// `REQUEST_TIMED_OUT`.
    RequestTimedOut,
    /// `THROTTLING_QUOTA_EXCEEDED`.
    Throttled,
    /// `NOT_ENOUGH_REPLICAS`: nothing was written.
    NotEnoughReplicas,
    /// `NOT_ENOUGH_REPLICAS_AFTER_APPEND`: it was written to too few.
    NotEnoughReplicasAfterAppend,
    /// `KAFKA_STORAGE_ERROR`: the broker's disk failed.
    StorageFailed,
    /// `MESSAGE_TOO_LARGE`.
    MessageTooLarge,
    /// `UNKNOWN_TOPIC_OR_PARTITION`.
    UnknownTopic,
    /// `TOPIC_AUTHORIZATION_FAILED`.
    TopicAuthorizationFailed,
    /// `GROUP_AUTHORIZATION_FAILED`.
    GroupAuthorizationFailed,
    /// `CLUSTER_AUTHORIZATION_FAILED`.
    ClusterAuthorizationFailed,
    /// `OUT_OF_ORDER_SEQUENCE_NUMBER`: fatal for an idempotent producer.
    OutOfOrderSequence,
    /// `UNKNOWN_PRODUCER_ID`.
    UnknownProducer,
    /// `INVALID_PRODUCER_EPOCH`.
    InvalidProducerEpoch,
    /// `COORDINATOR_LOAD_IN_PROGRESS`.
    CoordinatorLoading,
    /// `COORDINATOR_NOT_AVAILABLE`.
    CoordinatorNotAvailable,
    /// `NOT_COORDINATOR`.
    NotCoordinator,
    /// `REBALANCE_IN_PROGRESS`.
    RebalanceInProgress,
}

impl RequestKind {
    pub(super) fn key(self) -> RDKafkaApiKey {
        match self {
            Self::Produce => RDKafkaApiKey::Produce,
            Self::Fetch => RDKafkaApiKey::Fetch,
            Self::JoinGroup => RDKafkaApiKey::JoinGroup,
            Self::Heartbeat => RDKafkaApiKey::Heartbeat,
            Self::OffsetCommit => RDKafkaApiKey::OffsetCommit,
        }
    }
}

impl RequestFault {
    pub(super) fn code(self) -> RDKafkaRespErr {
        use RDKafkaRespErr as Code;
        match self {
            // The mock takes the client's own code as the order to hang up.
            Self::Disconnect => Code::RD_KAFKA_RESP_ERR__TRANSPORT,
            Self::NotLeader => Code::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            Self::LeaderNotAvailable => Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
            Self::RequestTimedOut => Code::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
            Self::Throttled => Code::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
            Self::NotEnoughReplicas => Code::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            Self::NotEnoughReplicasAfterAppend => {
                Code::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND
            }
            Self::StorageFailed => Code::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
            Self::MessageTooLarge => Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            Self::UnknownTopic => Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            Self::TopicAuthorizationFailed => Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
            Self::GroupAuthorizationFailed => Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
            Self::ClusterAuthorizationFailed => {
                Code::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED
            }
            Self::OutOfOrderSequence => Code::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::UnknownProducer => Code::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
            Self::InvalidProducerEpoch => Code::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
            Self::CoordinatorLoading => Code::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
            Self::CoordinatorNotAvailable => Code::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
            Self::NotCoordinator => Code::RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
            Self::RebalanceInProgress => Code::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
        }
    }
}
