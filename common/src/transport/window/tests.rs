use std::num::NonZeroUsize;

use bytes::Bytes;

use super::*;
use crate::transport::{
    ChunkIdentity, ChunkMeta, ContainerKind, Durability, Epoch, Order, ProducerId,
};

pub(in crate::transport) fn chunk(ticket: u64, bytes: usize) -> Chunk {
    let identity = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: ticket,
    };
    Chunk {
        ticket,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: 1,
            identity,
        },
        bytes: Bytes::from(vec![0; bytes]),
    }
}

pub(in crate::transport) fn capability(chunks: usize, bytes: usize) -> Capability {
    let mut capability = Capability::new("test", Order::PerLane, Durability::None);
    capability.window_chunks = NonZeroUsize::new(chunks).unwrap();
    capability.window_bytes = NonZeroUsize::new(bytes).unwrap();
    capability
}

#[test]
fn window_is_full_by_chunks_or_by_bytes_but_one_chunk_always_fits() {
    let mut window = Window::default();
    let three = capability(3, 100);
    assert!(window.take(&chunk(1, 500), &three), "alone it always fits");
    assert!(!window.take(&chunk(2, 1), &three));
    assert_eq!(window.remove_oldest(), Some(1));
    assert!(window.take(&chunk(2, 60), &three) && window.take(&chunk(3, 40), &three));
    assert!(!window.take(&chunk(4, 1), &three), "by bytes");
    assert!(window.take(&chunk(4, 0), &three));
    assert!(!window.take(&chunk(5, 0), &three), "by chunks");
    assert_eq!(window.tickets().collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn what_is_removed_makes_room_whichever_it_is() {
    let mut window = Window::default();
    let capability = capability(8, 100);
    for ticket in 1..=4 {
        assert!(window.take(&chunk(ticket, 25), &capability));
    }
    assert!(!window.take(&chunk(5, 25), &capability));
    assert_eq!(window.bytes_of(3), Some(25));
    assert!(window.remove(3) && !window.remove(3));
    assert!(window.take(&chunk(5, 25), &capability));
    assert_eq!(window.tickets().collect::<Vec<_>>(), [1, 2, 4, 5]);
    // Offered again while others are in flight: it comes after them.
    assert!(window.remove(2) && window.take(&chunk(2, 25), &capability));
    assert_eq!(window.tickets().collect::<Vec<_>>(), [1, 4, 5, 2]);
    assert_eq!((window.bytes_of(5), window.bytes_of(3)), (Some(25), None));
    assert!(window.remove(1) && window.remove(2) && !window.remove(2) && window.remove(5));
    window.clear();
    assert!(window.is_empty() && window.take(&chunk(6, 100), &capability));
    assert_eq!((window.len(), window.remove_oldest()), (1, Some(6)));
}
