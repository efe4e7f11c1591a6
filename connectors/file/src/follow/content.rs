//! The bytes of a file at an offset, decompressed if its first bytes say that it is compressed.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use baler_common::number::to_usize;
use flate2::bufread::MultiGzDecoder;

use crate::follow::position::{Mark, TAIL_BYTES};

/// How many bytes at its beginning tell a file from others.
pub(crate) const HEAD_BYTES: usize = 1_024;

/// The number of a file on its device. Another file may get it later, so it is only a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// An open file.
pub(crate) struct Content {
    file: Arc<File>,
    pub(crate) id: FileId,
    packing: Option<Packing>,
    /// The bytes of a compressed file from the second offset on.
    unpacked: Option<(Box<dyn Read + Send>, u64)>,
}

#[derive(Debug, Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
}

impl Content {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let id = FileId::of(&file.metadata()?);
        let mut magic = [0; 4];
        let read = file.read_at(&mut magic, 0)?;
        Ok(Self {
            file: Arc::new(file),
            id,
            packing: match magic {
                [0x1f, 0x8b, _, _] if read >= 2 => Some(Packing::Gzip),
                [0x28, 0xb5, 0x2f, 0xfd] => Some(Packing::Zstd),
                _ => None,
            },
            unpacked: None,
        })
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.packing.is_some()
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Appends up to `limit` bytes from this offset on. Fewer bytes are the end of the file.
    /// Unpacking goes forward only: an earlier offset begins anew.
    ///
    /// # Errors
    ///
    /// The operating system refuses, or compressed bytes are wrong or end too early.
    pub(crate) fn read_at(
        &mut self,
        offset: u64,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let before = out.len();
        let Some(packing) = self.packing else {
            // One call, so that a file that is truncated meanwhile gives either its old bytes or
            // its new ones.
            out.resize(before + limit, 0);
            let (_, place) = out.split_at_mut(before);
            let read = loop {
                match self.file.read_at(place, offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            out.truncate(before + read.as_ref().map_or(0, |read| *read));
            return read;
        };
        let (mut bytes, mut at) = match self.unpacked.take_if(|(_, at)| *at <= offset) {
            Some(open) => open,
            None => {
                let file = Arc::clone(&self.file);
                let packed = BufReader::with_capacity(64 << 10, Cursor { file, at: 0 });
                let bytes: Box<dyn Read + Send> = match packing {
                    Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
                    Packing::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
                };
                (bytes, 0)
            }
        };
        at += io::copy(&mut (&mut bytes).take(offset - at), &mut io::sink())?;
        if at < offset {
            return Ok(0);
        }
        (&mut bytes).take(limit as u64).read_to_end(out)?;
        let read = out.len() - before;
        self.unpacked = Some((bytes, at + read as u64));
        Ok(read)
    }

    /// Whether the file has the bytes that a mark was made of.
    ///
    /// # Errors
    ///
    /// As [`read_at`](Self::read_at).
    pub(crate) fn has(&mut self, mark: &Mark) -> io::Result<bool> {
        let mut head = Vec::new();
        self.read_at(0, mark.head_bytes, &mut head)?;
        if head.len() < mark.head_bytes || mark.head != mark.head_of(&head) {
            return Ok(false);
        }
        let mut tail = Vec::new();
        self.read_at(
            mark.offset - mark.tail_bytes as u64,
            mark.tail_bytes,
            &mut tail,
        )?;
        if tail.len() < mark.tail_bytes {
            return Ok(false);
        }
        let is_long_enough = self.is_packed() || self.file.metadata()?.len() >= mark.offset;
        Ok(is_long_enough && mark.tail == mark.tail_of(&tail))
    }

    /// Whether `other` has the same bytes as this file at its beginning and before `length`.
    pub(crate) fn begins_with(&mut self, other: &mut Self, length: u64) -> io::Result<bool> {
        let parts = [
            (0, HEAD_BYTES as u64),
            (length.saturating_sub(TAIL_BYTES as u64), length),
        ];
        for (from, to) in parts {
            let limit = to_usize(to.min(length) - from);
            let (mut own, mut others) = (Vec::new(), Vec::new());
            self.read_at(from, limit, &mut own)?;
            other.read_at(from, limit, &mut others)?;
            if own.len() < limit || own != others {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("id", &self.id)
            .field("packing", &self.packing)
            .finish_non_exhaustive()
    }
}

/// Reads a file from its beginning without moving a place that others share.
struct Cursor {
    file: Arc<File>,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
