//! What the help of `--from` and `--to` says: the media that are built in.

/// The media that chunks can come from.
pub(super) fn sources() -> String {
    listed(&[
        "tcp://host:port (tcp+tls: with TLS) listens for senders",
        #[cfg(feature = "kafka")]
        "kafka://host:port/topic joins a consumer group",
        #[cfg(feature = "kafka")]
        "kafka+mock:topic starts a small cluster inside this process",
        #[cfg(feature = "amqp")]
        "amqp://host:port/vhost?queue=name (amqps: with TLS) reads a queue",
        #[cfg(feature = "kieker")]
        "kieker+tcp://host:port listens for socket writers of Kieker",
        #[cfg(feature = "kieker")]
        "kieker-log:DIR reads a log of Kieker, text or binary",
        "file:///folder reads a folder or a file",
        "null: has no chunks",
    ])
}

/// The media that chunks can go to.
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

/// What `tap` can look at.
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
    ])
}

/// What `sweep` can measure.
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
mod tests {
    use crate::args::Cli;

    #[test]
    fn help_of_ends_names_the_media_that_are_built_in() {
        let amqp = cfg!(feature = "amqp");
        let kafka = cfg!(feature = "kafka");
        let mut command = Cli::command();
        for (name, flags) in [
            ("analyze", &["from"][..]),
            ("generate", &["to"]),
            ("receive", &["from"]),
            ("relay", &["from", "to"]),
            ("replay", &["to"]),
            ("send", &["from", "to"]),
            ("sweep", &["to"]),
            ("tap", &["from"]),
            ("validate", &["from", "to"]),
        ] {
            let sub = command.find_subcommand_mut(name).unwrap();
            for flag in flags {
                let mut arguments = sub.get_arguments();
                let argument = arguments.find(|it| it.get_id() == *flag).unwrap();
                let help = argument.get_help().unwrap().to_string();
                for (scheme, is_there) in [("amqp://", amqp), ("kafka://", kafka), ("file:", true)]
                {
                    assert_eq!(help.contains(scheme), is_there, "{name} {flag}: {help}");
                }
            }
        }
    }
}
