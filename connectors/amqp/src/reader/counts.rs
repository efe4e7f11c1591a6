//! What happened at a reader.

/// What happened at a reader since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpReaderCounts {
    /// Connections that were made, and everything declared on them.
    pub connections: u64,
    /// Messages that the broker delivered, repetitions included.
    pub delivered: u64,
    /// Those of them that the broker says it delivered before.
    pub redelivered: u64,
    /// How often a message was delivered before at most (`x-delivery-count`, of quorum queues).
    pub max_delivery_count: u64,
    /// Messages that a stream no longer had when they were due, by its limits.
    pub gone: u64,
    /// Messages above the limit, which were rejected.
    pub damaged: u64,
    /// How often a connection was lost, could not be made, or the broker cancelled the consumer.
    pub failures: u64,
}
