use super::*;
use baler_common::transport::{Epoch, ProducerId};
use proptest::prelude::*;

fn frame_header() -> FrameHeader {
    let meta = ChunkMeta {
        container: ContainerKind::Kieker,
        records: 3,
        identity: ChunkIdentity {
            producer: ProducerId::new(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0xdead_beef,
            },
            lane: 7,
            sequence: 9,
        },
    };
    FrameHeader::new(0x1122_3344, 5, meta, b"KIKA...").unwrap()
}

#[test]
fn segment_header_has_the_documented_bytes() {
    let header = SegmentHeader {
        first_chunk: 0x0102,
        created_unix_ns: 0x0304_0506_0708_090a,
        tag: 0x1122_3344,
    };
    let bytes = header.encode();
    assert_eq!(bytes[..8], *b"BSEG\x01\0\0\0");
    assert_eq!(bytes[8..16], [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[24..28], [0x44, 0x33, 0x22, 0x11]);
    assert_eq!(bytes[28..], crc32c::crc32c(&bytes[..28]).to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
}

#[test]
fn frame_header_has_the_documented_bytes() {
    let header = frame_header();
    let bytes = header.encode();
    assert_eq!(bytes[..4], FRAME_MARKER);
    assert_eq!(bytes[8..16], [5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[16..20], [7, 0, 0, 0]);
    assert_eq!(bytes[24..28], [2, 0, 0, 0]);
    assert_eq!(bytes[28..32], [3, 0, 0, 0]);
    assert_eq!(bytes[32..72], header.meta.unwrap().identity.to_bytes());
    assert_eq!(FrameHeader::decode(&bytes), Ok(header));
    for (container, code) in [(ContainerKind::Native, 1), (ContainerKind::Added, 3)] {
        let mut other = header;
        other.meta.as_mut().unwrap().container = container;
        assert_eq!(other.encode()[24], code);
        assert_eq!(FrameHeader::decode(&other.encode()), Ok(other));
    }
}

#[test]
fn later_version_is_named() {
    let header = SegmentHeader {
        first_chunk: 0,
        created_unix_ns: 0,
        tag: 0,
    };
    let mut bytes = header.encode();
    bytes[4] = 2;
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentError::Version(2)));
}

proptest! {
    #[test]
    fn every_flip_of_a_frame_header_is_found(bit in 0..FRAME_HEADER_BYTES * 8) {
        let mut bytes = frame_header().encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(FrameHeader::decode(&bytes).is_err());
    }

    #[test]
    fn every_cut_of_a_frame_header_is_short(length in 0..FRAME_HEADER_BYTES) {
        let bytes = frame_header().encode();
        let short = matches!(
            FrameHeader::decode(&bytes[..length]),
            Err(SegmentError::Short { .. })
        );
        prop_assert!(short);
    }
}
