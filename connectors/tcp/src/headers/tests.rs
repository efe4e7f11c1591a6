//! Hellos and headers against their documented bytes.

use super::*;

fn hello() -> Hello {
    Hello {
        versions: VERSIONS,
        role: Role::Sender,
        features: 0,
        limits: ConnectionLimits {
            max_chunk_bytes: 1 << 20,
            window_chunks: 64,
            window_bytes: 1 << 33,
        },
        heartbeat_ms: 5000,
    }
}

#[test]
fn hello_survives_its_bytes() {
    let bytes: [u8; Hello::BYTES] = hello().to_bytes().try_into().unwrap();
    assert_eq!(Hello::read(&bytes, Role::Sender), Ok(hello()));
    assert!(matches!(
        Hello::read(&bytes, Role::Receiver),
        Err(ProtocolErrorKind::Role { .. })
    ));
}

#[test]
fn every_flipped_bit_of_a_hello_is_noticed() {
    let bytes: [u8; Hello::BYTES] = hello().to_bytes().try_into().unwrap();
    for bit in 0..Hello::BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Hello::read(&flipped, Role::Sender).is_err(), "bit {bit}");
    }
}

#[test]
fn hello_without_limits_or_heartbeat_is_refused() {
    let table: [fn(&mut Hello); 5] = [
        |hello| hello.limits.max_chunk_bytes = 0,
        |hello| hello.limits.window_chunks = 0,
        |hello| hello.limits.window_bytes = 0,
        |hello| hello.heartbeat_ms = 0,
        |hello| hello.heartbeat_ms = 600_001,
    ];
    for change in table {
        let mut wrong = hello();
        change(&mut wrong);
        let bytes = wrong.to_bytes().try_into().unwrap();
        assert!(matches!(
            Hello::read(&bytes, Role::Sender),
            Err(ProtocolErrorKind::Invalid { .. })
        ));
    }
}

#[test]
fn versions_meet_at_the_highest_common_one() {
    let range = |low, high| VersionRange { low, high };
    assert_eq!(range(1, 3).common(range(2, 9)), Some(3));
    assert_eq!(range(1, 1).common(range(2, 9)), None);
    assert_eq!(range(1, 1).to_string(), "version 1");
    assert_eq!(range(2, 9).to_string(), "versions 2 to 9");
}

fn chunk() -> FrameHeader {
    FrameHeader {
        kind: FrameKind::Chunk,
        has_identity: true,
        checksum: 0xdead_beef,
        container: ContainerKind::Kieker,
        records: 16,
        length: 1000,
        sequence: 1 << 40,
    }
}

/// The bytes of the examples of PROTOCOL.md, in order.
fn documented() -> Vec<u8> {
    let text = include_str!("../../PROTOCOL.md");
    let (_, examples) = text.split_once("## Example").unwrap();
    let is_hex = |word: &str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
    let lines = examples.lines().map(|line| line.split(' '));
    let words = lines.flat_map(|words| words.take_while(|word| is_hex(word)));
    words
        .map(|word| u8::from_str_radix(word, 16).unwrap())
        .collect()
}

#[test]
fn documented_examples_are_the_bytes() {
    let mut hello = hello();
    hello.limits.window_bytes = 4 << 20;
    let mut bytes = hello.to_bytes();
    FrameHeader::short(FrameKind::Acknowledgement, 3).write(&mut bytes);
    assert_eq!(documented(), bytes);
}

#[test]
fn every_flipped_bit_of_a_header_is_noticed() {
    let mut added = chunk();
    added.container = ContainerKind::Added;
    for header in [
        chunk(),
        added,
        FrameHeader::short(FrameKind::Acknowledgement, 7),
    ] {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let bytes: [u8; FrameHeader::BYTES] = bytes.try_into().unwrap();
        assert_eq!(FrameHeader::read(&bytes), Ok(header));
        for bit in 0..FrameHeader::BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(FrameHeader::read(&flipped).is_err(), "bit {bit}");
        }
    }
}
