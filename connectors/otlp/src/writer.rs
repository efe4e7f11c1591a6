//! The sending end.

mod call;
mod calls;
mod event;
mod exporter;
mod records;
mod thread;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Failure, Notify,
    Order, Rejected, TransportError, WriterStats,
};

use crate::SCHEME;
use crate::config::{OtlpWriterConfig, Target};
use crate::limits::Counts;
use exporter::ALTERED;
#[cfg(test)]
pub(crate) use records::ChunkRecords;
use thread::ThreadState;

/// Sends the records of chunks to a receiver of OTLP, or writes them to a file.
///
/// A thread decodes chunks, sends their records and waits for the answers. It ends with the first
/// connection that breaks.
#[derive(Debug)]
pub struct OtlpWriter {
    config: OtlpWriterConfig,
    capability: Capability,
    state: Arc<ThreadState>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl OtlpWriter {
    /// Creates a writer. Like every writer it starts closed.
    pub fn new(config: OtlpWriterConfig) -> Self {
        let durability = match config.target {
            Target::File(_) => Durability::Disk,
            Target::Grpc(_) | Target::Http(..) => Durability::Received,
        };
        // Several requests are on their way at a time, and chunks wait for others.
        let mut capability = Capability::new(SCHEME, Order::Unordered, durability);
        // The records come back, but in the reader's own chunks.
        capability.readable = false;
        config.window.apply(&mut capability);
        Self {
            capability,
            state: Arc::new(ThreadState::new(&config.to_string())),
            counts: Arc::default(),
            thread: None,
            config,
        }
    }

    /// Ends the thread, if there is one.
    fn disconnect(&mut self) {
        self.state.fail(Failure::retry("write to", "it was closed"));
        if let Some(thread) = self.thread.take() {
            // A panic was caught and reported.
            drop(thread.join());
        }
    }
}

impl ChunkWriter for OtlpWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.state.writer.offer(chunk, &self.capability)?;
        self.state.work.notify_one();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.state.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.state.writer.notify().set(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.state.writer.notify().set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.disconnect();
        self.state.writer.reset();
        let (config, state) = (self.config.clone(), Arc::clone(&self.state));
        let counts = Arc::clone(&self.counts);
        match thread::start(config, state, counts, by) {
            Ok(thread) => self.thread = Some(thread),
            Err(failure) => self.state.fail(failure),
        }
        self.state.writer.opened(by, Instant::now())
    }

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.counts = self.counts.all();
        let altered = stats.counts.iter().find(|(name, _)| *name == ALTERED);
        stats.altered = altered.map_or(0, |(_, count)| *count);
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let opened = self.thread.is_some();
        let error = opened.then(|| self.state.writer.drain(by, Instant::now()));
        self.disconnect();
        self.state.writer.close_report(error.flatten())
    }
}

impl Drop for OtlpWriter {
    fn drop(&mut self) {
        self.disconnect();
    }
}
