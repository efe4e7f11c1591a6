use baler_connector_testkit::{ChunkSource, read_label};

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    max_chunk_bytes: 1000,
    window_chunks: 8,
    window_bytes: 8000,
};

fn written(outgoing: &Outgoing) -> Vec<u8> {
    outgoing
        .slices()
        .iter()
        .flat_map(|slice| slice.to_vec())
        .collect()
}

#[test]
fn chunks_survive_whatever_pieces_they_come_in() {
    let mut source = ChunkSource::new(3);
    let mut outgoing = Outgoing::default();
    for lane in [0, 0, 1, 0, 0] {
        outgoing.push(&source.next(lane, 200));
    }
    // This chunk was numbered and never offered, so the next chunk must carry its identity.
    source.next(0, 200);
    outgoing.push(&source.next(0, 200));
    outgoing.push_short(FrameKind::Bye);
    let bytes = written(&outgoing);
    // These chunks carry their identity: the first of lane 0, of lane 1, of lane 0 again and after
    // the gap.
    let identities = 4 * ChunkIdentity::BYTES;
    assert_eq!(bytes.len(), 7 * FrameHeader::BYTES + 6 * 200 + identities);
    for piece in [1, 7, 28, 300, bytes.len()] {
        let mut incoming = Incoming::new(LIMITS, 0);
        let mut buffer = BytesMut::new();
        let mut labels = Vec::new();
        let mut ended = false;
        for part in bytes.chunks(piece) {
            buffer.extend_from_slice(part);
            loop {
                match incoming.next(&mut buffer).unwrap() {
                    Step::More(_) => break,
                    Step::Chunk(_, meta, bytes) => {
                        let label = read_label(&bytes);
                        assert_eq!(meta.identity.lane, label.lane);
                        assert_eq!(meta.identity.sequence, label.sequence);
                        labels.push((label.lane, label.sequence));
                    }
                    Step::Bye => {
                        ended = true;
                        break;
                    }
                    Step::Heartbeat => {}
                }
            }
        }
        assert_eq!(labels, [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (0, 5)]);
        assert!(ended && buffer.is_empty());
        assert_eq!(usize::try_from(incoming.offset()), Ok(bytes.len()));
    }
}

#[test]
fn every_flipped_bit_of_a_chunk_without_checksum_is_noticed() {
    let mut outgoing = Outgoing::default();
    outgoing.push(&ChunkSource::new(3).next(0, 64));
    let bytes = written(&outgoing);
    for bit in 0..bytes.len() * 8 {
        let mut buffer = BytesMut::from(bytes.as_slice());
        buffer[bit / 8] ^= 1 << (bit % 8);
        let mut incoming = Incoming::new(LIMITS, 0);
        assert!(incoming.next(&mut buffer).is_err(), "bit {bit}");
    }
}
