//! Counts how often a consumer died while it processed a chunk.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use fs4::TryLockError;

/// The number of sources with an entry of their own, and of chunks kept from earlier lives.
const ENTRIES: usize = 64;

/// The beginning of a file. Files of earlier versions have none. Their keys were made by a hasher of
/// the standard library, which may change with the compiler, so they are discarded.
const HEAD: [u8; ENTRY_BYTES] = *b"Baler attempts 2";

/// A key of a chunk, and the number of consumers that died while they processed it: two numbers of
/// 8 bytes, little-endian. An entry of zeros is free.
const ENTRY_BYTES: usize = 16;

/// The most processes that share a folder.
const MAX_FILES: u32 = 256;

/// Counts how often a consumer died while it processed a chunk, in a file that outlives the process.
///
/// ```text
/// file: head | 64 entries of chunks in work, one a source | 64 entries of chunks that were in work at a death
/// ```
///
/// A source writes the chunk's entry before it decodes the chunk, and clears it when it asks for
/// the next one. After a death the entry is still there, and the next life counts it. The entry
/// survives a crash of the process, but not of the machine: it is not forced to disk. A process
/// that ends in order removes its file, if its predecessors also ended in order.
#[derive(Debug, Clone)]
pub struct Attempts(Arc<AttemptsFile>);

#[derive(Debug)]
struct AttemptsFile {
    path: PathBuf,
    /// Locked while this process has it.
    file: File,
    /// The counts of earlier lives, by key.
    counted: HashMap<u64, u32>,
    discarded_files: usize,
    next_source: AtomicU64,
    /// Holds a message while a suspect is processed: a chunk that was in work at a death. Suspects
    /// are processed one at a time, so that a death is counted for the chunk that caused it.
    suspect: (Sender<()>, Receiver<()>),
}

impl Attempts {
    /// Opens the first file in this folder that no other process has, and counts the chunks that
    /// were in work when earlier processes died.
    ///
    /// # Errors
    ///
    /// The folder or a file in it cannot be created, read or written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (mut own, mut others) = (None, Vec::new());
        let mut counted = HashMap::new();
        let mut discarded_files = 0;
        for number in 0..MAX_FILES {
            let path = folder.join(format!("{number}.attempts"));
            // Only the first free file is created. Later files are read if they exist.
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(own.is_none());
            let mut file = match options.open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            match fs4::FileExt::try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if !is_at(&file, &path) {
                // Its last process has just removed it.
                continue;
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            match bytes.strip_prefix(&HEAD) {
                Some(entries) => count(entries, &mut counted),
                None if bytes.iter().all(|byte| *byte == 0) => {}
                None => discarded_files += 1,
            }
            match own {
                None => own = Some((path, file)),
                Some(_) => others.push(file),
            }
        }
        let (path, file) = own.ok_or_else(|| {
            let message = format!(
                "{}: {MAX_FILES} processes share this quarantine; give some another one",
                folder.display()
            );
            io::Error::new(io::ErrorKind::QuotaExceeded, message)
        })?;
        write_all(&file, &counted)?;
        // Only now: a count twice does less harm than a count that is lost.
        for other in others {
            other.set_len(0)?;
        }
        Ok(Self(Arc::new(AttemptsFile {
            path,
            file,
            counted,
            discarded_files,
            next_source: AtomicU64::new(0),
            suspect: bounded(1),
        })))
    }

    /// Returns how many files of other versions were discarded, with their counts.
    pub fn discarded_files(&self) -> usize {
        self.0.discarded_files
    }

    /// Returns the entry of one source.
    pub fn entry(&self) -> ChunkInWork {
        let number = self.0.next_source.fetch_add(1, Ordering::Relaxed);
        ChunkInWork {
            file: Arc::clone(&self.0),
            offset: (1 + number % ENTRIES as u64) * ENTRY_BYTES as u64,
            is_written: false,
            is_suspect: false,
        }
    }
}

