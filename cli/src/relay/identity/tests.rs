use baler_common::container::{ChunkHeader, ChunkSerializer, Compression, NativeSerializer};
use baler_common::record::RecordBatch;
use baler_common::transport::{ContainerKind, Origin, Token};
use baler_connector_kieker::container::KiekerSerializer;

use super::*;

fn delivery(lane: &str, bytes: Vec<u8>) -> Delivery {
    Delivery {
        token: Token(0),
        bytes: bytes.into(),
        meta: None,
        origin: Origin {
            endpoint: "somewhere".into(),
            lane: lane.into(),
            position: 0,
        },
        redelivered: false,
        attempts: 0,
    }
}

fn chunk(serializer: &mut dyn ChunkSerializer) -> (ChunkIdentity, Vec<u8>) {
    let identity = ChunkIdentity {
        producer: ProducerId::new(7),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 2,
        },
        lane: 3,
        sequence: 4,
    };
    let mut bytes = Vec::new();
    let header = ChunkHeader::new(identity);
    serializer
        .serialize(&RecordBatch::default(), &header, &mut bytes)
        .unwrap();
    (identity, bytes)
}

#[test]
fn native_chunks_say_it_themselves_unless_a_bit_is_flipped() {
    let mut identities = Identities::new();
    let (identity, mut bytes) = chunk(&mut NativeSerializer::new(Compression::None).unwrap());
    let meta = identities.of(&delivery("a", bytes.clone())).unwrap();
    assert_eq!(
        (meta.identity, meta.container),
        (identity, ContainerKind::Native)
    );
    assert_eq!(identities.made(), 0);
    bytes[22] ^= 1;
    assert!(identities.of(&delivery("a", bytes)).is_err());
}

#[test]
fn chunks_without_an_identity_get_one_by_lane_with_dense_numbers() {
    let mut identities = Identities::new();
    let (_, bytes) = chunk(&mut KiekerSerializer::default());
    let mut numbers = |lane| {
        let meta = identities.of(&delivery(lane, bytes.clone())).unwrap();
        assert_eq!(meta.container, ContainerKind::Kieker);
        (meta.identity.lane, meta.identity.sequence)
    };
    assert_eq!(
        [numbers("a"), numbers("b"), numbers("a")],
        [(0, 0), (1, 0), (0, 1)]
    );
    assert_eq!(identities.made(), 3);
    let other = Identities::new();
    assert_ne!(identities.producer, other.producer);
}
