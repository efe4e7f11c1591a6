use baler_common::transport::Epoch;
use proptest::prelude::*;
use rdkafka::Timestamp;
use rdkafka::message::{Header, OwnedHeaders, OwnedMessage};

use super::*;

fn message(key: &str, headers: &[(&str, &str)]) -> OwnedMessage {
    let headers = headers
        .iter()
        .fold(OwnedHeaders::new(), |all, (key, value)| {
            let value = Some(*value);
            all.insert(Header { key, value })
        });
    let key = Some(key.as_bytes().to_vec());
    let time = Timestamp::NotAvailable;
    OwnedMessage::new(None, key, "t".into(), time, 0, 0, Some(headers))
}

fn written(meta: &ChunkMeta, partition_by: PartitionBy) -> OwnedMessage {
    let label = Label::new(meta, partition_by);
    let (name, value) = &label.header;
    message(&label.key, &[(name, value)])
}

fn meta(container: ContainerKind) -> ChunkMeta {
    ChunkMeta {
        container,
        records: 1_024,
        identity: ChunkIdentity {
            producer: ProducerId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0xfe_dcba,
            },
            lane: 31,
            sequence: 999_999,
        },
    }
}

const WAYS: [PartitionBy; 4] = [
    PartitionBy::Producer,
    PartitionBy::Lane,
    PartitionBy::RoundRobin,
    PartitionBy::Trace,
];

proptest! {
    #[test]
    fn identity_survives_beside_a_container_without_one(
        producer: u128,
        start_unix_ns: u64,
        random: u32,
        lane: u32,
        sequence: u64,
        records: u32,
        way in 0..WAYS.len(),
        of_kieker: bool,
    ) {
        let meta = ChunkMeta {
            container: WITH_IDENTITY[usize::from(of_kieker)],
            records,
            identity: ChunkIdentity {
                producer: ProducerId::new(producer),
                epoch: Epoch { start_unix_ns, random },
                lane,
                sequence,
            },
        };
        prop_assert_eq!(read(&written(&meta, WAYS[way])), Some(meta));
    }

    #[test]
    fn foreign_keys_and_headers_are_no_identity(
        key in ".*",
        name in "added|kieker|container|epoch|baler",
        value in ".*",
    ) {
        prop_assert_eq!(read(&message(&key, &[(&name, &value)])), None);
    }
}

#[test]
fn label_of_a_native_chunk_is_short_and_leaves_the_identity_to_the_chunk() {
    let meta = meta(ContainerKind::Native);
    assert_eq!(read(&written(&meta, PartitionBy::Producer)), None);
    let label = Label::new(&meta, PartitionBy::Producer);
    assert_eq!(label.key, "0123456789abcdef0123456789abcdef");
    assert_eq!(label.header, (NATIVE, "31/999999".to_owned()));
    // Kafka's record batch, version 2: a chunk of up to a MiB, alone in its batch.
    let batch = 61;
    let record = 3 + 1 + 1 + 1;
    let key = 1 + label.key.len();
    let value = 3;
    let header = 1 + 1 + NATIVE.len() + 1 + label.header.1.len();
    assert!(batch + record + key + value + header <= 120);
}

#[test]
fn six_headers_of_older_messages_are_read() {
    let headers = [
        ("producer", "0123456789abcdef0123456789abcdef"),
        ("epoch", "1700000000000000000-00fedcba"),
        ("lane", "31"),
        ("sequence", "999999"),
        ("records", "1024"),
        ("container", "kieker"),
    ];
    let old = message("0123456789abcdef0123456789abcdef", &headers);
    assert_eq!(read(&old), Some(meta(ContainerKind::Kieker)));
    let native = [&headers[..5], &[("container", "native")]].concat();
    let old = message("0123456789abcdef0123456789abcdef/31", &native);
    assert_eq!(read(&old), Some(meta(ContainerKind::Native)));
    for missing in 0..headers.len() {
        let mut fewer = headers.to_vec();
        fewer.remove(missing);
        assert_eq!(read(&message("", &fewer)), None, "{:?}", headers[missing]);
    }
}

#[test]
fn last_header_of_a_name_counts() {
    let headers = [("kieker", "1/2/3-4/5"), ("kieker", "6/7/8-9/10")];
    let read = read(&message("0b/1", &headers)).unwrap();
    assert_eq!((read.identity.lane, read.identity.sequence), (6, 7));
    assert_eq!(read.identity.producer, ProducerId::new(0xb));
}
