//! A file that grows from run to run, and begins each run with complete records.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs4::{FileExt, TryLockError};

/// The bytes of one read during the search for the last complete record.
const BLOCK_BYTES: usize = 64 << 10;

/// What happens to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// New records are appended.
    #[default]
    Append,
    /// It is emptied.
    Replace,
}

/// A file that only one process at a time writes.
///
/// A file that is not regular (a device, a FIFO) is opened as it is.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// Its size in bytes; `None` if the file is not regular.
    bytes: u64,
}

/// The end of a file after its last complete record: its writer was killed.
#[derive(Debug)]
pub struct Torn {
    bytes: u64,
    path: PathBuf,
    moved_to: PathBuf,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, to) = (self.path.display(), self.moved_to.display());
        write!(
            f,
            "the last record of {path} was torn: moved {} bytes to {to}",
            self.bytes
        )
    }
}

impl OutputFile {
    /// Opens a file of lines for writing at its end, after a complete line. Bytes after the last
    /// line are moved to a file with the same name and `.torn`.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, or another process is writing it.
    pub fn lines(path: &Path, existing: Existing) -> io::Result<(Self, Option<Torn>)> {
        let mut file = Self::open(path, existing)?;
        let end = file.end_of_last_line()?;
        let torn = file.cut(end)?;
        Ok((file, torn))
    }

    /// Opens a file, and empties it on request, but changes nothing else.
    pub(super) fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let is_special = fs::metadata(path).is_ok_and(|it| !it.is_file());
        if is_special {
            options.write(true);
        } else {
            options.read(true).append(true).create(true);
        }
        let file = options.open(path)?;
        let mut bytes = 0;
        if !is_special {
            // A file system without locks returns another error; then nothing protects the file.
            if matches!(FileExt::try_lock(&file), Err(TryLockError::WouldBlock)) {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another process is writing it; give each process a file or folder of its own",
                ));
            }
            if existing == Existing::Replace {
                file.set_len(0)?;
            }
            bytes = file.metadata()?.len();
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            bytes,
        })
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the first bytes, as many as there are.
    pub(super) fn beginning(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut beginning = Vec::new();
        (&self.file)
            .take(bytes as u64)
            .read_to_end(&mut beginning)?;
        Ok(beginning)
    }

    /// Moves the bytes after the last complete row of CSV to a file with the same name and `.torn`.
    /// A line break inside quotes does not end a row, so the whole file is read.
    pub(super) fn cut_torn_row(&mut self) -> io::Result<Option<Torn>> {
        self.file.seek(SeekFrom::Start(0))?;
        let (mut is_quoted, mut position, mut end) = (false, 0, 0);
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let read = self.file.read(&mut block)?;
            if read == 0 {
                break;
            }
            for byte in block.iter().take(read) {
                position += 1;
                match byte {
                    // A quote in a cell is written twice.
                    b'"' => is_quoted = !is_quoted,
                    b'\n' if !is_quoted => end = position,
                    _ => {}
                }
            }
        }
        self.cut(end)
    }

    fn end_of_last_line(&mut self) -> io::Result<u64> {
        let mut end = self.bytes;
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        while end > 0 {
            let length = end.min(BLOCK_BYTES as u64);
            let begin = end - length;
            self.file.seek(SeekFrom::Start(begin))?;
            block.clear();
            (&self.file).take(length).read_to_end(&mut block)?;
            if let Some(newline) = block.iter().rposition(|byte| *byte == b'\n') {
                return Ok(begin + newline as u64 + 1);
            }
            end = begin;
        }
        Ok(0)
    }

    fn cut(&mut self, end: u64) -> io::Result<Option<Torn>> {
        if end >= self.bytes {
            return Ok(None);
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(".torn");
        let moved_to = PathBuf::from(name);
        let mut aside = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&moved_to)?;
        self.file.seek(SeekFrom::Start(end))?;
        let bytes = io::copy(&mut self.file, &mut aside)?;
        aside.write_all(b"\n")?;
        self.file.set_len(end)?;
        self.bytes = end;
        Ok(Some(Torn {
            bytes,
            path: self.path.clone(),
            moved_to,
        }))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
