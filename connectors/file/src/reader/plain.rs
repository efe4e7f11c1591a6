//! Plain files of chunks, without segments around them.
//!
//! A file in Kieker's container is one chunk; native chunks say how long they are, so that a file
//! may hold several, one after the other.

use std::io;
use std::path::Path;

use baler_common::container::ChunkExtent;

use super::scanner::{BlockFile, Piece, PieceContent};

/// How many bytes hold the length of a chunk.
const PREFIX_BYTES: usize = ChunkExtent::NEEDED_BYTES;

/// A plain file, open for reading.
#[derive(Debug)]
pub(super) struct PlainFile {
    file: BlockFile,
    limit_bytes: usize,
}

impl PlainFile {
    pub(super) fn open(path: &Path, limit_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            file: BlockFile::open(path)?,
            limit_bytes,
        })
    }

    /// Returns the chunk or the damage at this offset; nothing at the end. Only the prefix of a chunk
    /// is checked: the decoder checks the rest.
    pub(super) fn step(&mut self, start: u64) -> io::Result<Option<Piece>> {
        let length = self.file.length()?;
        if start >= length {
            return Ok(None);
        }
        let left = length - start;
        let limit = self.limit_bytes as u64;
        let head = self.file.read(start, PREFIX_BYTES as u64, length)?;
        let chunk_bytes = ChunkExtent::of(&head).map(|extent| match extent {
            ChunkExtent::Bytes(bytes) => bytes,
            ChunkExtent::ToEnd => left,
        });
        let (bytes, reason) = match chunk_bytes {
            Some(bytes) if bytes <= left.min(limit) => {
                let end = start.saturating_add(bytes);
                let content = PieceContent::Chunk {
                    number: 0,
                    meta: None,
                    bytes: self.file.read(start, bytes, length)?,
                };
                return Ok(Some(Piece {
                    start,
                    end,
                    content,
                }));
            }
            Some(bytes) if bytes <= left => {
                let reason = format!("a chunk of {bytes} bytes is above the limit of {limit}");
                (bytes, reason)
            }
            Some(bytes) => {
                let reason = format!("cut short: the chunk has {bytes} bytes, {left} are left");
                (self.bytes_to_next(start, length)?, reason)
            }
            None => {
                let reason = String::from("no chunk begins here");
                (self.bytes_to_next(start, length)?, reason)
            }
        };
        let content = PieceContent::Damaged {
            bytes: self.file.read(start, bytes.min(limit), length)?,
            reason: reason.into(),
        };
        let end = start.saturating_add(bytes);
        Ok(Some(Piece {
            start,
            end,
            content,
        }))
    }

    /// How many bytes of damage to return: up to the next native chunk, and not above the limit.
    fn bytes_to_next(&mut self, start: u64, length: u64) -> io::Result<u64> {
        let is_chunk = |head: &[u8]| ChunkExtent::of(head).is_some();
        let magic = ChunkExtent::NATIVE_MAGIC;
        let next = self.file.find(
            magic,
            PREFIX_BYTES,
            start.saturating_add(1),
            length,
            is_chunk,
        )?;
        let bytes = next.unwrap_or(length).saturating_sub(start);
        Ok(bytes.min(self.limit_bytes as u64))
    }
}

#[cfg(test)]
mod tests {
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
}
