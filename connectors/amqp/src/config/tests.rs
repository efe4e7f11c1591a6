//! Settings from URIs, and what contradicts what.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use baler_common::transport::uri::{Uri, UriError};
use lapin::types::{AMQPValue, FieldTable};

use super::{AmqpConfig, Password, QueueArguments, QueueType, Start, TapTarget};

fn config(text: &str) -> Result<AmqpConfig, UriError> {
    AmqpConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn path_is_the_virtual_host_alone_and_shown_as_typed() {
    for (uri, vhost) in [
        ("amqp://host?queue=q", "/"),
        ("amqp://host/?queue=q", "/"),
        ("amqp://host/%2f?queue=q", "/"),
        ("amqp://host/%2F?queue=q", "/"),
        ("amqp://host/a/b?queue=q", "a/b"),
        ("amqp://host/a%2fb?queue=q", "a/b"),
    ] {
        let config = config(uri).unwrap();
        assert_eq!(&*config.vhost, vhost, "{uri}");
        assert_eq!(config.to_string(), uri);
    }
}

#[test]
fn password_is_never_shown() {
    let config = config("amqps://me:s3cret@host/v?exchange=e&routing_key=k").unwrap();
    assert_eq!(config.password.read().unwrap(), "s3cret");
    let shown = format!("{config} {config:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!(
        config.to_string(),
        "amqps://host/v?exchange=e&routing_key=k"
    );
    assert_eq!(config.port(&config.hosts[0]), 5671);
}

#[test]
fn several_hosts_are_named_in_one_uri() {
    let config = config("amqp://me:s3cret@a:1,b,[::1]:3/v?queue=q").unwrap();
    assert_eq!(config.to_string(), "amqp://a:1,b,[::1]:3/v?queue=q");
    let ports: Vec<_> = config.hosts.iter().map(|host| config.port(host)).collect();
    assert_eq!(ports, [1, 5672, 3]);
}

#[test]
fn password_is_in_the_uri_or_in_a_file() {
    let config = config("amqp://me@host?queue=q&password_file=/run/secret").unwrap();
    assert!(config.password == Password::File("/run/secret".into()));
    let both = self::config("amqp://me:s3cret@host?queue=q&password_file=/run/secret");
    let both = both.unwrap_err().to_string();
    assert!(both.contains("password_file") && both.contains("before the host"));
    assert!(!both.contains("s3cret"), "{both}");
}

#[test]
fn settings_come_from_the_uri() {
    let config = config(
        "amqp://host:1?queue=q&queue_type=classic&max_chunk=1MiB&window_chunks=8\
         &window=2MiB&prefetch=9&ack_every=3&ack_interval=20ms&heartbeat=4s&connect_timeout=3s\
         &confirm_timeout=7s&reconnect_max=1s&dead_letter_queue=dead&lag_interval=0",
    )
    .unwrap();
    assert_eq!(config.queue_type, QueueType::Classic);
    assert!(config.declare);
    assert_eq!(config.max_chunk_bytes.get(), 1 << 20);
    assert_eq!(
        (config.window.chunks.get(), config.window.bytes.get()),
        (8, 2 << 20)
    );
    assert_eq!((config.prefetch.get(), config.ack_every.get()), (9, 3));
    assert_eq!(config.ack_interval, Duration::from_millis(20));
    assert_eq!(config.heartbeat, Duration::from_secs(4));
    assert_eq!(config.connect_timeout, Duration::from_secs(3));
    assert_eq!(config.confirm_timeout, Duration::from_secs(7));
    assert_eq!(config.reconnect_max, Duration::from_secs(1));
    assert_eq!(config.lag_interval, Duration::ZERO);
    assert_eq!(config.names.dead_letter_queue.as_deref(), Some("dead"));
    let config = self::config("amqp://host?queue=q&declare=no").unwrap();
    assert!(!config.declare);
    let config = self::config("amqp://host?queue=q&queue_type=stream&offset=7");
    assert_eq!(config.unwrap().start, Start::Offset(7));
}

#[test]
fn what_cannot_be_is_named() {
    let error = |text: &str| config(text).unwrap_err().to_string();
    assert!(error("amqp://host").contains("queue"));
    assert!(error("amqp://host?quueue=q").contains("did you mean queue?"));
    assert!(error("amqp://host?queue=q&routing_key=k").contains("exchange"));
    assert!(error("amqp://host?queue=q&prefech=1").contains("did you mean prefetch"));
    assert!(error("amqp://host?queue=q&queue_type=quorom").contains("quorum"));
    assert!(error("amqps://host?queue=q&certfile=a").contains("keyfile"));
    assert!(error("amqp://host?queue=q&cacertfile=a").contains("amqps"));
    let both = error("amqp://host?queue=q&queue_type=stream&dead_letter_queue=d");
    assert!(both.contains("queue_type") && both.contains("dead_letter_queue"));
    let both = error("amqp://host?queue=q&declare=no&dead_letter_exchange=d");
    assert!(both.contains("declare=no") && both.contains("dead_letter_exchange"));
    let both = error("amqp://host?queue=q&dead_letter_exchange=d&dead_letter_queue=e");
    assert!(both.contains("dead_letter_queue") && both.contains("dead_letter_exchange"));
    assert!(error("amqp://host?queue=q&dead_letter_routing_key=k").contains("_exchange"));
    let both = error("amqp://host?queue=q&position_file=p");
    assert!(both.contains("queue_type=quorum") && both.contains("position_file"));
    let both = error("amqp://host?queue=q&queue_type=classic&offset=first");
    assert!(both.contains("queue_type=classic") && both.contains("offset"));
    assert!(error("amqp://host?exchange=e&max_length=3").contains("queue"));
    let long = "q".repeat(256);
    assert!(error(&format!("amqp://host?queue={long}")).contains("255"));
    for lanes in ["0", "-1", "4097", "x"] {
        assert!(error(&format!("amqp://host?queue=q&lane_queues={lanes}")).contains("1 to 4096"));
    }
    let both = error("amqp://host?exchange=e&exchange_type=fanout&lane_queues=2");
    assert!(
        both.contains("lane_queues") && both.contains("exchange_type=fanout"),
        "{both}"
    );
    let long = "q".repeat(251);
    assert!(error(&format!("amqp://host?queue={long}&lane_queues=2")).contains("250"));
}

#[test]
fn each_lane_has_a_queue_and_a_routing_key() {
    let names = |query: &str| config(&format!("amqp://host?{query}")).unwrap().names;
    let plain = names("queue=q");
    assert_eq!(plain.target(), ("", vec!["q".to_owned()]));
    let lanes = names("queue=q&lane_queues=2");
    assert_eq!(
        lanes.target(),
        ("", vec!["q.0".to_owned(), "q.1".to_owned()])
    );
    assert_eq!(lanes.to_string(), "?queue=q&lane_queues=2");
    let bound = names("queue=q&exchange=e&routing_key=k&lane_queues=2");
    assert_eq!(
        bound.target(),
        ("e", vec!["k.0".to_owned(), "k.1".to_owned()])
    );
    assert_eq!(bound.of_lanes("q"), ["q.0", "q.1"]);
    let without_key = names("exchange=e&lane_queues=2");
    assert_eq!(
        without_key.target(),
        ("e", vec!["0".to_owned(), "1".to_owned()])
    );
}

#[test]
fn file_is_read_each_time_and_its_line_end_is_no_part_of_it() {
    let name = format!("baler-amqp-password-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let password = Password::File(path.clone());
    for (written, meant) in [("first\n", "first"), (" second \r\n", " second ")] {
        fs::write(&path, written).unwrap();
        assert_eq!(password.read().unwrap(), meant);
    }
    fs::remove_file(&path).unwrap();
    let failure = password.read().unwrap_err();
    assert!(failure.message.contains("password_file"), "{failure:?}");
}

#[test]
fn start_is_a_word_an_offset_or_a_time() {
    assert_eq!(Start::parse("next"), Some(Start::Next));
    assert_eq!(Start::parse("17"), Some(Start::Offset(17)));
    let time = Start::Timestamp(1_700_000_000);
    assert_eq!(Start::parse("timestamp:1700000000"), Some(time));
    assert_eq!(time.argument(), AMQPValue::Timestamp(1_700_000_000));
    for wrong in ["", "-1", "lst", "timestamp:", "1h"] {
        assert_eq!(Start::parse(wrong), None, "{wrong}");
    }
}

fn limits(query: &str) -> Result<QueueArguments, UriError> {
    QueueArguments::take(&mut Uri::parse(&format!("amqp://host?{query}")).unwrap())
}

fn declared(query: &str, queue_type: QueueType) -> Vec<String> {
    let limits = limits(query).unwrap();
    limits.check(queue_type, true, true).unwrap();
    let mut arguments = FieldTable::default();
    limits.add_to(queue_type, &mut arguments);
    let names = arguments.inner().keys();
    names.map(ToString::to_string).collect()
}

#[test]
fn full_queue_refuses_unless_the_operator_wants_otherwise() {
    let overflow = |query| {
        let mut arguments = FieldTable::default();
        let limits = limits(query).unwrap();
        limits.add_to(QueueType::Quorum, &mut arguments);
        arguments.inner().get("x-overflow").cloned()
    };
    let text = |text: &str| Some(AMQPValue::LongString(text.into()));
    assert_eq!(overflow("max_length=5"), text("reject-publish"));
    assert_eq!(
        overflow("max_length_bytes=5MiB&overflow=drop-head"),
        text("drop-head")
    );
    assert_eq!(overflow("message_ttl=1h"), None);
}

#[test]
fn each_kind_of_queue_is_declared_with_what_it_knows() {
    assert_eq!(
        declared("delivery_limit=3&replicas=3", QueueType::Quorum),
        ["x-delivery-limit", "x-quorum-initial-group-size"]
    );
    assert_eq!(
        declared(
            "max_length_bytes=1GB&max_age=7d&replicas=3",
            QueueType::Stream
        ),
        ["x-initial-cluster-size", "x-max-age", "x-max-length-bytes"]
    );
    assert_eq!(
        declared(
            "max_length=9&message_ttl=1m&single_active=yes",
            QueueType::Classic
        ),
        [
            "x-max-length",
            "x-message-ttl",
            "x-overflow",
            "x-single-active-consumer"
        ]
    );
}

#[test]
fn limit_that_a_queue_does_not_know_is_an_error_that_names_both() {
    let error = |query: &str, queue_type, declares| {
        let limits = limits(query).unwrap();
        limits
            .check(queue_type, declares, true)
            .unwrap_err()
            .to_string()
    };
    let both = |text: String, other: &str| {
        assert!(text.contains(other), "{text}");
        text
    };
    let text = error("delivery_limit=3", QueueType::Classic, true);
    assert!(both(text, "queue_type=classic").contains("delivery_limit"));
    let text = error("max_length=3", QueueType::Stream, true);
    assert!(both(text, "queue_type=stream").contains("max_length"));
    let text = error("max_age=1h", QueueType::Quorum, true);
    assert!(both(text, "queue_type=quorum").contains("max_age"));
    let text = error("max_length=3", QueueType::Quorum, false);
    assert!(both(text, "declare=no").contains("max_length"));
    let text = error("overflow=drop-head", QueueType::Quorum, true);
    assert!(both(text, "overflow").contains("max_length"));
    assert!(limits("message_ttl=50d").is_err() && limits("max_age=200ms").is_err());
}

fn tap(text: &str, from_start: bool) -> Result<AmqpConfig, UriError> {
    AmqpConfig::from_uri(Uri::parse(text).unwrap())?.tap(from_start)
}

fn inspect(text: &str) -> Result<AmqpConfig, UriError> {
    AmqpConfig::from_uri(Uri::parse(text).unwrap())?.inspect()
}

#[test]
fn queue_that_consumers_share_cannot_be_looked_at() {
    let error = tap("amqp://host?queue=work", false)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("takes its chunks from the consumers"),
        "{error}"
    );
    assert!(error.contains("exchange=name"), "{error}");
}

#[test]
fn exchange_is_looked_at_through_a_queue_of_its_own() {
    let config = tap(
        "amqp://host?exchange=e&queue=work&dead_letter_queue=dead",
        false,
    );
    let config = config.unwrap();
    let queue = config.names.queue.unwrap();
    assert!(queue.starts_with("baler-tap-"), "{queue}");
    assert_eq!(config.names.dead_letter_queue, None);
    let topic = tap("amqp://host?exchange=e&exchange_type=topic", false).unwrap();
    assert_eq!(&*topic.names.routing_key, "#");
    let error = tap("amqp://host?exchange=e", true).unwrap_err().to_string();
    assert!(error.contains("keeps nothing"), "{error}");
}

#[test]
fn stream_is_looked_at_from_now_on_or_from_its_start() {
    let uri = "amqp://host?queue=log&queue_type=stream&position_file=/p";
    let config = tap(uri, false).unwrap();
    assert_eq!((config.start, config.position_file), (Start::Next, None));
    assert_eq!(tap(uri, true).unwrap().start, Start::First);
    let whole = inspect(uri).unwrap();
    assert_eq!((whole.start, whole.position_file), (Start::First, None));
}

#[test]
fn queue_is_inspected_without_a_limit_that_would_reject_and_an_exchange_is_not() {
    let config = inspect("amqp://host?queue=work&exchange=e&max_chunk=1KiB").unwrap();
    assert_eq!(config.tap_target, Some(TapTarget::Queue));
    assert_eq!(config.max_chunk_bytes, NonZeroU32::MAX);
    let error = inspect("amqp://host?exchange=e").unwrap_err().to_string();
    assert!(error.contains("keeps nothing"), "{error}");
}
