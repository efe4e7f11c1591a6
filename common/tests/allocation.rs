//! Decoding never takes more memory than its limits allow, whatever the bytes contain.
//!
//! A separate test binary, because it counts every allocation of its process.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use baler_common::container::{ChunkDecoder, Limits};

#[path = "it/arbitrary.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod arbitrary;
#[path = "it/counting.rs"]
mod counting;
#[path = "it/native_chunks.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod native_chunks;

use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use native_chunks::{PREFIX_BYTES, block, by_hand, inline_schema, reseal, varied, varint};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const BODY_BYTES: usize = 128 << 10;
const DECODED_BYTES: usize = 512 << 10;

/// Memory that is not charged: the header, the blocks, the tables' own structures, error messages.
const SLACK_BYTES: usize = 64 << 10;

/// Decodes with a fresh decoder and returns the most bytes that this took.
fn peak_of(chunk: &[u8], limits: &Limits) -> (usize, bool) {
    let mut decoder = ChunkDecoder::new(limits.clone()).with_well_known_types(&WELL_KNOWN_TYPES);
    let mut decoded = false;
    let peak = counting::peak_of(|| decoded = decoder.decode_with_layout(chunk).is_ok());
    (peak, decoded)
}

/// Chunks of a few bytes that ask for much: constants in lists, in records, in runs.
fn bombs() -> Vec<Vec<u8>> {
    let mut bombs = Vec::new();
    let kinds: [&[u8]; 6] = [
        &[0x11, 0x01, 0],
        &[0x11, 0x09, 0],
        &[0x11, 0x0c, 0],
        &[0x11, 0x11, 0x01, 0],
        &[0x11, 0x10, 0x06, 0],
        &[0x11, 0x12, 1, b'n', 0, 0],
    ];
    for kind in kinds {
        for shift in 8..31 {
            let many = varint(1 << shift);
            let constant =
                |value: &[u8]| [&[0x00][..], &varint(value.len() as u64), value].concat();
            let runs = [
                &[0x03][..],
                &varint(7 + many.len() as u64),
                &many,
                &[0x00, 1, 1, 0x00, 1, 0],
            ]
            .concat();
            for values in [constant(&[1]), runs] {
                let columns = [&constant(&many)[..], &values, &values, &[0x00, 1, 2]].concat();
                let table = [&varint(1 + columns.len() as u64)[..], &[1], &columns].concat();
                let body = [&inline_schema("t", &[("a", kind)])[..], &table].concat();
                bombs.push(by_hand(1, 1, 0, &block(&body)));
            }
        }
    }
    for shift in 8..31 {
        let many = 1 << shift;
        let order = [0x00, 1, 0];
        let table = [4, 1, 0x00, 1, 2];
        let schemas = [inline_schema("t", &[]), inline_schema("u", &[])].concat();
        let body = [&schemas[..], &order, &table, &table].concat();
        bombs.push(by_hand(many, 2, 0, &block(&body)));
        bombs.push(by_hand(
            1,
            1,
            many,
            &block(&[&schemas[..], &[0, 0x00, 1, 0]].concat()),
        ));
        let raw = [&[2][..], &varint(many), &[4, 0x28, 0xb5, 0x2f, 0xfd]].concat();
        bombs.push(by_hand(1, 1, 0, &raw));
    }
    bombs
}

#[test]
fn no_chunk_takes_more_memory_than_the_limits_allow() {
    let mut limits = Limits::default();
    limits.body_bytes = BODY_BYTES;
    limits.decoded_bytes = DECODED_BYTES;
    let allowed = BODY_BYTES + DECODED_BYTES + SLACK_BYTES;
    // Memory that is allocated once, at the first use, does not belong to a chunk.
    for chunk in varied(4) {
        ChunkDecoder::new(limits.clone())
            .with_well_known_types(&WELL_KNOWN_TYPES)
            .decode(&chunk)
            .unwrap();
    }

    let (mut decoded, mut refused, mut highest) = (0_u32, 0_u32, 0);
    let mut check = |chunk: &[u8]| {
        let (peak, ok) = peak_of(chunk, &limits);
        assert!(peak <= allowed, "{peak} bytes for {chunk:02x?}");
        highest = highest.max(peak);
        *(if ok { &mut decoded } else { &mut refused }) += 1;
    };
    bombs().iter().for_each(|bomb| check(bomb));
    for mut chunk in varied(200) {
        check(&chunk);
        // Truncations, and bytes changed under a right checksum: the harder case.
        (0..chunk.len()).for_each(|end| check(&chunk[..end]));
        for index in PREFIX_BYTES..chunk.len().saturating_sub(4) {
            let before = chunk[index];
            for byte in [before ^ 0x80, 0xff] {
                chunk[index] = byte;
                reseal(&mut chunk);
                check(&chunk);
            }
            chunk[index] = before;
        }
    }
    assert!(decoded > 1_000 && refused > 1_000);
    // If the budget did not stop the bombs, they would not come near it either.
    assert!(highest > DECODED_BYTES / 2, "{highest}");
}
