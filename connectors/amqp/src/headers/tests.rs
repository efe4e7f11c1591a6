use baler_common::transport::Epoch;
use baler_common::transport::uri::Uri;
use lapin::types::AMQPType;

use super::*;
use crate::client::{queue_arguments, tap_arguments};
use crate::config::{AmqpConfig, Start};

fn of(container: ContainerKind) -> ChunkMeta {
    ChunkMeta {
        container,
        records: u32::MAX,
        identity: ChunkIdentity {
            producer: ProducerId::new(u128::MAX - 5),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0xdead_beef,
            },
            lane: u32::MAX,
            sequence: u64::MAX - 1,
        },
    }
}

#[test]
fn identity_survives_the_headers_of_a_container_without_one() {
    for container in [ContainerKind::Added, ContainerKind::Kieker] {
        let meta_before = of(container);
        assert_eq!(meta(&properties(&meta_before)), Some(meta_before));
    }
}

#[test]
fn native_container_is_not_told_twice_who_it_is() {
    let mut meta_before = of(ContainerKind::Native);
    meta_before.records = 128;
    meta_before.identity.lane = 2;
    meta_before.identity.sequence = 77;
    let properties = properties(&meta_before);
    assert_eq!(properties.headers(), &None);
    let text = |text: &Option<lapin::types::ShortString>| {
        text.as_ref().map(|text| text.as_str().to_owned())
    };
    assert_eq!(text(properties.kind()).as_deref(), Some("baler"));
    assert_eq!(text(properties.message_id()).as_deref(), Some("2-77-128"));
    assert_eq!(meta(&properties), None);
}

#[test]
fn headers_of_earlier_versions_are_read() {
    let meta_before = of(ContainerKind::Kieker);
    let properties = properties(&meta_before);
    let mut headers = properties.headers().clone().unwrap();
    for (name, number) in [
        (LANE, meta_before.identity.lane),
        (RECORDS, meta_before.records),
    ] {
        headers.insert(name.into(), AMQPValue::LongUInt(number));
    }
    assert_eq!(meta(&properties.with_headers(headers)), Some(meta_before));
}

/// The field types that `ValueReader` of RabbitMQ's Java client 4.12.0 reads; of any other one it
/// says `Unrecognised type in table`, and the connection ends.
const JAVA_READS: &str = "SIDTFAbdflstxV";

#[test]
fn every_table_has_only_fields_that_old_java_clients_read() {
    let config = |settings: &str| {
        let uri = format!("amqp://host?queue=q&{settings}");
        AmqpConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap()
    };
    let chunks = [ContainerKind::Kieker, ContainerKind::Native];
    let chunks = chunks.map(|container| properties(&of(container)).headers().clone());
    let queues = [
        "queue_type=classic&max_length=9&max_length_bytes=9&overflow=drop-head&message_ttl=1m\
             &single_active=yes&dead_letter_queue=d",
        "delivery_limit=3&replicas=3&dead_letter_exchange=e&dead_letter_routing_key=k",
        "queue_type=stream&max_length_bytes=1GB&max_age=7d&replicas=3",
    ];
    let queues = queues.map(|settings| queue_arguments(&config(settings)));
    let tables = chunks.into_iter().flatten().chain(queues);
    let mut values: Vec<AMQPValue> = tables
        .chain([tap_arguments()])
        .flat_map(|table| table.inner().values().cloned().collect::<Vec<_>>())
        .collect();
    values.extend([Start::First, Start::Offset(7), Start::Timestamp(7)].map(Start::argument));
    assert!(values.len() > 20, "{values:?}");
    for value in &values {
        let kind = value.get_type();
        // A table or a list would have fields of its own to look at.
        let flat = !matches!(kind, AMQPType::FieldArray | AMQPType::FieldTable);
        assert!(
            flat && JAVA_READS.contains(kind.get_id()),
            "{kind}: {value:?}"
        );
    }
}

#[test]
fn foreign_headers_are_no_identity() {
    assert_eq!(meta(&BasicProperties::default()), None);
    let mut headers = FieldTable::default();
    headers.insert(EPOCH.into(), AMQPValue::LongString("17-x".into()));
    let properties = properties(&of(ContainerKind::Kieker)).with_headers(headers);
    assert_eq!(meta(&properties), None);
}
