//! A reader between a source and the relay. It unwraps quarantined chunks, and holds back chunks
//! that do not decode.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::container::{ChunkDecoder, ChunkExtent};
use baler_common::transport::{
    ChunkMeta, ChunkReader, ContainerKind, Delivery, ReaderCapability, ReaderCloseReport, Received,
    Settled, Token, TransportError, Verdict,
};
use baler_connector_file::lines::{JSON_SCHEME, TEXT_SCHEME, chunk_of_line};
use baler_connector_file::quarantine::Quarantined;
use bytes::Bytes;
use serde::Serialize;

/// The counts of checked chunks. The names are part of the program's interface.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct CheckedFigures {
    /// Chunks that decode.
    pub(super) decodable: u64,
    /// Records in them.
    pub(super) records: u64,
    /// Chunks that do not decode.
    pub(super) undecodable: u64,
    /// Undecodable chunks that stayed where they are: all of them.
    pub(super) skipped: u64,
    /// Chunks that were taken out of a record of a quarantine.
    pub(super) unwrapped: u64,
    /// The errors of the first undecodable chunks.
    pub(super) problems: Vec<String>,
}

/// The maximum number of errors that are listed.
const MAX_PROBLEMS: usize = 20;

/// A reader that returns only the chunks to send on.
pub(super) struct Checked {
    inner: Box<dyn ChunkReader>,
    decoder: ChunkDecoder,
    looked: Arc<Mutex<CheckedFigures>>,
    demand: usize,
    /// The number of deliveries held back. They are never settled, so the source keeps them.
    held_back: usize,
}

impl Checked {
    pub(super) fn new(inner: Box<dyn ChunkReader>, decoder: ChunkDecoder) -> Self {
        Self {
            inner,
            decoder,
            looked: Arc::default(),
            demand: usize::MAX,
            held_back: 0,
        }
    }

    /// Returns the shared counts, which grow while the reader runs.
    pub(super) fn looked(&self) -> Arc<Mutex<CheckedFigures>> {
        Arc::clone(&self.looked)
    }

    /// Returns the delivery to send on, or `None` if it is held back.
    fn look(&mut self, mut delivery: Delivery) -> Option<Delivery> {
        let mut decoded = self.decoder.decode(&delivery.bytes);
        let wrapped = decoded.as_ref().ok().and_then(Quarantined::of);
        let looked = Arc::clone(&self.looked);
        let mut looked = lock(&looked);
        if let Some(wrapped) = wrapped {
            looked.unwrapped += 1;
            let container = match wrapped.bytes.first_chunk() {
                Some(&ChunkExtent::NATIVE_MAGIC) => ContainerKind::Native,
                Some(&ChunkExtent::KIEKER_MAGIC) => ContainerKind::Kieker,
                _ => ContainerKind::Added,
            };
            delivery.meta = wrapped.identity().map(|identity| ChunkMeta {
                container,
                records: 0,
                identity,
            });
            delivery.origin = wrapped.origin();
            delivery.bytes = wrapped.bytes;
            decoded = self.decoder.decode(&delivery.bytes);
        }
        if decoded.is_err()
            && let Some((meta, chunk)) = line(&delivery)
        {
            delivery.meta = Some(meta);
            delivery.bytes = chunk;
            decoded = self.decoder.decode(&delivery.bytes);
        }
        match decoded {
            Ok(chunk) => {
                let records = chunk.batch.len() as u64;
                looked.decodable += 1;
                looked.records += records;
                if let (Some(meta), Ok(records)) = (&mut delivery.meta, u32::try_from(records)) {
                    meta.records = records;
                }
                Some(delivery)
            }
            Err(error) => {
                looked.undecodable += 1;
                looked.skipped += 1;
                if looked.problems.len() < MAX_PROBLEMS {
                    let problem = format!("{}: {error}", delivery.origin);
                    looked.problems.push(problem);
                }
                drop(looked);
                self.held_back += 1;
                self.set_demand(self.demand);
                None
            }
        }
    }
}

/// Makes a chunk of a line that a reader of lines put aside, if it is one that can be read now.
fn line(delivery: &Delivery) -> Option<(ChunkMeta, Bytes)> {
    let (scheme, _) = delivery.origin.endpoint.split_once(':')?;
    if ![JSON_SCHEME, TEXT_SCHEME].contains(&scheme) {
        return None;
    }
    let (identity, chunk) = chunk_of_line(&delivery.bytes, scheme).ok()?;
    let meta = ChunkMeta {
        container: ContainerKind::Native,
        records: 1,
        identity,
    };
    Some((meta, chunk.into()))
}

/// Locks the counts, even after another thread panicked.
pub(super) fn lock(looked: &Mutex<CheckedFigures>) -> MutexGuard<'_, CheckedFigures> {
    looked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChunkReader for Checked {
    fn capability(&self) -> &ReaderCapability {
        self.inner.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
        let demand = match chunks {
            0 => 0,
            // `usize::MAX` is no limit.
            chunks => chunks.saturating_add(self.held_back),
        };
        self.inner.set_demand(demand);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        loop {
            match self.inner.receive(by)? {
                Received::Chunk(delivery) => {
                    if let Some(delivery) = self.look(delivery) {
                        return Ok(Received::Chunk(delivery));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.inner.settle(token, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.inner.waits_for()
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.inner.close(by)
    }
}
