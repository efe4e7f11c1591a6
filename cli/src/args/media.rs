//! The built-in media, which the long help of `--from` and `--to` lists.

/// Lists the media that chunks can come from, one a line.
pub(super) fn sources() -> String {
    lines(&[
        "tcp://host:port           listens for senders; tcp+tls: with TLS",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic   joins a consumer group",
        #[cfg(feature = "kafka")]
        "kafka+mock:topic          starts a small cluster in this process",
        #[cfg(feature = "amqp")]
        "amqp://host?queue=NAME    reads a queue; amqps: with TLS",
        #[cfg(feature = "kieker")]
        "kieker+tcp://host:port    listens for socket writers of Kieker",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR            reads a log of Kieker, text or binary",
        #[cfg(feature = "otlp")]
        "otlp://host:port          listens for senders of OTLP, by gRPC or HTTP;",
        #[cfg(feature = "otlp")]
        "                          otlp+tls: with TLS, otlp+unix:PATH at a socket",
        "file:///folder            reads a folder or a file",
        "jsonl:PATH                reads JSON lines: of a file, a folder,",
        "                          names with *, or standard input (-)",
        "text:PATH                 reads lines of text in the same way",
        "null:                     has no chunks",
    ])
}

/// Lists the media that chunks can go to, one a line.
pub(super) fn targets() -> String {
    lines(&[
        "tcp://host:port           a receiver; tcp+tls: with TLS",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic   a topic",
        #[cfg(feature = "amqp")]
        "amqp://host?queue=NAME    a queue, or exchange=NAME; amqps: with TLS",
        #[cfg(feature = "kieker")]
        "kieker+tcp://host:port    Kieker's TCP source",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR            a log of Kieker",
        #[cfg(feature = "otlp")]
        "otlp://host:port          a receiver of OTLP/gRPC; otlp+http: by HTTP,",
        #[cfg(feature = "otlp")]
        "                          otlp+tls: and otlp+https: with TLS,",
        #[cfg(feature = "otlp")]
        "                          otlp+unix:PATH a socket, otlp+file:PATH a file",
        "file:///folder            a folder",
        "null:                     nothing; chunks are discarded",
    ])
}

/// Lists the endpoints that `tap` can look at, one a line.
pub(super) fn tapped() -> String {
    lines(&[
        "http://host:port          the --metrics address of a running command",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic   a topic, beside its consumers",
        #[cfg(feature = "amqp")]
        "amqp://host?exchange=NAME an exchange, or a queue of the type stream",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR            a log of Kieker",
        "file:///folder            a folder",
        "jsonl:PATH, text:PATH     lines",
    ])
}

/// Lists the media that `sweep` can measure, one a line.
pub(super) fn swept() -> String {
    lines(&[
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic   a topic",
        #[cfg(feature = "kafka")]
        "kafka+mock:topic          a cluster in a process of its own",
        #[cfg(feature = "amqp")]
        "amqp://host?queue=NAME    a queue; amqps: with TLS",
        "tcp://host:port           a receiver in a process of its own",
        "file:///folder, null:     only with --consumers 0",
    ])
}

fn lines(media: &[&str]) -> String {
    media.join("\n")
}

#[cfg(test)]
mod tests;
