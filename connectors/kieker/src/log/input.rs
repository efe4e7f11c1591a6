//! The bytes of a log's file, decompressed according to its first bytes, because Kieker's names do
//! not help. (Kieker replaces `.dat` and `.bin` by the name of the compression, and calls bzip2
//! `.gz`.)

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use lzma_rust2::XzReader;

/// The memory that a file compressed with xz may ask for, in KiB. Preset 9, which Kieker uses,
/// needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// The bytes of a file.
pub(super) enum Input {
    /// The bytes as they are.
    Plain(File),
    Compressed {
        bytes: Box<dyn Read + Send>,
        /// The length of the file when it was opened.
        length: u64,
    },
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "plain",
            Self::Compressed { .. } => "compressed",
        })
    }
}

impl Input {
    /// Opens a file, and goes to this offset in its decompressed bytes. Returns the offset that it
    /// reached.
    ///
    /// # Errors
    ///
    /// The operating system refuses. Broken bytes show only when they are read.
    pub(super) fn open(path: &Path, offset: u64) -> io::Result<(Self, u64)> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut head = Vec::new();
        (&mut file).take(6).read_to_end(&mut head)?;
        file.rewind()?;
        let mut file = BufReader::with_capacity(64 << 10, file);
        let mut bytes: Box<dyn Read + Send> = match *head.as_slice() {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
            [0x42, 0x5a, 0x68, ..] => Box::new(MultiBzDecoder::new(file)),
            [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00] => {
                Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB))
            }
            [0x50, 0x4b, 0x03, 0x04, ..] => match zip_entry(file) {
                Ok(entry) => Box::new(entry),
                Err(error) => Box::new(Unreadable(error.to_string())),
            },
            // RFC 1950: both bytes as one number are a multiple of 31.
            [0x78, second, ..] if (0x7800 + u16::from(second)).is_multiple_of(31) => {
                Box::new(ZlibDecoder::new(file))
            }
            _ => {
                let offset = offset.min(length);
                file.seek(io::SeekFrom::Start(offset))?;
                return Ok((Self::Plain(file.into_inner()), offset));
            }
        };
        // Broken bytes show at the next read.
        let skipped = io::copy(&mut (&mut bytes).take(offset), &mut io::sink()).unwrap_or(0);
        Ok((Self::Compressed { bytes, length }, skipped))
    }

    /// Appends up to this number of bytes.
    pub(super) fn read(&mut self, most: u64, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.take(most).read_to_end(buffer),
            Self::Compressed { bytes, .. } => bytes.take(most).read_to_end(buffer),
        }
    }

    /// Whether more bytes may be there after the file is opened again. A decompressor that has
    /// reached the end of its file does not continue.
    pub(super) fn has_grown(&self, path: &Path) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Compressed { length, .. } => {
                path.metadata().is_ok_and(|now| now.len() != *length)
            }
        }
    }
}

/// An archive that cannot be read, with the reason.
struct Unreadable(String);

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(self.0.clone()))
    }
}

/// The only file of an archive, which may be incomplete.
struct ZipEntry<R>(DeflateDecoder<R>);

/// Goes to the content of an archive's first file. Uses only the local header, because the
/// directory at the end is missing if the writer was killed.
fn zip_entry<R: BufRead>(mut input: R) -> io::Result<ZipEntry<R>> {
    const DEFLATED: u16 = 8;
    let mut header = [0; 30];
    input.read_exact(&mut header)?;
    let number = |at: usize| {
        let bytes = header.get(at..).and_then(|it| it.first_chunk());
        bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes))
    };
    if number(8) != DEFLATED {
        let message = "the archive's file is not deflated; unpack it into its folder";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let names = u64::from(number(26)) + u64::from(number(28));
    io::copy(&mut (&mut input).take(names), &mut io::sink())?;
    Ok(ZipEntry(DeflateDecoder::new(input)))
}

impl<R: BufRead> Read for ZipEntry<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        // The content is followed by its checksum and sizes, with or without a mark, and by the
        // next file.
        let mut after = Vec::new();
        self.0.get_mut().take(20).read_to_end(&mut after)?;
        let is_file = |at: usize| {
            after
                .get(at..)
                .is_some_and(|it| it.starts_with(b"PK\x03\x04"))
        };
        match is_file(0) || is_file(12) || is_file(16) {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the archive has several files; unpack them into a folder",
            )),
            false => Ok(0),
        }
    }
}
