//! Plain files of chunks, without segments around them.
//!
//! A file in Kieker's container is one chunk; native chunks say how long they are, so that a file
//! may hold several, one after the other.

use std::io;
use std::path::Path;

use baler_common::container::ChunkExtent;
use bytes::Bytes;

use crate::block::{BlockFile, to_usize};
use crate::consumer::Position;

/// How many bytes tell how far a chunk reaches.
const PREFIX_BYTES: usize = ChunkExtent::NEEDED_BYTES;

/// A plain file, open for reading.
#[derive(Debug)]
pub(crate) struct PlainFile {
    file: BlockFile,
    name: String,
    offset: u64,
    limit_bytes: usize,
}

/// What stands in a plain file.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A chunk. Only its prefix was checked: the decoder checks the rest.
    Chunk { at: Position, chunk: Bytes },
    /// Bytes that are none.
    Damaged {
        at: Position,
        bytes: Bytes,
        skipped: u64,
        reason: Box<str>,
    },
}

impl PlainFile {
    pub(crate) fn open(path: &Path, limit_bytes: usize) -> io::Result<Self> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self {
            file: BlockFile::open(path)?,
            name: name.to_string_lossy().into_owned(),
            offset: 0,
            limit_bytes,
        })
    }

    pub(crate) fn lane(&self) -> &str {
        &self.name
    }

    pub(crate) const fn position(&self) -> Position {
        Position {
            segment: 0,
            offset: self.offset,
        }
    }

    /// The next chunk or damage; none at the end.
    pub(crate) fn advance(&mut self) -> io::Result<Option<Piece>> {
        let length = self.file.length()?;
        if self.offset >= length {
            return Ok(None);
        }
        let left = length - self.offset;
        let head = self
            .file
            .fetch(self.offset, PREFIX_BYTES, PREFIX_BYTES, length)?;
        let chunk_bytes = ChunkExtent::of(&head).map(|extent| match extent {
            ChunkExtent::Bytes(bytes) => bytes,
            ChunkExtent::ToEnd => left,
        });
        match chunk_bytes {
            Some(bytes) if bytes > left => {
                let reason = format!("cut short: the chunk has {bytes} bytes, {left} are left");
                self.damaged(length, reason)
            }
            Some(bytes) if bytes > self.limit_bytes as u64 => {
                let limit = self.limit_bytes;
                let at = self.position();
                let kept = self.file.fetch(self.offset, limit, limit, length)?;
                self.offset = self.offset.saturating_add(bytes);
                Ok(Some(Piece::Damaged {
                    at,
                    bytes: kept,
                    skipped: bytes,
                    reason: format!("a chunk of {bytes} bytes is above the limit of {limit}")
                        .into(),
                }))
            }
            Some(bytes) => {
                let at = self.position();
                let wanted = to_usize(bytes);
                let chunk = self.file.fetch(self.offset, wanted, wanted, length)?;
                let chunk = self.file.detach(chunk);
                self.offset = self.offset.saturating_add(bytes);
                Ok(Some(Piece::Chunk { at, chunk }))
            }
            None => self.damaged(length, String::from("no chunk begins here")),
        }
    }

    /// Skips to the next prefix of a native chunk.
    fn damaged(&mut self, length: u64, reason: String) -> io::Result<Option<Piece>> {
        let at = self.position();
        let next = self.next_prefix(self.offset.saturating_add(1), length)?;
        let limit = self.offset.saturating_add(self.limit_bytes as u64);
        let end = next.unwrap_or(length).min(limit);
        let skipped = end.saturating_sub(self.offset);
        let wanted = to_usize(skipped);
        let bytes = self.file.fetch(self.offset, wanted, wanted, length)?;
        self.offset = end;
        Ok(Some(Piece::Damaged {
            at,
            bytes,
            skipped,
            reason: reason.into(),
        }))
    }

    fn next_prefix(&mut self, mut offset: u64, length: u64) -> io::Result<Option<u64>> {
        while let Some(at) = self.file.find(ChunkExtent::NATIVE_MAGIC, offset, length)? {
            let head = self.file.fetch(at, PREFIX_BYTES, PREFIX_BYTES, length)?;
            if ChunkExtent::of(&head).is_some() {
                return Ok(Some(at));
            }
            offset = at.saturating_add(1);
        }
        Ok(None)
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
        while let Some(piece) = file.advance().unwrap() {
            pieces.push(match piece {
                Piece::Chunk { at, chunk } => (true, at.offset, chunk.len()),
                Piece::Damaged { at, bytes, .. } => (false, at.offset, bytes.len()),
            });
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
