//! The folder of a quarantine as a source of chunks, to send them on.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use baler_common::transport::{
    ChunkMeta, ChunkReader, ContainerKind, Delivery, Order, Origin, ReaderCapability,
    ReaderCloseReport, Received, RetryClass, Settled, Token, TransportError, Verdict,
};

use crate::quarantine::Description;

/// Reads the chunks of a [`QuarantineFolder`](crate::QuarantineFolder) by name; never blocks.
#[derive(Debug)]
pub struct QuarantineReader {
    capability: ReaderCapability,
    files: VecDeque<PathBuf>,
    handed_out: HashMap<Token, PathBuf>,
    demand: usize,
    next_token: u64,
    /// Whether a chunk that is acknowledged is removed.
    remove: bool,
}

impl QuarantineReader {
    /// Reads the chunks that are in this folder now. With `remove`, a chunk that is acknowledged is
    /// removed from it.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn open(folder: &Path, remove: bool) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "chunk")
            {
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
        let described = fs::read(path.with_extension("json")).ok();
        let described =
            described.and_then(|text| serde_json::from_slice::<Description>(&text).ok());
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

/// What travels beside a chunk whose identity was kept.
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
        if self.files.is_empty() {
            return Ok(Received::End);
        }
        if self.handed_out.len() >= self.demand {
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
            // The chunk first: a description without one is litter, a chunk without one is not.
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
            error: None,
        }
    }
}
