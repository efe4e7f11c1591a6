//! Plain files of chunks, without segments around them.
//!
//! A file in Kieker's container is one chunk. Native chunks state their length, so a file may hold
//! several of them, one after the other.

use std::io;
use std::path::Path;

use baler_common::container::ChunkExtent;

use super::scanner::{BlockFile, Piece, PieceContent};

/// The number of bytes at the start of a chunk that state its length.
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

    /// Returns the chunk or the damage at this offset, or nothing at the end. Checks only the
    /// prefix of a chunk: the decoder checks the rest.
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
                let end = start + bytes;
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
        let end = start + bytes;
        Ok(Some(Piece {
            start,
            end,
            content,
        }))
    }

    /// Returns the length of the damage: up to the next native chunk, and at most the limit.
    fn bytes_to_next(&mut self, start: u64, length: u64) -> io::Result<u64> {
        let is_chunk = |head: &[u8]| ChunkExtent::of(head).is_some();
        let magic = ChunkExtent::NATIVE_MAGIC;
        let next = self
            .file
            .find(magic, PREFIX_BYTES, start + 1, length, is_chunk)?;
        let bytes = next.unwrap_or(length) - start;
        Ok(bytes.min(self.limit_bytes as u64))
    }
}

#[cfg(test)]
mod tests;
