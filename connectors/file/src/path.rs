//! All chunks of a path, for tools that look into files.

use std::path::PathBuf;
use std::time::Instant;

use baler_common::transport::{
    ChunkReader as _, Damaged, Delivery, Received, TransportError, Verdict,
};

use crate::config::FileReaderConfig;
use crate::reader::FileReader;

/// What a path holds.
#[derive(Debug)]
pub enum PathItem {
    /// A chunk, with where it was.
    Chunk(Delivery),
    /// Bytes that are none.
    Damaged(Damaged),
}

/// The chunks of a path, in order. Ends after the first error.
#[derive(Debug)]
pub struct PathChunks {
    reader: FileReader,
    ended: bool,
}

/// Reads all chunks of a folder of segments, of one segment, or of a plain file, which may be one
/// chunk or several native ones.
///
/// # Errors
///
/// The path cannot be opened.
pub fn read_path(path: impl Into<PathBuf>) -> Result<PathChunks, TransportError> {
    let reader = FileReader::open(FileReaderConfig::new(path))?;
    Ok(PathChunks {
        reader,
        ended: false,
    })
}

impl Iterator for PathChunks {
    type Item = Result<PathItem, TransportError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.reader.receive(Instant::now()) {
                Ok(Received::Chunk(delivery)) => {
                    let settled = self.reader.settle(delivery.token, Verdict::Ack);
                    self.ended = settled.is_err();
                    return Some(settled.map(|_| PathItem::Chunk(delivery)));
                }
                Ok(Received::Damaged(damaged)) => return Some(Ok(PathItem::Damaged(damaged))),
                Ok(Received::End) => self.ended = true,
                Ok(Received::Assigned { .. } | Received::Revoked { .. } | Received::Idle) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
