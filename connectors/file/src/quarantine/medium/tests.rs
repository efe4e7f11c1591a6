use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader as _, Origin, Received, RetryClass};
use baler_connector_testkit::{MemoryLimits, MemoryMedium, PATIENCE};

use super::*;

fn origin() -> Origin {
    Origin {
        endpoint: "tcp://somewhere:1".into(),
        lane: "peer-7".into(),
        position: 42,
    }
}

fn identity() -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(77),
        epoch: Epoch {
            start_unix_ns: 5,
            random: 6,
        },
        lane: 7,
        sequence: 8,
    }
}

fn put(quarantine: &mut MediumQuarantine, bytes: &[u8]) -> io::Result<PutAside> {
    quarantine.put_aside(Poison {
        bytes,
        origin: &origin(),
        meta: Some(ChunkMeta {
            container: ContainerKind::Native,
            records: 1,
            identity: identity(),
        }),
        reason: "it is wrong",
        is_sound: false,
        peer: None,
    })
}

fn contents(medium: &MemoryMedium) -> Vec<Quarantined> {
    let mut reader = medium.reader();
    let mut found = Vec::new();
    while let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() {
        let chunk = ChunkDecoder::default().decode(&delivery.bytes).unwrap();
        assert_eq!(
            Some(delivery.meta.unwrap().identity),
            chunk.summary.identity()
        );
        found.push(Quarantined::of(&chunk).unwrap());
    }
    found
}

#[test]
fn what_is_put_aside_comes_back_byte_for_byte_with_its_reason() {
    let medium = MemoryMedium::default();
    let mut quarantine = MediumQuarantine::new(Box::new(medium.writer()));
    put(&mut quarantine, b"one").unwrap();
    // Confirmed means that it is there when the call returns.
    assert_eq!(medium.len(), 1);
    put(&mut quarantine, &[0xff, 0, 1]).unwrap();
    let found = contents(&medium);
    let bytes: Vec<&[u8]> = found.iter().map(|it| it.bytes.as_ref()).collect();
    assert_eq!(bytes, [b"one".as_slice(), &[0xff, 0, 1]]);
    assert!(found.iter().all(|it| it.reason == "it is wrong"));
    assert!(found.iter().all(|it| it.origin() == origin()));
    assert!(found.iter().all(|it| it.identity() == Some(identity())));
}

#[test]
fn a_group_that_is_larger_than_the_window_arrives_whole_and_in_order() {
    let limits = MemoryLimits {
        max_chunk_bytes: std::num::NonZeroUsize::new(100_000).unwrap(),
        capacity_chunks: std::num::NonZeroUsize::new(2_000).unwrap(),
        ..MemoryLimits::default()
    };
    let medium = MemoryMedium::new(limits);
    let mut quarantine = MediumQuarantine::new(Box::new(medium.writer()));
    let origin = origin();
    let bytes: Vec<Vec<u8>> = (0..2_000_u32)
        .map(|number| match number {
            // The medium does not take this one.
            700 => vec![0; 200_000],
            number => number.to_le_bytes().to_vec(),
        })
        .collect();
    let poison = |bytes| Poison {
        bytes,
        origin: &origin,
        meta: None,
        reason: "it is wrong",
        is_sound: false,
        peer: None,
    };
    let group: Vec<Poison<'_>> = bytes.iter().map(|bytes| poison(bytes.as_slice())).collect();
    let results = quarantine.put_group_aside(&group);
    let refused = results.iter().enumerate().filter(|(_, it)| it.is_err());
    assert_eq!(refused.map(|(at, _)| at).collect::<Vec<_>>(), [700]);
    let found = contents(&medium).into_iter().map(|it| it.bytes.to_vec());
    let sent = bytes.iter().filter(|bytes| bytes.len() == 4).cloned();
    assert!(found.eq(sent));
}

#[test]
fn it_waits_for_a_medium_that_is_away_and_no_longer_than_its_patience() {
    let medium = MemoryMedium::default();
    medium.set_unreachable(true);
    let writer = Box::new(medium.writer());
    let mut quarantine = MediumQuarantine::new(writer).with_patience(Duration::from_millis(20));
    let error = put(&mut quarantine, b"x").unwrap_err();
    assert!(error.to_string().contains("unreachable"), "{error}");

    let mut quarantine = MediumQuarantine::new(Box::new(medium.writer())).with_patience(PATIENCE);
    let back = medium.clone();
    let thread = std::thread::spawn(move || back.set_unreachable(false));
    put(&mut quarantine, b"y").unwrap();
    thread.join().unwrap();
    assert!(contents(&medium).iter().any(|it| it.bytes == "y"));
}

#[test]
fn what_the_medium_does_not_take_is_an_error() {
    let limits = MemoryLimits {
        max_chunk_bytes: std::num::NonZeroUsize::new(400).unwrap(),
        ..MemoryLimits::default()
    };
    let medium = MemoryMedium::new(limits);
    let mut quarantine = MediumQuarantine::new(Box::new(medium.writer()));
    let error = put(&mut quarantine, &[0; 500]).unwrap_err();
    assert!(error.to_string().contains("at most 400 bytes"), "{error}");
    medium.refuse_next(RetryClass::Final);
    let error = put(&mut quarantine, b"x").unwrap_err();
    assert!(error.to_string().contains("refused on demand"), "{error}");
    put(&mut quarantine, b"y").unwrap();
}
