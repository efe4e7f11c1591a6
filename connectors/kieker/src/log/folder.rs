//! The files of a log.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::LogError;

/// The names of the map; the second one is that of Kieker's predecessor.
const MAPS: [&str; 2] = ["kieker.map", "tpmon.map"];

/// The prefixes of the names of logs.
const PREFIXES: [&str; 2] = ["kieker", "tpmon"];

/// The extensions of logs: text, binary, and compressed ones (`monitoring/writer/compression` in
/// Kieker). Kieker replaces `.dat` and `.bin` by that of the compression, and calls bzip2 `.gz`: the
/// content decides.
const EXTENSIONS: [&str; 8] = ["bin", "bz2", "dat", "df", "gz", "lzma", "xz", "zip"];

/// How much of a map is read to find out whether it belongs to a binary log.
const MAP_HEAD_BYTES: u64 = 64 << 10;

/// The files of a log: those that can be read, and others.
#[derive(Debug)]
pub(super) struct LogFolder {
    pub(super) map: PathBuf,
    /// Text logs, in order of their names.
    pub(super) logs: Vec<PathBuf>,
    /// Compressed and binary logs, in order of their names.
    pub(super) unread: Vec<UnreadLog>,
}

impl LogFolder {
    pub(super) fn open(folder: &Path) -> Result<Self, LogError> {
        let map = map_of(folder);
        // Unlike that of a text log, the map of a binary log has all its strings.
        let is_binary = map.as_deref().is_some_and(has_more_than_classes);
        let mut logs = Vec::new();
        let mut unread = Vec::new();
        for path in entries(folder)? {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || !extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
                || path.is_dir()
            {
                continue;
            }
            let head = head(&path, 8)?;
            let compression = Compressor::of(&head);
            let is_text = match head.first() {
                Some(b'$') => true,
                // The number of a class has a zero byte in front.
                Some(0) => false,
                _ => compression.is_none() && extension == Some("dat"),
            };
            if is_text {
                logs.push(path);
            } else {
                unread.push(UnreadLog {
                    path,
                    is_binary: is_binary || compression.is_none(),
                    compression,
                });
            }
        }
        if logs.is_empty()
            && let Some(first) = unread.first()
        {
            return Err(LogError::NoTextLog {
                folder: folder.to_owned(),
                files: unread.len(),
                first: first.clone(),
            });
        }
        let Some(map) = map else {
            let near = entries(folder)?
                .into_iter()
                .find(|path| map_of(path).is_some());
            return Err(LogError::NoMap {
                folder: folder.to_owned(),
                near,
            });
        };
        if logs.is_empty() {
            return Err(LogError::NoLog {
                folder: folder.to_owned(),
            });
        }
        Ok(Self { map, logs, unread })
    }
}

/// A log that is not read; its text says why, and gives advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadLog {
    path: PathBuf,
    is_binary: bool,
    compression: Option<Compressor>,
}

impl UnreadLog {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for UnreadLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path, compression, ..
        } = self;
        write!(f, "{path:?} is ")?;
        match compression {
            Some(compression) if !self.is_binary => {
                let (name, command) = compression.advice();
                let is_double = path.with_extension("").extension() == Some("dat".as_ref());
                let extension = match path.extension() {
                    // Not the file itself.
                    Some(extension) if extension == "dat" => "text.dat",
                    _ if is_double => "",
                    _ => "dat",
                };
                let to = path.with_extension(extension);
                write!(
                    f,
                    "compressed with {name}; decompress it first: {command} {path:?} > {to:?}"
                )
            }
            _ => {
                f.write_str("a binary log")?;
                if let Some(compression) = compression {
                    write!(f, ", compressed with {}", compression.advice().0)?;
                }
                f.write_str(
                    ", and Baler reads text logs only: start Kieker with \
                     -Dkieker.monitoring.writer.filesystem.FileWriter.logStreamHandler=\
                     kieker.monitoring.writer.filesystem.TextLogStreamHandler",
                )
            }
        }
    }
}

/// The program that compressed a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compressor {
    Bzip2,
    Gzip,
    Xz,
    Zip,
    Zlib,
}

impl Compressor {
    /// Recognises it by the first bytes of a file.
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x42, 0x5a, 0x68, ..] => Some(Self::Bzip2),
            [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, ..] => Some(Self::Xz),
            [0x50, 0x4b, 0x03, 0x04, ..] => Some(Self::Zip),
            // RFC 1950: both bytes as one number are a multiple of 31.
            [0x78, second, ..] if (0x7800 + u16::from(*second)).is_multiple_of(31) => {
                Some(Self::Zlib)
            }
            _ => None,
        }
    }

    /// Its name, and the command that writes the content of a file to standard output.
    const fn advice(self) -> (&'static str, &'static str) {
        match self {
            Self::Bzip2 => ("bzip2", "bzip2 -dc <"),
            Self::Gzip => ("gzip", "gzip -dc <"),
            Self::Xz => ("xz", "xz -dc <"),
            Self::Zip => ("zip", "unzip -p"),
            Self::Zlib => ("zlib", "pigz -dc <"),
        }
    }
}

/// Whether a map has a string that is no name of a class.
fn has_more_than_classes(map: &Path) -> bool {
    let head = head(map, MAP_HEAD_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&head);
    // The last line may be cut.
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    lines.any(|line| {
        let name = line.split_once('=').map_or("", |(_, name)| name.trim_end());
        let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '.' | '_' | '$');
        let is_class = name.contains('.') && name.chars().all(is_plain);
        !is_class && !name.is_empty()
    })
}

/// The first bytes of a file.
fn head(path: &Path, bytes: u64) -> Result<Vec<u8>, LogError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes).read_to_end(&mut head));
    match read {
        Ok(_) => Ok(head),
        Err(source) => Err(LogError::io(path, source)),
    }
}

fn map_of(folder: &Path) -> Option<PathBuf> {
    let maps = MAPS.iter().map(|name| folder.join(name));
    maps.into_iter().find(|path| path.is_file())
}

/// The entries of the folder, in order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut entries = entries.map_err(|source| LogError::io(folder, source))?;
    entries.sort();
    Ok(entries)
}
