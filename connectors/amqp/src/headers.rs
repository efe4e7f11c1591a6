//! The properties of a message: the identity of a chunk whose container does not have it.

use std::str::FromStr;

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind, ProducerId};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

/// The property `type` of a message with a native container.
const NATIVE_TYPE: &str = "baler";

const PRODUCER: &str = "baler-producer";
const EPOCH: &str = "baler-epoch";
const LANE: &str = "baler-lane";
const SEQUENCE: &str = "baler-sequence";
const RECORDS: &str = "baler-records";

/// The broker keeps the message across a restart (AMQP 0.9.1, `delivery-mode`).
pub(crate) const PERSISTENT: u8 = 2;

/// The property `content-type` of a message with Kieker's container.
const KIEKER_TYPE: &str = "application/x-kieker-chunk";

/// The property `content-type` of a message with a container of another crate.
const ADDED_TYPE: &str = "application/x-baler-added-chunk";

/// The properties of a message with this chunk.
///
/// A native container has its identity. The properties repeat only enough for a person to distinguish
/// messages. They are the two that take the fewest bytes: a table of named headers would add a tenth
/// to small chunks.
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

/// The identity of a chunk, if the properties have all of it. A native container has its own.
pub(crate) fn meta(properties: &BasicProperties) -> Option<ChunkMeta> {
    let container = match properties.content_type().as_ref()?.as_str() {
        ADDED_TYPE => ContainerKind::Added,
        KIEKER_TYPE => ContainerKind::Kieker,
        _ => return None,
    };
    let headers = properties.headers().as_ref()?;
    Some(ChunkMeta {
        container,
        records: u32::try_from(number(headers, RECORDS)?).ok()?,
        identity: ChunkIdentity {
            producer: ProducerId::from_str(text(headers, PRODUCER)?).ok()?,
            epoch: text(headers, EPOCH)?.parse().ok()?,
            lane: u32::try_from(number(headers, LANE)?).ok()?,
            sequence: number(headers, SEQUENCE)?.cast_unsigned(),
        },
    })
}

/// How often the broker delivered a message before. Only quorum queues count.
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

/// A whole number, of any width that the broker or another sender chose.
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
mod tests;
