//! Where a reader of a stream is, kept in a file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baler_common::transport::Failure;

/// Where a reader of a stream is, kept in a file: RabbitMQ keeps no position of AMQP 0.9.1
/// consumers.
///
/// The file is replaced as a whole and synced, so that after a crash it holds the old position or
/// the new one. One reader at a time has it.
#[derive(Debug)]
pub(super) struct PositionFile {
    path: PathBuf,
    /// Of which stream.
    stream: Box<str>,
    saved: Option<u64>,
    /// Held as long as this value; the file itself is replaced, so it cannot be locked.
    _lock: File,
}

/// What the file begins with.
const MAGIC: &str = "baler-stream-position 1";

impl PositionFile {
    /// Opens the file, which need not be there yet, for a stream.
    pub(super) fn open(path: &Path, stream: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| told(path, &error);
        // The lock file is never emptied: its name may lead to a file of somebody else.
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(beside(path, ".lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("position_file {}: another reader has it", path.display());
                return Err(Failure::retry("read from", message));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let saved = match fs::read_to_string(path) {
            Ok(text) => Some(parse(&text, stream).map_err(|what| {
                let message = format!("position_file {}: {what}", path.display());
                Failure::last("read from", message)
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            path: path.into(),
            stream: stream.into(),
            saved,
            _lock: lock,
        })
    }

    /// What was saved last.
    pub(super) fn saved(&self) -> Option<u64> {
        self.saved
    }

    /// Saves a position, on disk when this returns.
    pub(super) fn save(&mut self, position: u64) -> Result<(), Failure> {
        if self.saved == Some(position) {
            return Ok(());
        }
        self.replace(position)
            .map_err(|error| told(&self.path, &error))?;
        self.saved = Some(position);
        Ok(())
    }

    fn replace(&self, position: u64) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        let text = format!("{MAGIC}\nstream {}\nnext {position}\n", self.stream);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

fn told(path: &Path, error: &io::Error) -> Failure {
    let message = format!("position_file {}: {error}", path.display());
    Failure::retry("read from", message)
}

/// A file beside this one.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn parse(text: &str, stream: &str) -> Result<u64, String> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err("it holds no position".into());
    }
    let of = lines.next().and_then(|line| line.strip_prefix("stream "));
    match of {
        Some(of) if of == stream => {}
        of => {
            let of = of.unwrap_or_default();
            return Err(format!("it holds the position in {of}, not in {stream}"));
        }
    }
    let next = lines.next().and_then(|line| line.strip_prefix("next "));
    next.and_then(|next| next.parse().ok())
        .ok_or_else(|| "it holds no position".into())
}

#[cfg(test)]
mod tests {
    use baler_common::transport::RetryClass;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("baler-amqp-position-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn position_outlives_its_reader_and_is_that_of_one_stream() {
        let folder = folder("kept");
        let path = folder.join("p");
        let mut file = PositionFile::open(&path, "/ q").unwrap();
        assert_eq!(file.saved(), None);
        file.save(17).unwrap();
        file.save(4).unwrap();
        drop(file);
        assert_eq!(PositionFile::open(&path, "/ q").unwrap().saved(), Some(4));
        let other = PositionFile::open(&path, "/ other").unwrap_err();
        assert_eq!(other.class, RetryClass::Final);
        assert!(other.message.contains("/ q"), "{other:?}");
        fs::write(&path, "something else").unwrap();
        let damaged = PositionFile::open(&path, "/ q").unwrap_err();
        assert_eq!(damaged.class, RetryClass::Final);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_readers_do_not_share_a_position() {
        let folder = folder("shared");
        let path = folder.join("p");
        let first = PositionFile::open(&path, "/ q").unwrap();
        let second = PositionFile::open(&path, "/ q").unwrap_err();
        assert_eq!(second.class, RetryClass::Retry);
        drop(first);
        PositionFile::open(&path, "/ q").unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
