//! The sending ends: chunks to a socket or to a log of Kieker.

mod compression;
mod log;
mod log_config;
mod output;
mod tcp;
mod tcp_config;
mod text;
mod thread;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use baler_common::container::ChunkDecoder;
use baler_common::record::{Catalog, RecordBatch, Schema};
use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Failure, Notify, NotifyCell,
    Rejected, TransportError,
};

pub use compression::LogCompression;
pub use log_config::{KiekerLogWriterConfig, LogFormat};
use output::{Target, WriteError};
pub use tcp_config::KiekerTcpWriterConfig;
use thread::{Phase, StopRequest, WriterThread};

use crate::schema;

/// Sends records to Kieker's TCP source, over one socket.
pub type KiekerTcpWriter = KiekerWriter<KiekerTcpWriterConfig>;

/// Writes records into folders of text or binary logs.
pub type KiekerLogWriter = KiekerWriter<KiekerLogWriterConfig>;

/// Decodes chunks of any container, and writes their records as Kieker's own writers do.
///
/// A thread decodes and writes. It never blocks [`offer`](ChunkWriter::offer).
/// A chunk with a record that Kieker cannot read is refused as a whole, finally.
pub struct KiekerWriter<T: Target> {
    target: T,
    endpoint: Box<str>,
    capability: Capability,
    counts: Arc<Mutex<WriterCounts>>,
    thread: Option<Arc<WriterThread>>,
    notify: Arc<NotifyCell>,
}

/// Counts since the writer was made, over all its reopenings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterCounts {
    /// Chunks that were written.
    pub chunks: u64,
    /// Records in them, as the chunks' owner says.
    pub records: u64,
    /// Chunks that were refused, since Kieker could not read a record in them.
    pub refused_chunks: u64,
    /// Records in them.
    pub refused_records: u64,
}

impl<T: Target> KiekerWriter<T> {
    /// A writer; like every writer it starts closed.
    pub fn new(target: T) -> Self {
        Self {
            endpoint: target.endpoint().into(),
            capability: target.capability(),
            target,
            counts: Arc::default(),
            thread: None,
            notify: Arc::default(),
        }
    }

    /// A function that returns the counts while somebody else owns the writer.
    pub fn counts(&self) -> impl Fn() -> WriterCounts + Send + Sync + use<T> {
        let counts = Arc::clone(&self.counts);
        move || *counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn not_open(&self) -> TransportError {
        Failure::retry("write to", "it was not opened").at(&self.endpoint)
    }

    /// Why nothing can be written.
    fn broken(&self, phase: &Phase) -> Option<TransportError> {
        match phase {
            Phase::Open => None,
            Phase::Ended(Some(failure)) => Some(failure.at(&self.endpoint)),
            Phase::Opening | Phase::Ended(None) => Some(self.not_open()),
        }
    }

    fn late(&self, operation: &'static str) -> TransportError {
        Failure::retry(operation, "no answer in time").at(&self.endpoint)
    }
}

impl<T: Target> ChunkWriter for KiekerWriter<T> {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        let Some(thread) = &self.thread else {
            return Err(Rejected::broken(chunk, self.not_open()));
        };
        let mut state = thread.lock();
        if let Some(error) = self.broken(&state.phase) {
            return Err(Rejected::broken(chunk, error));
        }
        if !state.window.take(&chunk, &self.capability) {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        thread.wake();
        Ok(())
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        let Some(thread) = &self.thread else {
            return Err(self.not_open());
        };
        let mut state = thread.lock();
        out.append(&mut state.confirmed);
        self.broken(&state.phase).map_or(Ok(()), Err)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        if let Some(thread) = &self.thread {
            thread.stop(StopRequest::Abandon);
            if !thread.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
                return Err(self.late("close"));
            }
            self.thread = None;
        }
        let catalog = schema::catalog(self.target.schema());
        let started = catalog.and_then(|catalog| {
            let notify = Arc::clone(&self.notify);
            WriterThread::start(
                &self.target,
                catalog,
                Arc::clone(&self.counts),
                (notify, by),
            )
        });
        let thread = started.map_err(|failure| failure.at(&self.endpoint))?;
        self.thread = Some(Arc::clone(&thread));
        if !thread.wait(by, |phase| !matches!(phase, Phase::Opening)) {
            return Err(self.late("open"));
        }
        let error = self.broken(&thread.lock().phase);
        error.map_or(Ok(()), Err)
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let Some(thread) = self.thread.take() else {
            return CloseReport::default();
        };
        thread.stop(StopRequest::Flush);
        if !thread.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
            thread.stop(StopRequest::Abandon);
        }
        let mut state = thread.lock();
        let error = match &state.phase {
            Phase::Ended(failure) => failure.as_ref().map(|failure| failure.at(&self.endpoint)),
            Phase::Opening | Phase::Open => Some(self.late("close")),
        };
        CloseReport {
            confirmations: std::mem::take(&mut state.confirmed),
            unconfirmed: state.window.tickets().collect(),
            error,
        }
    }
}

impl<T: Target> Drop for KiekerWriter<T> {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.stop(StopRequest::Abandon);
        }
    }
}

impl<T: Target> fmt::Debug for KiekerWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KiekerWriter")
            .field("endpoint", &self.endpoint)
            .field("counts", &self.counts()())
            .finish_non_exhaustive()
    }
}

/// Decodes a chunk, and refuses record types that its reader would not know.
///
/// Kieker's readers give up the connection or the file at the first record of a class that they do
/// not have: nothing says where the next record begins.
fn fitting(
    decoder: &mut ChunkDecoder,
    catalog: &Catalog,
    chunk: &Chunk,
) -> Result<RecordBatch, WriteError> {
    let decoded = decoder.decode(&chunk.bytes);
    let decoded = decoded.map_err(|error| {
        let message = format!("the chunk cannot be decoded: {error}");
        WriteError::Refused(message.into())
    })?;
    let batch = decoded.batch;
    let tables = batch.tables().iter().filter(|table| !table.is_empty());
    let unknown = tables.map(|it| it.schema()).find_map(|schema| {
        let name = schema.name();
        match catalog.get(name) {
            Some(known) if is_same(known, schema) => None,
            Some(_) => Some(format!(
                "{name} has other fields than Kieker's record of that name"
            )),
            None => Some(format!(
                "Kieker has no record type {name}; name its definition with schema=FILE.irl if \
                 the reader has the class, or filter such records out"
            )),
        }
    });
    match unknown {
        None => Ok(batch),
        Some(message) => Err(WriteError::Refused(message.into())),
    }
}

/// Whether two types are one in Kieker's formats, which know no roles.
fn is_same(known: &Schema, schema: &Schema) -> bool {
    let fields = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields = fields.map(|it| (Box::<str>::from(it.name()), it.field_type().clone()));
        fields.collect::<Vec<_>>()
    };
    known.name() == schema.name()
        && (known.fingerprint() == schema.fingerprint() || fields(known) == fields(schema))
}
