//! Complete files of a log, compressed as Kieker's reader expects them by their names.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use bzip2::write::BzEncoder;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use lzma_rust2::{XzOptions, XzWriter};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The compression of a complete file of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogCompression {
    /// Kieker's `BZip2CompressionFilter`.
    Bzip2,
    /// Kieker's `DeflateCompressionFilter`, which writes zlib's header.
    Deflate,
    /// Kieker's `GZipCompressionFilter`.
    Gzip,
    /// No compression: Kieker's `NoneCompressionFilter`.
    None,
    /// Kieker's `XZCompressionFilter`.
    Xz,
    /// Kieker's `ZipCompressionFilter`: an archive with one file.
    Zip,
}

/// The preset of xz. Kieker uses 9, which takes hundreds of megabytes of memory.
const XZ_PRESET: u32 = 6;

impl LogCompression {
    /// The names in URIs.
    pub(super) const NAMES: [(&str, Self); 6] = [
        ("bzip2", Self::Bzip2),
        ("deflate", Self::Deflate),
        ("gzip", Self::Gzip),
        ("none", Self::None),
        ("xz", Self::Xz),
        ("zip", Self::Zip),
    ];

    /// Returns the extension after the extension of the format (`FSUtil.java`); empty for none.
    ///
    /// Kieker's reader expects `.dat.gz`. Its writers leave `.dat` out and call bzip2 `.gz`, so
    /// that the reader cannot read their files.
    const fn extension(self) -> &'static str {
        match self {
            Self::Bzip2 => "bz2",
            Self::Deflate => "df",
            Self::Gzip => "gz",
            Self::None => "",
            Self::Xz => "xz",
            Self::Zip => "zip",
        }
    }

    /// Replaces a complete file by a compressed one beside it.
    ///
    /// The plain file is removed last. After a crash in between, both files exist.
    pub(super) fn apply(self, plain: &Path) -> io::Result<()> {
        if self == Self::None {
            return Ok(());
        }
        let whole = plain.with_added_extension(self.extension());
        // Kieker's reader ignores a file with this ending.
        let part = whole.with_added_extension("tmp");
        let compressed = self.compress(plain, &part);
        if let Err(error) = compressed.and_then(|()| fs::rename(&part, &whole)) {
            fs::remove_file(&part).ok();
            return Err(error);
        }
        fs::remove_file(plain)
    }

    fn compress(self, plain: &Path, part: &PathBuf) -> io::Result<()> {
        let mut input = BufReader::new(File::open(plain)?);
        let output = BufWriter::new(File::create_new(part)?);
        match self {
            Self::Bzip2 => {
                let mut encoder = BzEncoder::new(output, bzip2::Compression::default());
                io::copy(&mut input, &mut encoder)?;
                encoder.finish()?.flush()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(output, Compression::default());
                io::copy(&mut input, &mut encoder)?;
                encoder.finish()?.flush()
            }
            Self::Gzip => {
                let mut encoder = GzEncoder::new(output, Compression::default());
                io::copy(&mut input, &mut encoder)?;
                encoder.finish()?.flush()
            }
            Self::None => copy(&mut input, output),
            Self::Xz => {
                let mut encoder = XzWriter::new(output, XzOptions::with_preset(XZ_PRESET))?;
                io::copy(&mut input, &mut encoder)?;
                encoder.finish()?.flush()
            }
            Self::Zip => {
                let mut archive = ZipWriter::new(output);
                let name = plain.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                archive.start_file(name.to_string_lossy(), SimpleFileOptions::default())?;
                io::copy(&mut input, &mut archive)?;
                archive.finish()?.flush()
            }
        }
    }
}

fn copy(input: &mut impl Read, mut output: impl Write) -> io::Result<()> {
    io::copy(input, &mut output)?;
    output.flush()
}
