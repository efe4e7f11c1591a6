//! The identity of a chunk, in the key and the header of its message. Both are text, so that every
//! tool shows them.
//!
//! README.md describes both, under "A message".

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind, ProducerId};
use rdkafka::Message;
use rdkafka::message::Headers as _;

use crate::config::PartitionBy;

/// The header of a native container. It is for people: the container itself has the identity.
const NATIVE: &str = "baler";

/// The containers with the identity in a header. The header has the container's name.
const WITH_IDENTITY: [ContainerKind; 2] = [ContainerKind::Kieker, ContainerKind::Added];

/// The key and the header of a message.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) key: String,
    pub(crate) header: (&'static str, String),
}

impl Label {
    /// The label of a chunk.
    pub(crate) fn new(meta: &ChunkMeta, partition_by: PartitionBy) -> Self {
        let ChunkIdentity {
            producer,
            epoch,
            lane,
            sequence,
        } = meta.identity;
        let key = match partition_by {
            PartitionBy::Lane | PartitionBy::Trace => format!("{producer}/{lane}"),
            PartitionBy::Producer | PartitionBy::RoundRobin => producer.to_string(),
        };
        let header = match meta.container {
            ContainerKind::Native => (NATIVE, format!("{lane}/{sequence}")),
            other => {
                let records = meta.records;
                let text = format!("{lane}/{sequence}/{epoch}/{records}");
                (other.name(), text)
            }
        };
        Self { key, header }
    }
}

/// The identity in a message. There is none if the chunk itself has it.
pub(crate) fn read(message: &impl Message) -> Option<ChunkMeta> {
    let headers = message.headers()?;
    // The last header of a name counts, as in Kafka's `Headers.lastHeader`.
    let text = |name: &str| {
        let value = headers.iter().filter(|header| header.key == name).last();
        std::str::from_utf8(value?.value?).ok()
    };
    let of = |container: ContainerKind| Some((container, text(container.name())?));
    let Some((container, value)) = WITH_IDENTITY.into_iter().find_map(of) else {
        return read_six_headers(text);
    };
    let key = std::str::from_utf8(message.key()?).ok()?;
    let producer = key.split_once('/').map_or(key, |(producer, _)| producer);
    let mut parts = value.splitn(4, '/');
    Some(ChunkMeta {
        container,
        identity: ChunkIdentity {
            producer: producer.parse().ok()?,
            lane: parts.next()?.parse().ok()?,
            sequence: parts.next()?.parse().ok()?,
            epoch: parts.next()?.parse().ok()?,
        },
        records: parts.next()?.parse().ok()?,
    })
}

/// Messages had six headers before version 0.1.0 was released.
fn read_six_headers<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Option<ChunkMeta> {
    let container = ContainerKind::from_name(text("container")?)?;
    Some(ChunkMeta {
        container,
        records: text("records")?.parse().ok()?,
        identity: ChunkIdentity {
            producer: text("producer")?.parse::<ProducerId>().ok()?,
            epoch: text("epoch")?.parse().ok()?,
            lane: text("lane")?.parse().ok()?,
            sequence: text("sequence")?.parse().ok()?,
        },
    })
}

#[cfg(test)]
mod tests;
