//! A file that is read in blocks, at any offset, never beyond its end.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use bytes::Bytes;

/// How much is read at once, unless more is needed.
const BLOCK_BYTES: usize = 256 << 10;

/// A file that is read in blocks.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    block: Bytes,
    block_start: u64,
}

impl BlockFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            block: Bytes::new(),
            block_start: 0,
        })
    }

    /// The file's length now.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Forgets what was read: the file may have changed.
    pub(crate) fn forget(&mut self) {
        self.block = Bytes::new();
    }

    /// From `least` to `most` bytes at this offset; fewer where the file ends. `length` is the
    /// file's: nothing is allocated for bytes beyond it.
    pub(crate) fn fetch(
        &mut self,
        offset: u64,
        least: usize,
        most: usize,
        length: u64,
    ) -> io::Result<Bytes> {
        let left = to_usize(length.saturating_sub(offset));
        let least = least.min(left);
        let cached = offset
            .checked_sub(self.block_start)
            .map(to_usize)
            .and_then(|from| self.block.get(from..).map(|rest| (from, rest.len())))
            .filter(|(_, rest)| *rest >= least && *rest > 0);
        if let Some((from, rest)) = cached {
            return Ok(self.block.slice(from..from + rest.min(most)));
        }
        let wanted = most.max(BLOCK_BYTES).min(left);
        let mut bytes = Vec::with_capacity(wanted);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.take(wanted as u64).read_to_end(&mut bytes)?;
        self.block = bytes.into();
        self.block_start = offset;
        Ok(self.block.slice(..self.block.len().min(most)))
    }

    /// Bytes of the block that may be kept: few bytes must not keep a whole block alive.
    pub(crate) fn detach(&self, bytes: Bytes) -> Bytes {
        match bytes.len().saturating_mul(2) < self.block.len() {
            true => Bytes::copy_from_slice(&bytes),
            false => bytes,
        }
    }

    /// Where these four bytes come next, from this offset on.
    pub(crate) fn find(
        &mut self,
        marker: [u8; 4],
        mut offset: u64,
        length: u64,
    ) -> io::Result<Option<u64>> {
        while offset.saturating_add(marker.len() as u64) <= length {
            let bytes = self.fetch(offset, marker.len(), BLOCK_BYTES, length)?;
            let place = bytes
                .windows(marker.len())
                .position(|window| window == marker);
            if let Some(place) = place {
                return Ok(Some(offset.saturating_add(place as u64)));
            }
            // The marker may begin in the last bytes.
            let passed = bytes.len().saturating_sub(marker.len() - 1).max(1);
            offset = offset.saturating_add(passed as u64);
        }
        Ok(None)
    }
}

pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
