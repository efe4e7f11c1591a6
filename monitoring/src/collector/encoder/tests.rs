use baler_common::transport::{Epoch, ProducerId};
use baler_connector_kieker::container::KiekerSerializer;

use super::*;

#[test]
fn neighbouring_lost_chunks_are_listed_as_one_range() {
    let identity = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 0,
    };
    let mut encoder = Encoder::new(Box::new(KiekerSerializer::default()), identity, 1);
    for sequence in [5, 7, 6, 1, 9] {
        encoder.list_as_lost(&ChunkIdentity {
            sequence,
            ..identity
        });
    }
    let ranges: Vec<_> = encoder.lanes[0]
        .lost_chunks
        .iter()
        .map(|range| (range.first_sequence, range.chunks))
        .collect();
    assert_eq!(ranges, [(1, 1), (5, 3), (9, 1)]);
}
