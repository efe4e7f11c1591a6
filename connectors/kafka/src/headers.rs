//! Who a chunk is, as headers of its message: text, so that every tool can show and filter them.

use std::ffi::CStr;
use std::fmt::{Display, Write as _};

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ProducerId};
use rdkafka::message::Headers;

const CONTAINER: &CStr = c"container";
const EPOCH: &CStr = c"epoch";
const LANE: &CStr = c"lane";
const PRODUCER: &CStr = c"producer";
const RECORDS: &CStr = c"records";
const SEQUENCE: &CStr = c"sequence";

/// The headers of a chunk; their values are put into `text`, which is cleared.
pub(crate) fn write<'a>(meta: &ChunkMeta, text: &'a mut String) -> Vec<(&'static CStr, &'a str)> {
    let ChunkIdentity {
        producer,
        epoch,
        lane,
        sequence,
    } = meta.identity;
    let entries: [(_, &dyn Display); 6] = [
        (PRODUCER, &producer),
        (EPOCH, &epoch),
        (LANE, &lane),
        (SEQUENCE, &sequence),
        (RECORDS, &meta.records),
        (CONTAINER, &meta.container),
    ];
    text.clear();
    let ends = entries.map(|(name, value)| {
        // Strings take whatever is written to them.
        write!(text, "{value}").ok();
        (name, text.len())
    });
    let mut start = 0;
    let values = ends.into_iter().map(|(name, end)| {
        let value = text.get(start..end).unwrap_or_default();
        start = end;
        (name, value)
    });
    values.collect()
}

/// Who the headers say that a chunk is; nothing if one of them is missing or malformed.
pub(crate) fn read(headers: &impl Headers) -> Option<ChunkMeta> {
    // The last header of a name counts, as in Kafka's `Headers.lastHeader`.
    let text = |name: &CStr| {
        let value = headers
            .iter()
            .filter(|header| header.key.as_bytes() == name.to_bytes())
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
    use rdkafka::message::{Header, OwnedHeaders};

    use super::*;

    fn add(headers: OwnedHeaders, name: &CStr, value: &str) -> OwnedHeaders {
        let (key, value) = (name.to_str().unwrap(), Some(value));
        headers.insert(Header { key, value })
    }

    fn written(meta: &ChunkMeta) -> OwnedHeaders {
        // What was there before must not show.
        let mut text = "before".to_owned();
        let entries = write(meta, &mut text).into_iter();
        entries.fold(OwnedHeaders::new(), |headers, (name, value)| {
            add(headers, name, value)
        })
    }

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
            prop_assert_eq!(read(&written(&meta)), Some(meta));
        }

        #[test]
        fn foreign_headers_are_no_identity(values in prop::collection::vec(".*", 6)) {
            let names = [PRODUCER, EPOCH, LANE, SEQUENCE, RECORDS, CONTAINER];
            let headers = names.iter().zip(&values).fold(OwnedHeaders::new(), |headers, (name, value)| {
                add(headers, name, value)
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
        let headers = add(written(&meta), LANE, "9");
        assert_eq!(read(&headers).map(|meta| meta.identity.lane), Some(9));
    }
}
