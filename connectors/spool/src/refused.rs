//! Chunks from the spool that cannot be delivered: kept with bytes, identity and reason.
//!
//! The form is that of the analysis crate's quarantine folder, so that the same tools read it:
//! `<process>-<number>.chunk` and `<process>-<number>.json`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baler_common::transport::{ChunkMeta, Origin};
use serde::Serialize;

/// The folder of what was refused.
#[derive(Debug)]
pub(crate) struct Refused {
    folder: PathBuf,
    next: u64,
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

impl Refused {
    /// Nothing is made before the first chunk.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, next: 0 }
    }

    /// Keeps a piece. It is on disk, complete and forced there, when this returns.
    pub(crate) fn keep(
        &mut self,
        bytes: &[u8],
        meta: Option<ChunkMeta>,
        origin: &Origin,
        reason: &str,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let description = Description {
            reason,
            endpoint: &origin.endpoint,
            lane: &origin.lane,
            position: origin.position,
            bytes: bytes.len(),
            identity: meta.map(|meta| meta.identity.to_string()),
            container: meta.map(|meta| meta.container.name()),
            records: meta.map(|meta| meta.records),
        };
        let json = serde_json::to_vec_pretty(&description)?;
        let stem = self.free_name();
        // The description first: a `.chunk` file always has its `.json`.
        persist(&stem.with_extension("json"), &json)?;
        persist(&stem.with_extension("chunk"), bytes)?;
        fs::File::open(&self.folder)?.sync_all()
    }

    /// A name that nobody has: the folder is locked for this process.
    fn free_name(&mut self) -> PathBuf {
        loop {
            let name = format!("{:010}-{:010}", std::process::id(), self.next);
            self.next = self.next.wrapping_add(1);
            let stem = self.folder.join(name);
            if !stem.with_extension("chunk").exists() {
                return stem;
            }
        }
    }
}

fn persist(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut file = fs::File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)
}
