//! The file of strings of Kieker's writers. A reader that starts again needs them.
//!
//! A line is the number of a registry (hexadecimal), the id of a string, and the string with `\`,
//! CR and LF escaped. Lines are added at the end.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::number::to_u64;
use baler_common::transport::Failure;
use baler_connector_file::{FileLock, beside, if_found, lock_beside, open_file};

use crate::container::KiekerStream;
use crate::log::escaped;

/// The most bytes of a line: every byte of the string escaped, and the numbers.
const MAX_LINE: u64 = 2 * KiekerStream::MAX_STRING_BYTES as u64 + 64;

/// A file of strings, open and locked.
#[derive(Debug)]
pub(super) struct RegistryFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    is_unsynced: bool,
    /// Released with this value.
    _lock: FileLock,
}

/// A string: the number of its registry, its id, and the text.
type KeptString = (i64, i32, String);

impl RegistryFile {
    /// Opens the file. It need not exist yet.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let io_failed = |error: io::Error| io_failure(path, &error);
        let lock = lock_beside(path).map_err(io_failed)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = open_file(options, path).map_err(io_failed)?;
        let bytes = whole_lines(&file).map_err(io_failed)?;
        // Removes the incomplete line that a crash left.
        file.set_len(bytes).map_err(io_failed)?;
        Ok(Self {
            path: path.into(),
            file,
            bytes,
            is_unsynced: true,
            _lock: lock,
        })
    }

    /// The strings in the file, in order.
    pub(super) fn strings(
        &self,
    ) -> Result<impl Iterator<Item = Result<KeptString, Failure>> + use<>, Failure> {
        let path = self.path.clone();
        let file = self.file.try_clone().and_then(|mut file| {
            file.rewind()?;
            Ok(file)
        });
        let mut input = BufReader::new(file.map_err(|error| io_failure(&path, &error))?);
        let mut number = 0_u64;
        Ok(std::iter::from_fn(move || {
            number += 1;
            let mut line = String::new();
            match input.by_ref().take(MAX_LINE).read_line(&mut line) {
                Ok(0) => return None,
                Err(error) if error.kind() != io::ErrorKind::InvalidData => {
                    return Some(Err(io_failure(&path, &error)));
                }
                _ => {}
            }
            let string = line.strip_suffix('\n').and_then(parse);
            let message = || format!("line {number} is no string of a registry");
            Some(string.ok_or_else(|| wrong(&path, &message())))
        }))
    }

    /// Adds strings, unless the file would exceed this number of bytes. Returns whether it did.
    pub(super) fn add(
        &mut self,
        registry: i64,
        strings: &[(i32, Arc<str>)],
        max_bytes: u64,
    ) -> Result<bool, Failure> {
        if strings.is_empty() {
            return Ok(true);
        }
        let mut lines = String::new();
        for (id, text) in strings {
            push_line(registry, *id, text, &mut lines);
        }
        let bytes = to_u64(lines.len());
        let bytes = self.bytes + bytes;
        if bytes > max_bytes {
            return Ok(false);
        }
        (self.bytes, self.is_unsynced) = (bytes, true);
        let written = self.file.write_all(lines.as_bytes());
        written.map_err(|error| io_failure(&self.path, &error))?;
        Ok(true)
    }

    /// Forces the added strings to the disk.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_unsynced) {
            let synced = self.file.sync_data();
            return synced.map_err(|error| io_failure(&self.path, &error));
        }
        Ok(())
    }

    /// The failure of a file with this error in it.
    pub(super) fn wrong(&self, message: &str) -> Failure {
        wrong(&self.path, message)
    }

    /// Replaces the file by one with only these strings.
    pub(super) fn replace<'a>(
        &mut self,
        strings: impl Iterator<Item = (i64, i32, &'a str)>,
    ) -> Result<(), Failure> {
        let written = write_beside(&self.path, strings);
        let written = written.and_then(|(new, file, bytes)| {
            fs::rename(&new, &self.path)?;
            Ok((file, bytes))
        });
        (self.file, self.bytes) = written.map_err(|error| io_failure(&self.path, &error))?;
        self.is_unsynced = false;
        Ok(())
    }
}

/// Writes strings to a file beside this one. Returns its path, the file and its size.
fn write_beside<'a>(
    path: &Path,
    strings: impl Iterator<Item = (i64, i32, &'a str)>,
) -> io::Result<(PathBuf, File, u64)> {
    let new = beside(path, ".new");
    if_found(fs::remove_file(&new))?;
    let mut options = OpenOptions::new();
    let file = options.append(true).create_new(true).open(&new)?;
    let mut output = BufWriter::new(file);
    let (mut line, mut bytes) = (String::new(), 0_u64);
    for (registry, id, text) in strings {
        line.clear();
        push_line(registry, id, text, &mut line);
        output.write_all(line.as_bytes())?;
        bytes += to_u64(line.len());
    }
    let file = output.into_inner()?;
    file.sync_all()?;
    Ok((new, file, bytes))
}

/// The bytes of the complete lines.
fn whole_lines(file: &File) -> io::Result<u64> {
    let mut input = BufReader::new(file);
    let (mut bytes, mut whole) = (0_u64, 0);
    loop {
        let part = input.fill_buf()?;
        let length = part.len();
        if length == 0 {
            return Ok(whole);
        }
        if let Some(last) = part.iter().rposition(|byte| *byte == b'\n') {
            whole = bytes + to_u64(last) + 1;
        }
        bytes += to_u64(length);
        input.consume(length);
    }
}

fn push_line(registry: i64, id: i32, text: &str, out: &mut String) {
    // The string is the rest of the line.
    let (registry, text) = (registry.cast_unsigned(), escaped(text));
    writeln!(out, "{registry:016x} {id} {text}").ok();
}

fn parse(line: &str) -> Option<(i64, i32, String)> {
    let mut parts = line.splitn(3, ' ');
    let registry = u64::from_str_radix(parts.next()?, 16).ok()?;
    let id = parts.next()?.parse().ok()?;
    let mut text = String::new();
    let mut chars = parts.next()?.chars();
    while let Some(char) = chars.next() {
        text.push(match char {
            '\\' => match chars.next()? {
                '\\' => '\\',
                'r' => '\r',
                'n' => '\n',
                _ => return None,
            },
            other => other,
        });
    }
    Some((registry.cast_signed(), id, text))
}

fn wrong(path: &Path, message: &str) -> Failure {
    let message = format!("registry_file {}: {message}", path.display());
    Failure::last("read from", message)
}

fn io_failure(path: &Path, error: &io::Error) -> Failure {
    let failure = wrong(path, &error.to_string());
    match error.kind() {
        io::ErrorKind::InvalidInput => failure,
        _ => Failure::retry(failure.operation, failure.message),
    }
}

#[cfg(test)]
mod tests;
