//! A quarantine in a folder: two files a chunk.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baler_common::transport::{Poison, Quarantine};
use serde::Serialize;

use crate::client::{new_file, sync_folder};

/// Keeps each chunk as two files in a folder: `<process>-<number>.chunk` with the bytes and
/// `<process>-<number>.json` with coordinates and reason.
///
/// Files are written under another name, forced to disk and renamed, so that a file that is there
/// is complete.
/// Any number of processes may use a folder.
#[derive(Debug)]
pub struct QuarantineFolder {
    folder: PathBuf,
    next: u64,
    max_bytes: Option<u64>,
    max_chunks: Option<u64>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u32>,
}

/// The two files of a chunk, written under temporary names.
#[derive(Debug)]
struct WrittenFiles {
    stem: PathBuf,
    json: File,
    chunk: File,
}

impl WrittenFiles {
    /// Forces the files to disk and gives them their names; the description first: a `.chunk` always
    /// has its `.json`.
    fn publish(&self) -> io::Result<()> {
        self.json.sync_all()?;
        self.chunk.sync_all()?;
        for extension in ["json", "chunk"] {
            let part = self.stem.with_extension(format!("{extension}.part"));
            fs::rename(part, self.stem.with_extension(extension))?;
        }
        Ok(())
    }
}

/// Removes the temporary files of a chunk, as far as that is possible.
fn discard(stem: &Path) {
    for extension in ["chunk.part", "json.part"] {
        fs::remove_file(stem.with_extension(extension)).ok();
    }
}

/// How much the folder may still take.
#[derive(Debug)]
struct Room {
    bytes: u64,
    max_bytes: u64,
    chunks: u64,
    max_chunks: u64,
}

