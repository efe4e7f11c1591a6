use super::*;
use std::fs;

fn native(body: &[u8]) -> Vec<u8> {
    let mut chunk = b"BALR\x01\x01\0\0".to_vec();
    let length = u32::try_from(PREFIX_BYTES + body.len()).unwrap();
    chunk.extend(length.to_le_bytes());
    chunk.extend(crc32c::crc32c(&chunk).to_le_bytes());
    chunk.extend(body);
    chunk
}

fn pieces(bytes: &[u8], limit: usize) -> Vec<(bool, u64, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.balr");
    fs::write(&path, bytes).unwrap();
    let mut file = PlainFile::open(&path, limit).unwrap();
    let mut pieces = Vec::new();
    let mut offset = 0;
    while let Some(Piece {
        start,
        end,
        content,
    }) = file.step(offset).unwrap()
    {
        pieces.push(match content {
            PieceContent::Chunk { bytes, .. } => (true, start, bytes.len()),
            PieceContent::Damaged { bytes, .. } => (false, start, bytes.len()),
            PieceContent::Skipped(header) => panic!("{header:?}"),
        });
        offset = end;
    }
    pieces
}

#[test]
fn native_chunks_follow_each_other_and_damage_between_them_is_skipped() {
    let mut bytes = native(b"body");
    bytes.extend(b"BALR no chunk");
    bytes.extend(native(b"three"));
    bytes.extend(&native(b"cut short")[..20]);
    assert_eq!(
        pieces(&bytes, 1_000),
        [
            (true, 0, 20),
            (false, 20, 13),
            (true, 33, 21),
            (false, 54, 20)
        ]
    );
}

#[test]
fn kieker_file_is_one_chunk_and_foreign_file_is_damage() {
    assert_eq!(pieces(b"KIKA and the rest", 1_000), [(true, 0, 17)]);
    assert_eq!(pieces(b"#!/bin/sh", 1_000), [(false, 0, 9)]);
    assert_eq!(pieces(b"", 1_000), []);
}

#[test]
fn large_chunk_and_long_damage_are_bounded() {
    let mut bytes = native(&[7; 100]);
    bytes.extend([0; 70]);
    assert_eq!(
        pieces(&bytes, 40),
        [(false, 0, 40), (false, 116, 40), (false, 156, 30)]
    );
}
