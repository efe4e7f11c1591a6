//! The connector's defaults of librdkafka's settings, and its own settings beside them.

/// The defaults of both ends.
pub(crate) const BOTH: &[(&str, &str)] = &[
    ("client.id", "baler"),
    // Brokers close idle connections. That is no error.
    ("log.connection.close", "false"),
    // The client finds a broker that returns within a second. Its own default is 10 s.
    ("reconnect.backoff.max.ms", "1000"),
    // The time lost with a host that does not answer. The client's own default is 30 s.
    ("socket.connection.setup.timeout.ms", "5000"),
    ("socket.keepalive.enable", "true"),
    // The client gives up a connection without an answer after this. Its own default is 60 s.
    ("socket.timeout.ms", "10000"),
];

/// The defaults of a writer.
pub(crate) const PRODUCER: &[(&str, &str)] = &[
    ("acks", "all"),
    ("enable.idempotence", "true"),
    // The client sends larger chunks without a copy. Its own default is 65,535.
    ("message.copy.max.bytes", "4096"),
    // After this the writer is broken and its owner decides. The client's own default is 300 s, that
    // of Kafka's Java client is this one. A killed node is away for about 40 s.
    ("message.timeout.ms", "120000"),
    // The partition that Kafka's Java client would choose for the key.
    ("partitioner", "murmur2_random"),
    // The statistics have the time for which brokers throttle the writer, and the number of
    // partitions.
    ("statistics.interval.ms", "1000"),
    REFRESH,
];

/// How often a writer asks for the topic's partitions and settings. The client's own default is
/// 300 s.
pub(crate) const REFRESH: (&str, &str) = ("topic.metadata.refresh.interval.ms", "60000");

/// The defaults of a reader.
pub(crate) const CONSUMER: &[(&str, &str)] = &[
    // Chunks that a killed reader settled after its last commit come again. The client's own default
    // is 5 s.
    ("auto.commit.interval.ms", "100"),
    // A new group reads all chunks.
    ("auto.offset.reset", "earliest"),
    // Each settlement stores an offset, and the client commits the stored offsets.
    ("enable.auto.commit", "true"),
    ("enable.auto.offset.store", "false"),
    // A reader knows whether it has handed out all chunks.
    ("enable.partition.eof", "true"),
    ("fetch.error.backoff.ms", "100"),
    // A short queue is often full: a reader takes at most one queue each time.
    ("fetch.queue.backoff.ms", "10"),
    ("group.id", "baler"),
    // Members notice a rebalance after this. The client's own default is 3 s.
    ("heartbeat.interval.ms", "500"),
    // The client's own defaults are 64 MiB and 100,000 messages.
    ("queued.max.messages.kbytes", "32768"),
    ("queued.min.messages", "4000"),
    // The group replaces a killed consumer after this. The client's own default is 45 s. Brokers
    // accept 6 s or more (`group.min.session.timeout.ms`).
    ("session.timeout.ms", "6000"),
    // The statistics have the lag of the reader and its number of connections.
    ("statistics.interval.ms", "1000"),
    // The client finds a new topic or partition after this. Its own default is 300 s.
    ("topic.metadata.refresh.interval.ms", "10000"),
];

/// The settings of the classic group protocol alone, each with what decides in its place. librdkafka
/// refuses them with `group.protocol=consumer`.
pub(crate) const CLASSIC: &[(&str, &str)] = &[
    ("group.protocol.type", "there is no other type of it"),
    (
        "heartbeat.interval.ms",
        "the brokers decide; set their group.consumer.heartbeat.interval.ms, or \
         consumer.heartbeat.interval.ms of the group",
    ),
    (
        "partition.assignment.strategy",
        "the brokers deal the partitions; set group.remote.assignor",
    ),
    (
        "session.timeout.ms",
        "the brokers decide; set their group.consumer.session.timeout.ms, or \
         consumer.session.timeout.ms of the group",
    ),
];

/// The settings that name a file, each with the setting of librdkafka whose value the file has.
pub(crate) const FILES: [(&str, &str); 3] = [
    ("sasl.password.file", "sasl.password"),
    ("ssl.key.password.file", "ssl.key.password"),
    ("ssl.keystore.password.file", "ssl.keystore.password"),
];

/// The setting that names the file of a token.
pub(crate) const TOKEN_FILE: &str = "sasl.oauthbearer.token.file";

/// Whether a setting belongs to this connector, and librdkafka does not know it.
pub(crate) fn is_own(name: &str) -> bool {
    name == TOKEN_FILE || FILES.iter().any(|(file, _)| *file == name)
}
