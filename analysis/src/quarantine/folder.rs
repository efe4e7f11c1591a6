//! A quarantine in a folder: two files a chunk.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Poison, Quarantine};

/// Keeps each chunk as two files in a folder: `<process>-<number>.chunk` with the bytes and
/// `<process>-<number>.json` with coordinates and reason.
///
/// Files are written under another name, forced to disk and renamed, so that a file that is there
/// is complete.
#[derive(Debug)]
pub struct Folder {
    folder: PathBuf,
    next: u64,
    max_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Description<'a> {
    reason: &'a str,
    endpoint: &'a str,
    lane: &'a str,
    position: u64,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
}

impl Folder {
    /// Keeps chunks in this folder, which is made when the first one comes.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            next: 0,
            max_bytes: None,
        }
    }

    /// Refuses a chunk with which the folder's files would have more bytes than this. What is kept
    /// stays; the refusal is an error that ends the source, so that nothing is lost silently.
    #[must_use]
    pub const fn limited_to(mut self, max_bytes: u64) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }

    /// Checks that so many bytes more are within the limit.
    ///
    /// Other processes may use the folder, so it is counted each time; poison is rare.
    fn check_room(&self, more_bytes: usize) -> io::Result<()> {
        let Some(max_bytes) = self.max_bytes else {
            return Ok(());
        };
        let mut used = 0_u64;
        for entry in fs::read_dir(&self.folder)? {
            match entry?.metadata() {
                Ok(metadata) => used = used.saturating_add(metadata.len()),
                // It was renamed or removed between the two calls.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if used.saturating_add(more_bytes as u64) <= max_bytes {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::QuotaExceeded,
            format!(
                "the quarantine {} is full: it has {used} bytes, {more_bytes} more would pass its \
                 limit of {max_bytes}; look at what is in it and make room",
                self.folder.display()
            ),
        ))
    }

    /// A name that is free, as far as this process knows; others are told apart by `create_new`.
    fn claim(&mut self) -> io::Result<(PathBuf, fs::File)> {
        loop {
            let stem = self
                .folder
                .join(format!("{:010}-{:010}", std::process::id(), self.next));
            self.next = self.next.wrapping_add(1);
            let path = stem.with_extension("chunk.part");
            if stem.with_extension("chunk").exists() {
                continue;
            }
            match fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
            {
                Ok(file) => return Ok((stem, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Quarantine for Folder {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let description = Description {
            reason: poison.reason,
            endpoint: &poison.origin.endpoint,
            lane: &poison.origin.lane,
            position: poison.origin.position,
            bytes: poison.bytes.len(),
            identity: poison.identity.map(|identity| identity.to_string()),
        };
        let json = serde_json::to_vec_pretty(&description)?;
        self.check_room(json.len().saturating_add(poison.bytes.len()))?;
        let (stem, file) = self.claim()?;
        // The description first: a `.chunk` file always has its `.json`.
        let part = stem.with_extension("json.part");
        persist(
            &part,
            fs::File::create(&part)?,
            &json,
            &stem.with_extension("json"),
        )?;
        let part = stem.with_extension("chunk.part");
        persist(&part, file, poison.bytes, &stem.with_extension("chunk"))?;
        fs::File::open(&self.folder)?.sync_all()
    }
}

fn persist(part: &Path, mut file: fs::File, bytes: &[u8], path: &Path) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use baler_common::transport::Origin;

    use super::*;

    fn origin() -> Origin {
        Origin {
            endpoint: "tcp://somewhere:1".into(),
            lane: "peer-7".into(),
            position: 42,
        }
    }

    #[test]
    fn bytes_and_reason_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut quarantine = Folder::new(folder.path().join("poison"));
        let origin = origin();
        for bytes in [b"one".as_slice(), b"two"] {
            let poison = Poison {
                bytes,
                origin: &origin,
                identity: None,
                reason: "it is wrong",
            };
            quarantine.put_aside(poison).unwrap();
        }
        let mut files: Vec<PathBuf> = fs::read_dir(folder.path().join("poison"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let extensions: Vec<_> = files
            .iter()
            .map(|path| path.extension().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(extensions, ["chunk", "json", "chunk", "json"]);
        assert_eq!(fs::read(&files[0]).unwrap(), b"one");
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(&files[1]).unwrap()).unwrap();
        assert_eq!(json["reason"], "it is wrong");
        assert_eq!(json["lane"], "peer-7");
        assert_eq!(json["position"], 42);
    }

    #[test]
    fn a_full_folder_keeps_the_oldest_and_refuses_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("poison");
        let origin = origin();
        let poison = |bytes| Poison {
            bytes,
            origin: &origin,
            identity: None,
            reason: "it is wrong",
        };
        let mut quarantine = Folder::new(&path).limited_to(2_000);
        quarantine.put_aside(poison(&[1; 1_000])).unwrap();
        let error = quarantine.put_aside(poison(&[2; 1_000])).unwrap_err();
        assert!(error.to_string().contains("limit of 2000"), "{error}");
        quarantine.put_aside(poison(&[3; 100])).unwrap();
        // What was there before counts as well.
        let mut other = Folder::new(&path).limited_to(2_000);
        assert!(other.put_aside(poison(&[4; 1_000])).is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 4);
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut quarantine = Folder::new(file.path().join("poison"));
        let origin = origin();
        let poison = Poison {
            bytes: b"x",
            origin: &origin,
            identity: None,
            reason: "r",
        };
        assert!(quarantine.put_aside(poison).is_err());
    }
}
