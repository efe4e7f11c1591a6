//! The thread of a writer: sends offered chunks, several at a time, and reports their fates.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::transport::{Chunk, Failure, Outcome, WriterState};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::{runtime, time};

use super::exporter::Exporter;
use crate::config::OtlpWriterConfig;
use crate::limits::Counts;

/// The state that the owner of a writer shares with its thread.
#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) writer: WriterState<()>,
    /// Wakes the thread after an offer.
    pub(super) work: Notify,
    failed: Notify,
}

impl ThreadState {
    pub(super) fn new(endpoint: &str) -> Self {
        Self {
            writer: WriterState::new(endpoint, Arc::default(), ()),
            work: Notify::new(),
            failed: Notify::new(),
        }
    }

    /// Ends the writer. The first failure stays.
    pub(super) fn fail(&self, failure: Failure) {
        self.writer.fail(failure);
        self.failed.notify_one();
    }

    async fn next_chunk(&self) -> Chunk {
        loop {
            let chunk = self.writer.lock().queue.pop_front();
            if let Some(chunk) = chunk {
                return chunk;
            }
            self.work.notified().await;
        }
    }

    async fn failed(&self) {
        while self.writer.lock().failure().is_none() {
            self.failed.notified().await;
        }
    }

    fn answer(&self, ticket: u64, outcome: Outcome) {
        let is_urgent = matches!(outcome, Outcome::Refused(_));
        let mut state = self.writer.lock();
        state.answer(ticket, outcome);
        self.writer.answered(state, is_urgent);
    }
}

/// Starts the thread, which opens the writer first.
pub(super) fn start(
    config: OtlpWriterConfig,
    state: Arc<ThreadState>,
    counts: Arc<Counts>,
    by: Instant,
) -> Result<JoinHandle<()>, Failure> {
    let run = move || {
        let ran = Failure::catching("write to", || run(config, &state, counts, by));
        if let Err(failure) = ran.and_then(|ran| ran) {
            state.fail(failure);
        }
    };
    let thread = thread::Builder::new().name("baler-otlp-send".into());
    let thread = thread.spawn(run);
    thread.map_err(|error| Failure::of_io("set up", &error))
}

fn run(
    config: OtlpWriterConfig,
    state: &ThreadState,
    counts: Arc<Counts>,
    by: Instant,
) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of_io("set up", &error))?;
    let served = runtime.block_on(async {
        let opening = Exporter::open(config, state.writer.endpoint().into(), counts);
        let late = |_| Err(Failure::retry("connect to", "no answer in time"));
        let opened = time::timeout_at(by.into(), opening).await;
        let exporter = Arc::new(opened.unwrap_or_else(late)?);
        state.writer.open();
        tokio::select! {
            failure = serve(&exporter, state) => Err(failure),
            // The owner closes.
            () = state.failed() => Ok(()),
        }
    });
    // Do not wait for a name lookup that is still running.
    runtime.shutdown_background();
    served
}

/// Sends chunks until a connection breaks. Returns why.
async fn serve(exporter: &Arc<Exporter>, state: &ThreadState) -> Failure {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            // As many as the window has.
            chunk = state.next_chunk() => {
                let exporter = Arc::clone(exporter);
                tasks.spawn(async move { (chunk.ticket, exporter.export(&chunk).await) });
            }
            Some(done) = tasks.join_next() => match done {
                Ok((ticket, Ok(outcome))) => state.answer(ticket, outcome),
                Ok((_, Err(failure))) => return failure,
                Err(error) => return Failure::retry("write to", error.to_string()),
            },
        }
    }
}
