//! The strings of Kieker's writers, kept for a reader that is started again.
//!
//! A line is the number of a registry (hexadecimal), the id of a string, and the string with `\`,
//! CR and LF escaped. Lines are added at the end.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::container::KiekerStream;
use baler_common::transport::Failure;

use crate::reader::{PositionLock, beside, open_file};

/// The most bytes of the file. What all writers together may register is far more than any does.
const MAX_BYTES: u64 = 512 << 20;

/// The most bytes of a line: every byte of the string escaped, and the numbers.
const MAX_LINE: u64 = 2 * KiekerStream::MAX_STRING_BYTES as u64 + 64;

/// A file of strings, open and locked.
#[derive(Debug)]
pub(super) struct RegistryFile {
    path: PathBuf,
    file: File,
    is_unsynced: bool,
    /// It is released with this value.
    _lock: PositionLock,
}

/// Strings by the number of their registry.
type Kept = Vec<(i64, Vec<(i32, String)>)>;

impl RegistryFile {
    /// Opens the file, which need not be there yet, and reads the strings of the last `registries`.
    pub(super) fn open(path: &Path, registries: usize) -> Result<(Self, Kept), Failure> {
        let io_failed = |error: io::Error| io_failure(path, &error);
        let lock = PositionLock::acquire(&beside(path, ".lock")).map_err(io_failed)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = open_file(options, path).map_err(io_failed)?;
        let (mut kept, whole) = read(&file).map_err(|message| wrong(path, &message))?;
        // The end of a line that a crash cut off.
        file.set_len(whole).map_err(io_failed)?;
        let mut this = Self {
            path: path.into(),
            file,
            is_unsynced: true,
            _lock: lock,
        };
        if kept.len() > registries {
            drop(kept.drain(..kept.len() - registries));
            this.replace(&kept).map_err(io_failed)?;
        }
        Ok((this, kept))
    }

    /// Adds strings.
    pub(super) fn add(
        &mut self,
        registry: i64,
        strings: &[(i32, Arc<str>)],
    ) -> Result<(), Failure> {
        if strings.is_empty() {
            return Ok(());
        }
        let mut lines = String::new();
        for (id, text) in strings {
            push_line(registry, *id, text, &mut lines);
        }
        self.is_unsynced = true;
        let written = self.file.write_all(lines.as_bytes());
        written.map_err(|error| io_failure(&self.path, &error))
    }

    /// Forces what was added to the disk.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_unsynced) {
            let synced = self.file.sync_data();
            return synced.map_err(|error| io_failure(&self.path, &error));
        }
        Ok(())
    }

    /// The failure that this is in the file, and must not be.
    pub(super) fn wrong(&self, message: &str) -> Failure {
        wrong(&self.path, message)
    }

    /// Writes a file with these strings alone.
    fn replace(&mut self, kept: &Kept) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create_new(true).open(&new)?;
        let mut lines = String::new();
        for (registry, strings) in kept {
            for (id, text) in strings {
                push_line(*registry, *id, text, &mut lines);
            }
        }
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.file = file;
        Ok(())
    }
}

/// Reads the strings, those of the registry that was used last at the end; and the bytes of whole
/// lines.
fn read(file: &File) -> Result<(Kept, u64), String> {
    let mut kept: HashMap<i64, (usize, Vec<(i32, String)>)> = HashMap::new();
    let mut input = BufReader::new(file);
    let mut whole = 0_u64;
    for number in 1.. {
        let mut line = Vec::new();
        let bytes = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        let bytes = bytes.map_err(|error| error.to_string())?;
        if line.pop() != Some(b'\n') {
            if bytes < usize::try_from(MAX_LINE).unwrap_or(usize::MAX) {
                break;
            }
            return Err(format!("line {number} is too long"));
        }
        whole = whole.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if whole > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        let line = String::from_utf8(line).ok();
        let Some((registry, id, text)) = line.as_deref().and_then(parse) else {
            return Err(format!("line {number} is no string of a registry"));
        };
        let entry = kept.entry(registry).or_default();
        entry.0 = number;
        entry.1.push((id, text));
    }
    let mut kept: Vec<_> = kept.into_iter().collect();
    kept.sort_by_key(|(_, (last, _))| *last);
    let kept = kept
        .into_iter()
        .map(|(registry, (_, strings))| (registry, strings));
    Ok((kept.collect(), whole))
}

fn push_line(registry: i64, id: i32, text: &str, out: &mut String) {
    // A string takes everything.
    write!(out, "{:016x} {id} ", registry.cast_unsigned()).ok();
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('\n');
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
mod tests {
    use baler_connector_testkit::within_patience;

    use super::*;

    fn strings(texts: &[(i32, &str)]) -> Vec<(i32, Arc<str>)> {
        texts
            .iter()
            .map(|(id, text)| (*id, (*text).into()))
            .collect()
    }

    /// Tests of one process share the list of locks, which nobody waits for.
    fn open(path: &Path, registries: usize) -> (RegistryFile, Kept) {
        within_patience("the lock", || RegistryFile::open(path, registries).ok())
    }

    fn error(path: &Path, message: &str) {
        within_patience(message, || {
            let error = RegistryFile::open(path, 2).unwrap_err();
            error.message.contains(message).then_some(())
        });
    }

    #[test]
    fn strings_survive_and_a_torn_line_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry");
        let (mut file, kept) = open(&path, 9);
        assert!(kept.is_empty());
        file.add(-1, &strings(&[(0, "a\\b\r\nc d"), (i32::MAX, "")]))
            .unwrap();
        file.add(7, &strings(&[(3, "ö")])).unwrap();
        file.sync().unwrap();
        drop(file);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole, &b"0000000000000007 4 to"[..]].concat()).unwrap();
        let (mut file, kept) = open(&path, 9);
        let first = vec![(0, "a\\b\r\nc d".to_owned()), (i32::MAX, String::new())];
        let expected = vec![(-1, first), (7, vec![(3, "ö".to_owned())])];
        assert_eq!(kept, expected);
        file.add(7, &strings(&[(4, "torn")])).unwrap();
        drop(file);
        let (_, kept) = open(&path, 9);
        assert_eq!(kept[1].1.len(), 2);
    }

    #[test]
    fn the_registries_that_were_used_last_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry");
        let (mut file, _) = open(&path, 2);
        for registry in [1, 2, 3, 1] {
            file.add(registry, &strings(&[(0, "x")])).unwrap();
        }
        drop(file);
        for _ in 0..2 {
            let (mut file, kept) = open(&path, 2);
            let registries: Vec<_> = kept.iter().map(|it| it.0).collect();
            assert_eq!(registries, [3, 1]);
            // The new file is the one that is added to.
            file.add(1, &strings(&[(1, "y")])).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
    }

    #[test]
    fn a_foreign_file_and_a_second_reader_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry");
        let (file, _) = open(&path, 2);
        error(&path, "another reader has it");
        drop(file);
        for foreign in ["hello\n", "zz 1 x\n", "0 x y\n", "0 1 a\\q\n"] {
            fs::write(&path, foreign).unwrap();
            error(&path, "line 1 is no string");
        }
    }
}