impl QuarantineFolder {
    /// Keeps chunks in this folder, which is made when the first one comes.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            next: 0,
            max_bytes: None,
            max_chunks: None,
        }
    }

    /// Refuses a chunk with which the folder's files would have more bytes than this.
    ///
    /// Earlier chunks stay. The refusal is an error, so that nothing is lost silently.
    #[must_use]
    pub const fn limited_to(mut self, max_bytes: u64) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }

    /// Refuses a chunk with which the folder would have more chunks than this, in the same way.
    #[must_use]
    pub const fn with_most_chunks(mut self, max_chunks: u64) -> Self {
        self.max_chunks = Some(max_chunks);
        self
    }

    /// Makes the folder, and counts what it holds if there is a limit.
    ///
    /// Other processes may use the folder, so it is counted for each group; poison is rare.
    fn prepare(&self) -> io::Result<Option<Room>> {
        fs::create_dir_all(&self.folder)?;
        if self.max_bytes.is_none() && self.max_chunks.is_none() {
            return Ok(None);
        }
        let mut room = Room {
            bytes: 0,
            max_bytes: self.max_bytes.unwrap_or(u64::MAX),
            chunks: 0,
            max_chunks: self.max_chunks.unwrap_or(u64::MAX),
        };
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|it| it == "chunk") {
                room.chunks = room.chunks.saturating_add(1);
            }
            match entry.metadata() {
                Ok(metadata) => room.bytes = room.bytes.saturating_add(metadata.len()),
                // It was renamed or removed between the two calls.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(room))
    }

    /// Takes room for a chunk of `more_bytes`, if there is a limit.
    fn charge(&self, room: Option<&mut Room>, more_bytes: usize) -> io::Result<()> {
        let Some(room) = room else {
            return Ok(());
        };
        let bytes = room.bytes.saturating_add(more_bytes as u64);
        if bytes <= room.max_bytes && room.chunks < room.max_chunks {
            room.bytes = bytes;
            room.chunks = room.chunks.saturating_add(1);
            return Ok(());
        }
        let limits = [
            self.max_bytes.map(|it| format!("{it} bytes")),
            self.max_chunks.map(|it| format!("{it} chunks")),
        ];
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        Err(io::Error::new(
            io::ErrorKind::QuotaExceeded,
            format!(
                "the quarantine {} is full: it has {} chunks with {} bytes, {more_bytes} bytes more \
                 would pass its limit of {}; look at what is in it and make room",
                self.folder.display(),
                room.chunks,
                room.bytes,
                limits.join(" and ")
            ),
        ))
    }

    /// Takes a free name. `create_new` refuses a name that another process has taken.
    fn claim(&mut self) -> io::Result<(PathBuf, File)> {
        loop {
            let stem = self
                .folder
                .join(format!("{:010}-{:010}", std::process::id(), self.next));
            self.next = self.next.wrapping_add(1);
            if stem.with_extension("chunk").exists() {
                continue;
            }
            match File::create_new(stem.with_extension("chunk.part")) {
                Ok(file) => return Ok((stem, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the files of a chunk, if the folder has room for them.
    fn write(&mut self, poison: &Poison<'_>, room: Option<&mut Room>) -> io::Result<WrittenFiles> {
        let description = Description {
            reason: poison.reason,
            endpoint: &poison.origin.endpoint,
            lane: &poison.origin.lane,
            position: poison.origin.position,
            bytes: poison.bytes.len(),
            identity: poison.meta.map(|meta| meta.identity.to_string()),
            container: poison.meta.map(|meta| meta.container.name()),
            records: poison.meta.map(|meta| meta.records),
        };
        let text = serde_json::to_vec_pretty(&description)?;
        self.charge(room, text.len().saturating_add(poison.bytes.len()))?;
        let (stem, mut chunk) = self.claim()?;
        let json = chunk.write_all(poison.bytes).and_then(|()| {
            let mut json = new_file(&stem.with_extension("json.part"))?;
            json.write_all(&text).map(|()| json)
        });
        match json {
            Ok(json) => Ok(WrittenFiles { stem, json, chunk }),
            Err(error) => {
                discard(&stem);
                Err(error)
            }
        }
    }

    fn put_aside_together(&mut self, group: &[Poison<'_>]) -> io::Result<Vec<io::Result<()>>> {
        let mut room = self.prepare()?;
        let written: Vec<io::Result<WrittenFiles>> = group
            .iter()
            .map(|poison| self.write(poison, room.as_mut()))
            .collect();
        let published = written.into_iter().map(|written| {
            let written = written?;
            let published = written.publish();
            if published.is_err() {
                discard(&written.stem);
            }
            published
        });
        let published = published.collect();
        sync_folder(&self.folder)?;
        Ok(published)
    }
}

impl Quarantine for QuarantineFolder {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        let results = self.put_aside_together(&[poison])?;
        results.into_iter().collect()
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        match self.put_aside_together(group) {
            Ok(results) => results,
            // An error of the folder is an error of each chunk.
            Err(error) => group
                .iter()
                .map(|_| Err(io::Error::new(error.kind(), error.to_string())))
                .collect(),
        }
    }
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
        let mut quarantine = QuarantineFolder::new(folder.path().join("poison"));
        let origin = origin();
        for bytes in [b"one".as_slice(), b"two"] {
            let poison = Poison {
                bytes,
                origin: &origin,
                meta: None,
                reason: "it is wrong",
                is_sound: false,
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
            meta: None,
            reason: "it is wrong",
            is_sound: false,
        };
        let mut quarantine = QuarantineFolder::new(&path).limited_to(2_000);
        quarantine.put_aside(poison(&[1; 1_000])).unwrap();
        let error = quarantine.put_aside(poison(&[2; 1_000])).unwrap_err();
        assert!(error.to_string().contains("limit of 2000"), "{error}");
        quarantine.put_aside(poison(&[3; 100])).unwrap();
        let mut few = QuarantineFolder::new(&path).with_most_chunks(3);
        few.put_aside(poison(&[5; 10])).unwrap();
        let error = few.put_aside(poison(&[6; 10])).unwrap_err();
        assert!(error.to_string().contains("limit of 3 chunks"), "{error}");
        // What was there before counts as well.
        let mut other = QuarantineFolder::new(&path).limited_to(2_000);
        assert!(other.put_aside(poison(&[4; 1_000])).is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 6);
    }

    #[test]
    fn a_group_is_kept_and_chunks_without_room_are_refused_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let origin = origin();
        let chunks: Vec<Vec<u8>> = (0..40).map(|chunk| vec![chunk; 1_000]).collect();
        let group: Vec<Poison<'_>> = chunks
            .iter()
            .map(|bytes| Poison {
                bytes,
                origin: &origin,
                meta: None,
                reason: "it is wrong",
                is_sound: false,
            })
            .collect();
        let mut quarantine = QuarantineFolder::new(folder.path()).limited_to(30_000);
        let results = quarantine.put_group_aside(&group);
        let kept = results.iter().filter(|it| it.is_ok()).count();
        assert!((20..30).contains(&kept), "{kept}");
        assert!(results.iter().skip(kept).all(Result::is_err));
        let mut found: Vec<Vec<u8>> = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "chunk") {
                assert!(path.with_extension("json").exists());
                found.push(fs::read(path).unwrap());
            }
        }
        found.sort();
        assert_eq!(found, chunks[..kept]);
        // Nothing is left of those that were refused.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kept * 2);
    }
}
