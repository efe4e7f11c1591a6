//! A quarantine in a folder, with two files for each chunk; and a reader that sends its chunks on.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::poison::{NotKept, Poison, PutAside, Quarantine};
use crate::{if_found, new_file, sync_folder};
use baler_common::transport::{
    ChunkMeta, ChunkReader, ContainerKind, Delivery, Order, Origin, ReaderCapability,
    ReaderCloseReport, Received, RetryClass, Settled, Token, TransportError, Verdict,
};

/// The most peers and kinds of reasons of which a folder keeps an example each. All others share one
/// more. With two files each, and the file that counts attempts, they are 63 files.
const MAX_EXAMPLES: usize = 30;

/// Keeps each chunk as two files in a folder: `<process>-<number>.chunk` with the bytes and
/// `<process>-<number>.json` with coordinates and reason.
///
/// Each file is written under another name, forced to disk and renamed, so that a visible file is
/// complete. Any number of processes may use a folder.
///
/// Of connections that were closed because of their bytes ([`Poison::peer`]) it keeps one example
/// for each peer and kind of reason, with their count in its `.json`. So a flood of them cannot fill
/// the folder. A count is written whenever it doubles, and at the end.
#[derive(Debug)]
pub struct QuarantineFolder {
    folder: PathBuf,
    next: u64,
    max_bytes: u64,
    max_chunks: u64,
    /// Those of this process. The key of the example for all others is `None`.
    examples: HashMap<Option<(IpAddr, String)>, Example>,
}

/// One of several connections that were closed for the same reason.
#[derive(Debug)]
struct Example {
    stem: PathBuf,
    description: Description,
}

impl Example {
    /// Counts one more, if the example is still in the folder.
    fn count(&mut self) -> io::Result<bool> {
        if !self.is_there() {
            return Ok(false);
        }
        self.description.count += 1;
        if self.description.count.is_power_of_two() {
            self.write_count()?;
        }
        Ok(true)
    }

    fn is_there(&self) -> bool {
        self.stem.with_extension("chunk").exists()
    }

    /// Replaces the description. A count is not worth a flush of the disk.
    fn write_count(&self) -> io::Result<()> {
        let part = self.stem.with_extension("json.part");
        new_file(&part)?.write_all(&serde_json::to_vec_pretty(&self.description)?)?;
        fs::rename(part, self.stem.with_extension("json"))
    }
}

/// The description of a chunk in its `.json` file.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    reason: String,
    endpoint: Box<str>,
    lane: Box<str>,
    position: u64,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u32>,
    /// How many connections this one stands for.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    count: u64,
}

fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The contents of the folder.
#[derive(Debug, Clone, Copy, Default)]
struct Contents {
    bytes: u64,
    chunks: u64,
}

