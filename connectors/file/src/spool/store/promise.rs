//! How far chunks on disk were reported as safe, in a file: without it, a torn end would look like
//! chunks that nobody was told of.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What a spool has promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Promise {
    /// The number after the last chunk that was reported as spooled.
    pub(super) next_chunk: u64,
    /// The number before which the spool has removed all chunks, even if its position is older.
    pub(super) removed: u64,
    /// The records that were on disk then.
    pub(super) records: u64,
}

impl Promise {
    /// Returns the text of the file. It always has the same length and is written in place, so the
    /// disk may be full.
    fn encode(self) -> String {
        let Self {
            next_chunk,
            removed,
            records,
        } = self;
        let body = format!("spool 1 {next_chunk:020} {removed:020} {records:020}");
        format!("{body} {:010}\n", crc32c::crc32c(body.as_bytes()))
    }

    fn decode(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().skip(2);
        let mut number = || words.next()?.parse().ok();
        let promise = Self {
            next_chunk: number()?,
            removed: number()?,
            records: number()?,
        };
        // Encoding again checks the form and the checksum.
        (promise.encode() == text).then_some(promise)
    }
}

/// The file of a [`Promise`]. It is not forced to disk: a process that is killed loses nothing of it.
#[derive(Debug)]
pub(super) struct PromiseFile {
    file: File,
    stored: Option<Promise>,
}

impl PromiseFile {
    /// Opens the file, and reads what an earlier life has promised, if that is known.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path)?;
        let text = io::read_to_string(&file).ok();
        let stored = text.and_then(|text| Promise::decode(&text));
        Ok(Self { file, stored })
    }

    pub(super) fn stored(&self) -> Option<Promise> {
        self.stored
    }

    pub(super) fn store(&mut self, promise: Promise) -> io::Result<()> {
        if self.stored != Some(promise) {
            self.file.write_all_at(promise.encode().as_bytes(), 0)?;
            self.stored = Some(promise);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
