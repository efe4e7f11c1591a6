//! Who a chunk is, as headers of its message: text, so that every tool can show and filter them.

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ProducerId};
use rdkafka::message::{Header, Headers, OwnedHeaders};

const CONTAINER: &str = "container";
const EPOCH: &str = "epoch";
const LANE: &str = "lane";
const PRODUCER: &str = "producer";
const RECORDS: &str = "records";
const SEQUENCE: &str = "sequence";

/// The headers of a chunk.
pub(crate) fn write(meta: &ChunkMeta) -> OwnedHeaders {
    let ChunkIdentity {
        producer,
        epoch,
        lane,
        sequence,
    } = meta.identity;
    let entries = [
        (PRODUCER, producer.to_string()),
        (EPOCH, epoch.to_string()),
        (LANE, lane.to_string()),
        (SEQUENCE, sequence.to_string()),
        (RECORDS, meta.records.to_string()),
        (CONTAINER, meta.container.name().to_owned()),
    ];
    let headers = OwnedHeaders::new_with_capacity(entries.len());
    entries.iter().fold(headers, |headers, (key, value)| {
        headers.insert(Header {
            key,
            value: Some(value),
        })
    })
}

/// Who the headers say that a chunk is; nothing if one of them is missing or malformed.
pub(crate) fn read(headers: &impl Headers) -> Option<ChunkMeta> {
    // The last header of a name counts, as in Kafka's `Headers.lastHeader`.
    let text = |name: &str| {
        let value = headers
            .iter()
            .filter(|header| header.key == name)
            .last()?
            .value?;
        std::str::from_utf8(value).ok()
    };
    let (start, random) = text(EPOCH)?.split_once('-')?;
    let container = match text(CONTAINER)? {
        name if name == ContainerKind::Kieker.name() => ContainerKind::Kieker,
        name if name == ContainerKind::Native.name() => ContainerKind::Native,
        _ => return None,
    };
    Some(ChunkMeta {
        container,
        records: text(RECORDS)?.parse().ok()?,
        identity: ChunkIdentity {
            producer: text(PRODUCER)?.parse::<ProducerId>().ok()?,
            epoch: Epoch {
                start_unix_ns: start.parse().ok()?,
                random: u32::from_str_radix(random, 16).ok()?,
            },
            lane: text(LANE)?.parse().ok()?,
            sequence: text(SEQUENCE)?.parse().ok()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn identity_survives_its_headers(
            producer: u128,
            start_unix_ns: u64,
            random: u32,
            lane: u32,
            sequence: u64,
            records: u32,
            native: bool,
        ) {
            let meta = ChunkMeta {
                container: if native { ContainerKind::Native } else { ContainerKind::Kieker },
                records,
                identity: ChunkIdentity {
                    producer: ProducerId::new(producer),
                    epoch: Epoch { start_unix_ns, random },
                    lane,
                    sequence,
                },
            };
            prop_assert_eq!(read(&write(&meta)), Some(meta));
        }

        #[test]
        fn foreign_headers_are_no_identity(values in prop::collection::vec(".*", 6)) {
            let names = [PRODUCER, EPOCH, LANE, SEQUENCE, RECORDS, CONTAINER];
            let headers = names.iter().zip(&values).fold(OwnedHeaders::new(), |headers, (key, value)| {
                headers.insert(Header { key, value: Some(value) })
            });
            // Whatever it yields, it yields; a random text is no container.
            prop_assert_eq!(read(&headers), None);
        }
    }

    #[test]
    fn last_header_of_a_name_counts() {
        let meta = ChunkMeta {
            container: ContainerKind::Native,
            records: 3,
            identity: ChunkIdentity {
                producer: ProducerId::new(1),
                epoch: Epoch {
                    start_unix_ns: 2,
                    random: 3,
                },
                lane: 4,
                sequence: 5,
            },
        };
        let headers = write(&meta).insert(Header {
            key: LANE,
            value: Some("9"),
        });
        assert_eq!(read(&headers).map(|meta| meta.identity.lane), Some(9));
    }
}