impl QuarantineFolder {
    /// Keeps chunks in this folder, which is made when the first chunk comes.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            next: 0,
            max_bytes: u64::MAX,
            max_chunks: u64::MAX,
            examples: HashMap::new(),
        }
    }

    /// Limits the bytes of the folder's files: a chunk that would exceed the limit is refused.
    ///
    /// Earlier chunks stay. The refusal is an error, so that nothing is lost silently.
    #[must_use]
    pub const fn limited_to(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Limits the number of chunks in the folder, in the same way.
    #[must_use]
    pub const fn with_most_chunks(mut self, max_chunks: u64) -> Self {
        self.max_chunks = max_chunks;
        self
    }

    /// Counts the contents of the folder, if there is a limit.
    fn contents(&self) -> io::Result<Contents> {
        let mut contents = Contents::default();
        if self.max_bytes == u64::MAX && self.max_chunks == u64::MAX {
            return Ok(contents);
        }
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|it| it == "chunk") {
                contents.chunks += 1;
            }
            // Another process may have renamed or removed it between the two calls.
            let bytes = if_found(entry.metadata())?.map_or(0, |it| it.len());
            contents.bytes += bytes;
        }
        Ok(contents)
    }

    /// Adds a chunk of `more_bytes` to the contents. Returns an error if it does not fit.
    fn charge(&self, contents: &mut Contents, more_bytes: usize) -> io::Result<()> {
        let after = Contents {
            bytes: contents.bytes + more_bytes as u64,
            chunks: contents.chunks + 1,
        };
        let limit = match (after.bytes > self.max_bytes, after.chunks > self.max_chunks) {
            (true, _) => format!("{} bytes", self.max_bytes),
            (false, true) => format!("{} chunks", self.max_chunks),
            (false, false) => {
                *contents = after;
                return Ok(());
            }
        };
        let message = format!(
            "the quarantine {} is full: it has {} chunks with {} bytes, {more_bytes} bytes more \
             would pass its limit of {limit}; look at what is in it and make room",
            self.folder.display(),
            contents.chunks,
            contents.bytes,
        );
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, message))
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

    /// Keeps a chunk, or counts it if there is an example of its kind.
    fn keep(
        &mut self,
        poison: &Poison<'_>,
        contents: &mut Option<Contents>,
    ) -> io::Result<PutAside> {
        let Some(peer) = poison.peer else {
            self.write(poison, contents)?;
            return Ok(PutAside::Kept);
        };
        let mut key = Some((peer, poison.kind()));
        if !self.examples.contains_key(&key) && self.examples.len() >= MAX_EXAMPLES {
            key = None;
        }
        if let Some(example) = self.examples.get_mut(&key) {
            if example.count()? {
                return Ok(PutAside::Counted(NotKept::Repeated));
            }
        }
        let mut example = self.write(poison, contents)?;
        if key.is_none() {
            let others = "; `count` has all further peers and reasons";
            example.description.reason.push_str(others);
        }
        self.examples.insert(key, example);
        Ok(PutAside::Kept)
    }

    /// Writes the two files of a chunk, if the folder has room for it.
    fn write(
        &mut self,
        poison: &Poison<'_>,
        contents: &mut Option<Contents>,
    ) -> io::Result<Example> {
        let contents = match contents {
            Some(contents) => contents,
            None => {
                fs::create_dir_all(&self.folder)?;
                contents.insert(self.contents()?)
            }
        };
        let description = Description {
            reason: poison.reason.to_owned(),
            endpoint: poison.origin.endpoint.clone(),
            lane: poison.origin.lane.clone(),
            position: poison.origin.position,
            bytes: poison.bytes.len(),
            identity: poison.meta.map(|meta| meta.identity.to_string()),
            container: poison.meta.map(|meta| meta.container.to_string()),
            records: poison.meta.map(|meta| meta.records),
            count: 1,
        };
        let text = serde_json::to_vec_pretty(&description)?;
        self.charge(contents, text.len() + poison.bytes.len())?;
        let (stem, mut chunk) = self.claim()?;
        let part = |extension| stem.with_extension(format!("{extension}.part"));
        let mut write = || {
            chunk.write_all(poison.bytes)?;
            chunk.sync_all()?;
            let mut json = new_file(&part("json"))?;
            json.write_all(&text)?;
            json.sync_all()?;
            // Rename the description first: a `.chunk` always has its `.json`.
            fs::rename(part("json"), stem.with_extension("json"))?;
            fs::rename(part("chunk"), stem.with_extension("chunk"))
        };
        write().inspect_err(|_| {
            for extension in ["chunk", "json"] {
                fs::remove_file(part(extension)).ok();
            }
        })?;
        Ok(Example { stem, description })
    }

    /// Forces the names of new files to disk, if there are any.
    fn sync(&self, contents: Option<Contents>) -> io::Result<()> {
        match contents {
            Some(_) => sync_folder(&self.folder),
            None => Ok(()),
        }
    }
}

impl Drop for QuarantineFolder {
    fn drop(&mut self) {
        for example in self.examples.values().filter(|it| it.is_there()) {
            // At worst the file has half of the count.
            example.write_count().ok();
        }
    }
}

