use super::*;
use crate::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use crate::record::RecordBatch;
use crate::transport::{ChunkIdentity, Epoch, ProducerId};

#[test]
fn native_chunk_reaches_as_far_as_it_is_long() {
    let identity = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 0,
    };
    let mut chunk = Vec::new();
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    let batch = RecordBatch::default();
    let bytes = serializer
        .serialize(&batch, &ChunkHeader::new(identity), &mut chunk)
        .unwrap();
    let extent = ChunkExtent::of(&chunk[..ChunkExtent::NEEDED_BYTES]);
    assert_eq!(extent, Some(ChunkExtent::Bytes(bytes as u64)));
    for bit in 0..ChunkExtent::NEEDED_BYTES * 8 {
        let mut chunk = chunk.clone();
        chunk[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(ChunkExtent::of(&chunk), None, "bit {bit}");
    }
}

#[test]
fn kieker_chunk_reaches_to_the_end_and_foreign_bytes_nowhere() {
    assert_eq!(ChunkExtent::of(b"KIKADFLT"), Some(ChunkExtent::ToEnd));
    assert_eq!(ChunkExtent::of(b"BALR"), None);
    assert_eq!(ChunkExtent::of(b""), None);
}