impl Drop for AttemptsFile {
    fn drop(&mut self) {
        if self.counted.is_empty() {
            // A file that stays does no harm: it shows that nothing is in work.
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Whether this file is the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |metadata: io::Result<fs::Metadata>| metadata.map(|it| (it.dev(), it.ino())).ok();
    let own = inode(file.metadata());
    own.is_some() && own == inode(fs::metadata(path))
}

/// Adds the entries of a file. Those in its first half were in work when the process died.
fn count(bytes: &[u8], counted: &mut HashMap<u64, u32>) {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("it has 8 bytes"));
    for (position, entry) in bytes.chunks_exact(ENTRY_BYTES).enumerate() {
        let (key, deaths) = entry.split_at(ENTRY_BYTES / 2);
        let (key, deaths) = (number(key), number(deaths));
        let deaths = match position < ENTRIES {
            true => 1,
            // The file may have any number; a higher one changes nothing.
            false => u32::try_from(deaths).unwrap_or(u32::MAX),
        };
        if key != 0 && deaths > 0 {
            let sum = counted.entry(key).or_insert(0);
            *sum = sum.saturating_add(deaths);
        }
    }
}

/// Writes the whole file: nothing in work, and the chunks with the highest counts.
fn write_all(file: &File, counted: &HashMap<u64, u32>) -> io::Result<()> {
    let mut entries: Vec<(u64, u32)> = counted
        .iter()
        .map(|(key, deaths)| (*key, *deaths))
        .collect();
    entries.sort_unstable_by_key(|(_, deaths)| std::cmp::Reverse(*deaths));
    let mut bytes = HEAD.to_vec();
    bytes.resize((1 + ENTRIES) * ENTRY_BYTES, 0);
    for (key, deaths) in entries.into_iter().take(ENTRIES) {
        bytes.extend(key.to_le_bytes());
        bytes.extend(u64::from(deaths).to_le_bytes());
    }
    bytes.resize((1 + 2 * ENTRIES) * ENTRY_BYTES, 0);
    file.write_all_at(&bytes, 0)
}

/// The chunk that one source has in work.
#[derive(Debug)]
pub struct ChunkInWork {
    file: Arc<AttemptsFile>,
    offset: u64,
    is_written: bool,
    is_suspect: bool,
}

impl ChunkInWork {
    /// Returns how often a consumer died while it processed this chunk.
    pub fn attempts(&self, chunk: &[u8]) -> u32 {
        let counted = self.file.counted.get(&key(chunk));
        counted.map_or(0, |deaths| *deaths)
    }

    /// Records that the chunk is being processed. If an earlier life died with it, waits until
    /// other sources have processed their suspects.
    pub fn begin(&mut self, chunk: &[u8]) -> io::Result<()> {
        let key = key(chunk);
        if self.file.counted.contains_key(&key) && !self.is_suspect {
            // It fails only without a receiver, but the receiver is stored beside it.
            self.is_suspect = self.file.suspect.0.send(()).is_ok();
        }
        self.is_written = true;
        self.file.file.write_all_at(&key.to_le_bytes(), self.offset)
    }

    /// Records that no chunk is being processed.
    pub fn end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_suspect) {
            self.file.suspect.1.try_recv().ok();
        }
        match std::mem::take(&mut self.is_written) {
            true => self.file.file.write_all_at(&[0; ENTRY_BYTES], self.offset),
            false => Ok(()),
        }
    }
}

impl Drop for ChunkInWork {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A panic while processing counts as a death with this chunk: the entry stays.
            self.is_written = false;
            std::mem::forget(Arc::clone(&self.file));
        }
        // At worst, a remaining entry is counted as one death too many.
        self.end().ok();
    }
}

/// Distinguishes chunks by their length and their ends. A native chunk begins with its identity and
/// ends with its checksum. The algorithm is FNV-1a with 64 bits, because files outlive the program.
fn key(chunk: &[u8]) -> u64 {
    let length = (chunk.len() as u64).to_le_bytes();
    let end_bytes = chunk.len().min(64);
    let (first, last) = (&chunk[..end_bytes], &chunk[chunk.len() - end_bytes..]);
    let bytes = length.iter().chain(first).chain(last);
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, mix).max(1)
}

#[cfg(test)]
mod tests;
