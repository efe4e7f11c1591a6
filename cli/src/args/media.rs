//! The built-in media, which the help of `--from` and `--to` lists.

/// Lists the media that chunks can come from.
pub(super) fn sources() -> String {
    listed(&[
        "tcp://host:port (tcp+tls: with TLS) listens for senders",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic joins a consumer group",
        #[cfg(feature = "kafka")]
        "kafka+mock:topic starts a small cluster inside this process, which keeps 5 MiB a partition",
        #[cfg(feature = "amqp")]
        "amqp://host:port/vhost?queue=name (amqps: with TLS) reads a queue",
        #[cfg(feature = "kieker")]
        "kieker+tcp://host:port listens for socket writers of Kieker",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR reads a log of Kieker, text or binary",
        "file:///folder reads a folder or a file",
        "jsonl:PATH reads JSON lines, text:PATH lines of text: of a file, of a folder, of names \
         with *, or of standard input (jsonl:-)",
        "null: has no chunks",
    ])
}

/// Lists the media that chunks can go to.
pub(super) fn targets() -> String {
    listed(&[
        "tcp://host:port (tcp+tls: with TLS)",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic",
        #[cfg(feature = "amqp")]
        "amqp://host:port/vhost?queue=name (amqps: with TLS)",
        #[cfg(feature = "kieker")]
        "kieker+tcp://host:port sends records to Kieker's TCP source",
        #[cfg(feature = "kieker")]
        "kieker-log:folder writes a log of Kieker",
        "file:///folder",
        "null: (discards them)",
    ])
}

/// Lists the endpoints that `tap` can look at.
pub(super) fn tapped() -> String {
    listed(&[
        "http://host:port is the --metrics address of a running command",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic",
        #[cfg(feature = "amqp")]
        "amqp://host:port/vhost?exchange=name",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR",
        "file:///folder",
        "jsonl:PATH, text:PATH",
    ])
}

/// Lists the media that `sweep` can measure.
pub(super) fn swept() -> String {
    listed(&[
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic",
        #[cfg(feature = "kafka")]
        "kafka+mock:topic (a cluster in a process of its own)",
        #[cfg(feature = "amqp")]
        "amqp://host:port/vhost?queue=name (amqps: with TLS)",
        "tcp://host:port",
        "file:///folder and null: with --consumers 0",
    ])
}

fn listed(media: &[&str]) -> String {
    media.join("; ")
}

#[cfg(test)]
mod tests;
