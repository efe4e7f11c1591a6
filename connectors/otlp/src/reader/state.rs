//! The state that the thread that serves the connections shares with the owner of the reader.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use baler_common::transport::{ChunkIdentity, ChunkMeta, Delivery, Failure, Origin, Token};
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

use crate::config::OtlpReaderConfig;
use crate::decode::{Form, decode};
use crate::error::BadRequest;
use crate::limits::{Budget, Counts, Share};
use crate::protocol::Signal;
use crate::sink::{Rejected, Sink};

/// An event of a connection.
pub(super) enum Event {
    Chunk(Pending),
    Failed(Failure),
}

/// A chunk that is not settled.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) redelivered: bool,
    meta: ChunkMeta,
    bytes: Bytes,
    request: Arc<PendingRequest>,
}

impl Pending {
    /// The order in which chunks are handed out.
    pub(super) fn sequence(&self) -> u64 {
        self.meta.identity.sequence
    }

    pub(super) fn delivery(&self, token: Token, endpoint: &str) -> Delivery {
        Delivery {
            token,
            bytes: self.bytes.clone(),
            meta: Some(self.meta),
            origin: Origin::of_chunk(endpoint, &self.meta.identity),
            redelivered: self.redelivered,
            attempts: 0,
        }
    }

    /// Settles the chunk. With its last chunk, the request is answered.
    pub(super) fn settle(self) {
        if self.request.unsettled.fetch_sub(1, Ordering::AcqRel) == 1 {
            let settled = &self.request.settled;
            let settled = settled
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(settled) = settled {
                // A sender that is gone gets no answer.
                settled.send(()).ok();
            }
        }
    }
}

/// A request that is not answered. If its chunks are dropped before they are settled, its sender is
/// told to send it again.
#[derive(Debug)]
struct PendingRequest {
    unsettled: AtomicUsize,
    settled: Mutex<Option<oneshot::Sender<()>>>,
    /// The memory of the chunks.
    _memory: Share,
}

/// The state that the thread that serves the connections shares with the owner of the reader.
#[derive(Debug)]
pub(super) struct ReaderState {
    pub(super) budget: Arc<Budget>,
    /// The requests that may still come before others are answered.
    pub(super) requests: Semaphore,
    /// Decodes one request at a time.
    pub(super) decoder: Semaphore,
    pub(super) is_closing: AtomicBool,
    sink: Mutex<Sink>,
    pub(super) counts: Counts,
    events: Sender<Event>,
}

impl ReaderState {
    pub(super) fn new(
        config: &OtlpReaderConfig,
        next: ChunkIdentity,
        events: Sender<Event>,
    ) -> Self {
        let max_requests = config.max_requests.get().min(Semaphore::MAX_PERMITS);
        Self {
            budget: Budget::new(config.memory_bytes.get()),
            requests: Semaphore::new(max_requests),
            decoder: Semaphore::new(1),
            is_closing: AtomicBool::new(false),
            sink: Mutex::new(Sink::new(next, config.max_chunk_bytes.get())),
            counts: Counts::default(),
            events,
        }
    }

    /// Decodes a request, and passes its chunks to the owner. The result has the records that are in
    /// no chunk, and what to wait for before the request is answered, if there are chunks.
    pub(super) fn take<F: Form>(
        &self,
        signal: Signal,
        body: &[u8],
        mut memory: Share,
    ) -> Result<(Rejected, Option<oneshot::Receiver<()>>), BadRequest> {
        // The lock keeps chunks in the order of their numbers.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.begin();
        decode::<F>(signal, body, &mut sink)?;
        let (chunks, rejected) = sink.finish();
        self.counts.add("requests", 1);
        for (reason, records) in &rejected {
            self.counts.add(reason.name(), *records);
        }
        if chunks.is_empty() {
            return Ok((rejected, None));
        }
        memory.set(chunks.iter().map(|it| it.bytes.len()).sum());
        let (settled, answer) = oneshot::channel();
        let request = Arc::new(PendingRequest {
            unsettled: AtomicUsize::new(chunks.len()),
            settled: Mutex::new(Some(settled)),
            _memory: memory,
        });
        for chunk in chunks {
            self.counts.add("records", chunk.meta.records.into());
            self.send(Event::Chunk(Pending {
                redelivered: false,
                meta: chunk.meta,
                bytes: chunk.bytes.into(),
                request: Arc::clone(&request),
            }));
        }
        Ok((rejected, Some(answer)))
    }

    pub(super) fn push_failure(&self, failure: Failure) {
        self.send(Event::Failed(failure));
    }

    fn send(&self, event: Event) {
        // Without an owner the event is not needed.
        drop(self.events.send(event));
    }
}
