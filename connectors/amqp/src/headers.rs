//! What travels beside a container: who it is, where the container cannot say so itself.

use std::str::FromStr;

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ProducerId};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

/// The property `type` of a message with a native container.
const NATIVE_TYPE: &str = "baler";

const PRODUCER: &str = "baler-producer";
const EPOCH: &str = "baler-epoch";
const LANE: &str = "baler-lane";
const SEQUENCE: &str = "baler-sequence";
const RECORDS: &str = "baler-records";

/// Kept across a restart of the broker (AMQP 0.9.1, `delivery-mode`).
pub(crate) const PERSISTENT: u8 = 2;

/// The property `content-type` of a message with Kieker's container.
const KIEKER_TYPE: &str = "application/x-kieker-chunk";

/// The property `content-type` of a message with a container of another crate.
const ADDED_TYPE: &str = "application/x-baler-added-chunk";

/// The properties of a message with this chunk.
///
/// A native container says who it is, so that only what helps a person to tell messages apart is
/// repeated, and in the two properties that take the fewest bytes: of small chunks a table of named
/// headers would be a tenth of what is sent.
pub(crate) fn properties(meta: &ChunkMeta) -> BasicProperties {
    let identity = meta.identity;
    if meta.container.carries_identity() {
        let ChunkIdentity { lane, sequence, .. } = identity;
        let records = meta.records;
        return BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_type(NATIVE_TYPE.into())
            .with_message_id(format!("{lane}-{sequence}-{records}").into());
    }
    let mut headers = FieldTable::default();
    // Signed: the Java clients of RabbitMQ know no unsigned field types before 5.12 (2021), and
    // close the connection over one (rabbitmq-java-client, pull requests 674 and 675).
    for (name, number) in [
        (LANE, identity.lane.into()),
        (SEQUENCE, identity.sequence.cast_signed()),
        (RECORDS, meta.records.into()),
    ] {
        headers.insert(name.into(), AMQPValue::LongLongInt(number));
    }
    let producer = identity.producer.to_string();
    headers.insert(PRODUCER.into(), AMQPValue::LongString(producer.into()));
    let epoch = identity.epoch.to_string();
    headers.insert(EPOCH.into(), AMQPValue::LongString(epoch.into()));
    let content_type = match meta.container {
        ContainerKind::Added => ADDED_TYPE,
        ContainerKind::Kieker | ContainerKind::Native => KIEKER_TYPE,
    };
    BasicProperties::default()
        .with_content_type(content_type.into())
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers)
}

/// What the properties say of a chunk, if they say all of it; a native container says it itself.
pub(crate) fn meta(properties: &BasicProperties) -> Option<ChunkMeta> {
    let container = match properties.content_type().as_ref()?.as_str() {
        ADDED_TYPE => ContainerKind::Added,
        KIEKER_TYPE => ContainerKind::Kieker,
        _ => return None,
    };
    let headers = properties.headers().as_ref()?;
    let (start, random) = text(headers, EPOCH)?.split_once('-')?;
    Some(ChunkMeta {
        container,
        records: u32::try_from(number(headers, RECORDS)?).ok()?,
        identity: ChunkIdentity {
            producer: ProducerId::from_str(text(headers, PRODUCER)?).ok()?,
            epoch: Epoch {
                start_unix_ns: start.parse().ok()?,
                random: u32::from_str_radix(random, 16).ok()?,
            },
            lane: u32::try_from(number(headers, LANE)?).ok()?,
            sequence: number(headers, SEQUENCE)?.cast_unsigned(),
        },
    })
}

/// How often the broker delivered a message before, where it counts (quorum queues do).
pub(crate) fn delivery_count(properties: &BasicProperties) -> Option<u32> {
    let headers = properties.headers().as_ref()?;
    u32::try_from(number(headers, "x-delivery-count")?).ok()
}

/// The number of a message in its stream.
pub(crate) fn stream_offset(properties: &BasicProperties) -> Option<u64> {
    let headers = properties.headers().as_ref()?;
    u64::try_from(number(headers, "x-stream-offset")?).ok()
}

fn text<'a>(headers: &'a FieldTable, name: &str) -> Option<&'a str> {
    match headers.inner().get(name)? {
        AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok(),
        AMQPValue::ShortString(text) => Some(text.as_str()),
        _ => None,
    }
}

/// A whole number, in whichever width the broker or another sender chose.
fn number(headers: &FieldTable, name: &str) -> Option<i64> {
    match headers.inner().get(name)? {
        AMQPValue::ShortShortInt(number) => Some((*number).into()),
        AMQPValue::ShortShortUInt(number) => Some((*number).into()),
        AMQPValue::ShortInt(number) => Some((*number).into()),
        AMQPValue::ShortUInt(number) => Some((*number).into()),
        AMQPValue::LongInt(number) => Some((*number).into()),
        AMQPValue::LongUInt(number) => Some((*number).into()),
        AMQPValue::LongLongInt(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use baler_common::transport::uri::Uri;
    use lapin::types::AMQPType;

    use super::*;
    use crate::client::topology;
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
        let queues = queues.map(|settings| topology::queue_arguments(&config(settings)));
        let tables = chunks.into_iter().flatten().chain(queues);
        let mut values: Vec<AMQPValue> = tables
            .chain([topology::tap_arguments()])
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
}
