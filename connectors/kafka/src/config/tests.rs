//! Tests of the settings in a URI.

use baler_common::transport::Browse;
use rdkafka::consumer::DefaultConsumerContext;

use super::*;
use crate::client;

fn config(text: &str) -> Result<KafkaConfig, KafkaConfigError> {
    KafkaConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn settings_come_from_the_uri() {
    let config = config(
        "kafka://a:9092,b:9093/chunks?window_chunks=8&window=2MiB&message.max.bytes=1MiB\
         &partition_by=lane&revoke_timeout=1s&group.id=mine&linger.ms=50\
         &session.timeout.ms=7000&group.instance.id=one",
    )
    .unwrap();
    assert_eq!(config.to_string(), "kafka://a:9092,b:9093/chunks");
    assert_eq!(&*config.topic, "chunks");
    assert_eq!(config.window.chunks.get(), 8);
    assert_eq!(config.window.bytes.get(), 2 << 20);
    assert_eq!(chunk_of(config.message_bytes()).get(), (1 << 20) - 512);
    assert_eq!(config.partition_by, PartitionBy::Lane);
    assert_eq!(config.revoke_timeout, Duration::from_secs(1));
    let producer = config.producer(false).unwrap();
    assert_eq!(producer.get("bootstrap.servers"), Some("a:9092,b:9093"));
    assert_eq!(producer.get("linger.ms"), Some("50"));
    assert_eq!(producer.get("acks"), Some("all"));
    assert_eq!(producer.get("enable.idempotence"), Some("true"));
    assert_eq!(producer.get("message.max.bytes"), Some("1048576"));
    let consumer = config.consumer().unwrap();
    assert_eq!(consumer.get("group.id"), Some("mine"));
    assert_eq!(consumer.get("session.timeout.ms"), Some("7000"));
    assert_eq!(consumer.get("heartbeat.interval.ms"), Some("500"));
    assert_eq!(consumer.get("group.instance.id"), Some("one"));
}

#[test]
fn credentials_of_the_uri_are_those_of_sasl_and_stay_hidden() {
    let config = config(
        "kafka://me:hush@broker/chunks?security.protocol=sasl_ssl&sasl.mechanism=SCRAM-SHA-512",
    )
    .unwrap();
    let producer = config.producer(false).unwrap();
    assert_eq!(producer.get("sasl.username"), Some("me"));
    assert_eq!(producer.get("sasl.password"), Some("hush"));
    assert_eq!(producer.get("sasl.mechanism"), Some("SCRAM-SHA-512"));
    assert_eq!(producer.get("ssl.ca.location"), Some("probe"));
    assert!(!format!("{config:?} {config}").contains("hush"));
}

#[test]
fn writer_waits_longer_than_a_killed_node_is_away() {
    let timeout = |text| {
        let producer = config(text).unwrap().producer(false).unwrap();
        producer.get("message.timeout.ms").map(str::to_owned)
    };
    assert_eq!(timeout("kafka://h/t").as_deref(), Some("120000"));
    let given = timeout("kafka://h/t?message.timeout.ms=5000");
    assert_eq!(given.as_deref(), Some("5000"));
}

#[test]
fn reader_waits_a_minute_for_its_group_or_as_long_as_its_session_lasts() {
    let interval = |text| {
        let consumer = config(text).unwrap().consumer().unwrap();
        consumer.get("max.poll.interval.ms").map(str::to_owned)
    };
    assert_eq!(interval("kafka://h/t").as_deref(), Some("60000"));
    let long = interval("kafka://h/t?session.timeout.ms=90000");
    assert_eq!(long.as_deref(), Some("90000"));
    let given = interval("kafka://h/t?max.poll.interval.ms=20000");
    assert_eq!(given.as_deref(), Some("20000"));
}

#[test]
fn settings_of_the_classic_protocol_are_left_out_with_the_other_one() {
    for protocol in ["consumer", "CONSUMER"] {
        let config = config(&format!("kafka://h/t?group.protocol={protocol}")).unwrap();
        let settings = [config.consumer(), config.browser(Browse::UntilNow)];
        for settings in settings.map(Result::unwrap) {
            for (classic, _) in CLASSIC {
                assert_eq!(settings.get(classic), None, "{classic}");
            }
            // librdkafka checks settings against each other when it makes a client.
            client::consumer(&settings, DefaultConsumerContext).unwrap();
        }
    }
    let classic = config("kafka://h/t?group.protocol=classic").unwrap();
    let settings = classic.consumer().unwrap();
    assert_eq!(settings.get("session.timeout.ms"), Some("6000"));
}

#[test]
fn what_cannot_be_is_named() {
    let error = |text: &str| config(text).unwrap_err().to_string();
    assert!(error("kafka://host").contains("the topic is missing"));
    assert!(error("kafka:///topic").contains("the host is missing"));
    let unknown = error("kafka://host/topic?lingr.ms=5");
    assert!(
        unknown.contains("lingr.ms is unknown; did you mean linger.ms?"),
        "{unknown}"
    );
    for wrong in ["group", "group_id", "groupid"] {
        let unknown = error(&format!("kafka://host/topic?{wrong}=mine"));
        assert!(unknown.contains("did you mean group.id?"), "{unknown}");
    }
    let wrong = error("kafka://host/topic?linger.ms=soon");
    assert!(wrong.contains("linger.ms"), "{wrong}");
    assert!(error("kafka://host/topic?message.max.bytes=10").contains("message.max.bytes"));
    assert!(error("kafka+mock://host/topic").contains("no host"));
}

#[test]
fn secret_that_is_not_taken_is_not_told() {
    let error = config("kafka://host/topic?sasl.pasword=hush").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
}

#[test]
fn conflict_names_both_settings() {
    for (query, first, second) in [
        ("acks=1", "acks=1", "enable.idempotence=true"),
        (
            "acks=1&enable.idempotence=true",
            "acks=1",
            "enable.idempotence=true",
        ),
        (
            "queue.buffering.max.messages=9",
            "queue.buffering.max.messages",
            "window_chunks",
        ),
        (
            "queue.buffering.max.kbytes=9",
            "queue.buffering.max.kbytes",
            "window",
        ),
        ("bootstrap.servers=b:1", "bootstrap.servers", "hosts"),
        ("enable.auto.commit=false", "enable.auto.commit", "settle"),
        (
            "sasl.password=a&sasl.password.file=/b",
            "sasl.password",
            "sasl.password.file",
        ),
        (
            "sasl.mechanism=OAUTHBEARER",
            "sasl.mechanism=oauthbearer",
            "sasl.oauthbearer.token.file",
        ),
        (
            "sasl.mechanism=PLAIN&sasl.oauthbearer.token.file=/t",
            "sasl.mechanism=plain",
            "sasl.oauthbearer.token.file",
        ),
        (
            "sasl.mechanism=OAUTHBEARER&sasl.oauthbearer.method=oidc",
            "sasl.oauthbearer.method=oidc",
            "this build",
        ),
        (
            "create_topic=3,1&security.protocol=sasl_ssl&sasl.mechanism=OAUTHBEARER\
             &sasl.oauthbearer.token.file=/t",
            "create_topic=3,1",
            "sasl.mechanism=OAUTHBEARER",
        ),
        (
            "acks=all&request.required.acks=1",
            "acks",
            "request.required.acks",
        ),
        (
            "message.timeout.ms=1&delivery.timeout.ms=2",
            "message.timeout.ms",
            "delivery.timeout.ms",
        ),
        (
            "group.protocol=consumer&session.timeout.ms=9000",
            "session.timeout.ms",
            "group.consumer.session.timeout.ms",
        ),
        (
            "partition.assignment.strategy=range&group.protocol=Consumer",
            "partition.assignment.strategy",
            "group.protocol=consumer",
        ),
    ] {
        let error = config(&format!("kafka://host/topic?{query}")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("conflicts with"), "{text}");
        assert!(text.contains(first) && text.contains(second), "{text}");
    }
    let text = config("kafka://me@host/topic").unwrap_err().to_string();
    assert!(
        text.contains("user") && text.contains("security.protocol"),
        "{text}"
    );
    let text = config("kafka://me@host/topic?security.protocol=sasl_ssl&sasl.username=you");
    let text = text.unwrap_err().to_string();
    assert!(
        text.contains("user") && text.contains("sasl.username"),
        "{text}"
    );
}

#[test]
fn weaker_acknowledgements_can_be_asked_for() {
    let config = config("kafka://host/topic?acks=1&enable.idempotence=false").unwrap();
    assert_eq!(config.producer(false).unwrap().get("acks"), Some("1"));
}

#[test]
fn topic_that_is_to_be_created_has_a_shape() {
    let made = config("kafka://host/topic?create_topic=12,3&partition_by=trace").unwrap();
    let shape = made.create_topic.unwrap();
    assert_eq!((shape.partitions.get(), shape.replication.get()), (12, 3));
    assert_eq!(made.partition_by, PartitionBy::Trace);
    for wrong in [
        "", "12", "12,", ",3", "0,1", "1,0", "1,2,3", "1,%202", "99999,1",
    ] {
        let wrong = config(&format!("kafka://host/topic?create_topic={wrong}")).unwrap_err();
        assert!(wrong.to_string().contains("PARTITIONS,REPLICATION"));
    }
    config("kafka+mock:topic?create_topic=2,1").unwrap();
    let both = config("kafka+mock:topic?create_topic=2,1&partitions=2").unwrap_err();
    let text = both.to_string();
    assert!(text.contains("partitions") && text.contains("create_topic"));
}

#[test]
fn password_of_a_file_is_read_when_a_client_is_made() {
    let name = format!("baler-kafka-config-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, "hush\n").unwrap();
    let config = config(&format!(
        "kafka://me@broker/chunks?security.protocol=sasl_ssl&sasl.password.file={}",
        path.display()
    ))
    .unwrap();
    let producer = config.producer(false).unwrap();
    assert_eq!(producer.get("sasl.password"), Some("hush"));
    assert_eq!(producer.get("sasl.password.file"), None);
    std::fs::remove_file(&path).unwrap();
    let failure = config.producer(false).unwrap_err();
    assert!(failure.message.contains("sasl.password.file"));
}

#[test]
fn embedded_cluster_tells_where_it_listens() {
    let config = config("kafka+mock:chunks?partitions=2").unwrap();
    let cluster = config.embedded_cluster().unwrap();
    assert!(cluster.bootstrap_servers().starts_with("127.0.0.1:"));
    assert_eq!(
        config.to_string(),
        format!("kafka://{}/chunks", cluster.bootstrap_servers())
    );
}