impl Quarantine for QuarantineFolder {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        let mut contents = None;
        let kept = self.keep(&poison, &mut contents)?;
        self.sync(contents)?;
        Ok(kept)
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        // Other processes may use the folder, so it is counted again for each group that is written.
        let mut contents = None;
        let kept = group.iter().map(|poison| self.keep(poison, &mut contents));
        let kept: Vec<_> = kept.collect();
        match self.sync(contents) {
            Ok(()) => kept,
            // An error of the folder counts as an error of each chunk.
            Err(error) => {
                let failed = |_| Err(io::Error::new(error.kind(), error.to_string()));
                group.iter().map(failed).collect()
            }
        }
    }
}

/// Reads the chunks of a [`QuarantineFolder`] in the order of their names.
/// Never blocks.
#[derive(Debug)]
pub struct QuarantineReader {
    capability: ReaderCapability,
    files: VecDeque<PathBuf>,
    handed_out: HashMap<Token, PathBuf>,
    demand: usize,
    next_token: u64,
    /// Whether acknowledged chunks are removed.
    remove: bool,
}

impl QuarantineReader {
    /// Reads the chunks that are in this folder now. With `remove`, it removes each acknowledged
    /// chunk from the folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn open(folder: &Path, remove: bool) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "chunk") {
                files.push(path);
            }
        }
        files.sort();
        let mut capability = ReaderCapability::new("folder", Order::PerLane);
        capability.ends = true;
        Ok(Self {
            capability,
            files: files.into(),
            handed_out: HashMap::new(),
            demand: usize::MAX,
            next_token: 0,
            remove,
        })
    }

    /// Whether no chunk is left.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn delivery(&mut self, path: PathBuf) -> io::Result<Delivery> {
        let bytes: bytes::Bytes = fs::read(&path)?.into();
        let text = fs::read(path.with_extension("json")).ok();
        let described = text.and_then(|it| serde_json::from_slice::<Description>(&it).ok());
        let meta = described.as_ref().and_then(meta);
        let origin = match described {
            Some(it) => Origin {
                endpoint: it.endpoint,
                lane: it.lane,
                position: it.position,
            },
            None => Origin {
                endpoint: path.display().to_string().into(),
                lane: "".into(),
                position: 0,
            },
        };
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        self.handed_out.insert(token, path);
        Ok(Delivery {
            token,
            meta,
            bytes,
            origin,
            redelivered: false,
            attempts: 0,
        })
    }
}

/// Returns the metadata of a chunk whose identity was kept.
fn meta(description: &Description) -> Option<ChunkMeta> {
    let named = description.container.as_deref();
    let container = named.and_then(ContainerKind::from_name);
    Some(ChunkMeta {
        container: container.unwrap_or(ContainerKind::Native),
        records: description.records.unwrap_or(0),
        identity: description.identity.as_ref()?.parse().ok()?,
    })
}

impl ChunkReader for QuarantineReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        if self.handed_out.len() >= self.demand && !self.files.is_empty() {
            return Ok(Received::Idle);
        }
        let Some(path) = self.files.pop_front() else {
            return Ok(Received::End);
        };
        let shown = path.display().to_string();
        self.delivery(path)
            .map(Received::Chunk)
            .map_err(|error| TransportError::caused_by("read", shown, RetryClass::Final, error))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let Some(path) = self.handed_out.remove(&token) else {
            return Ok(Settled::Stale);
        };
        if verdict == Verdict::Ack && self.remove {
            // Remove the chunk first: a chunk without its description must not stay.
            let removed = fs::remove_file(&path);
            fs::remove_file(path.with_extension("json")).ok();
            removed.map_err(|error| {
                let shown = path.display().to_string();
                TransportError::caused_by("remove", shown, RetryClass::Final, error)
            })?;
        }
        Ok(Settled::Done)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            unsettled: self.handed_out.len(),
            ..ReaderCloseReport::default()
        }
    }
}

#[cfg(test)]
mod tests;
