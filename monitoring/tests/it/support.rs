//! A writer that a test controls, and readers for its chunks.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use baler_common::container::ChunkHeader;
use baler_common::record::{Record, read};
use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Notify, Order,
    Outcome, RejectReason, Rejected, RetryClass, TransportError,
};
use baler_connector_kieker::container;
use baler_monitoring::{Controller, ControllerBuilder, ShutdownReport};

/// The time limit of any wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A record of a test: the emitting thread, its number there, and a text to fill it.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "test.Beat")]
pub(crate) struct Beat {
    pub(crate) thread: u32,
    pub(crate) number: u64,
    pub(crate) text: String,
}

pub(crate) fn beat(thread: u32, number: u64) -> Beat {
    Beat {
        thread,
        number,
        text: String::new(),
    }
}

/// The behaviour of the writer from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// Confirms at once.
    #[default]
    Prompt,
    /// Takes chunks and confirms them only on request.
    Held,
    /// Does not return from `offer`.
    Stuck,
    /// Has no connection, and gets none.
    Unreachable,
    /// Authentication fails, permanently.
    Unauthorised,
    /// Panics in `offer`.
    Panicking,
    /// Refuses every chunk permanently.
    Refusing,
    /// Confirms, but neither notifies nor returns reports unless its owner waits.
    Sleeping,
}

/// The medium of the writer, as the test sees it.
#[derive(Clone, Default)]
pub(crate) struct Medium {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// Takes only smaller chunks than its capability allows.
    limit: Option<usize>,
    open: bool,
    opened: u64,
    closed: bool,
    taken: Vec<Chunk>,
    unconfirmed: Vec<u64>,
    refused: Vec<u64>,
    confirmed: Vec<u64>,
    notify: Option<Arc<dyn Notify>>,
    /// Whether the owner does not wait for confirmations.
    unawaited: bool,
    /// How often it began to wait.
    awaits: u64,
}

struct ScriptedWriter {
    medium: Medium,
    capability: Capability,
}

impl Medium {
    pub(crate) fn new(mode: Mode) -> Self {
        let medium = Self::default();
        medium.lock().mode = mode;
        medium
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .0
            .lock()
            .unwrap_or_else(|error| error.into_inner())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        let notify = state.notify.clone();
        drop(state);
        self.shared.1.notify_all();
        if let Some(notify) = notify {
            notify.notify();
        }
        result
    }

    /// A writer with a window of `window` chunks of 16 MiB.
    pub(crate) fn writer(&self, window: usize) -> Box<dyn ChunkWriter> {
        self.writer_with_limit(window, 16 << 20)
    }

    pub(crate) fn writer_with_limit(
        &self,
        window: usize,
        max_chunk_bytes: usize,
    ) -> Box<dyn ChunkWriter> {
        let mut capability = Capability::new("scripted", Order::PerLane, Durability::Received);
        capability.window_chunks = NonZeroUsize::new(window).unwrap();
        capability.max_chunk_bytes = NonZeroUsize::new(max_chunk_bytes).unwrap();
        Box::new(ScriptedWriter {
            medium: self.clone(),
            capability,
        })
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.change(|state| {
            state.mode = mode;
            if mode == Mode::Unreachable {
                state.break_off();
            }
        });
    }

    /// Takes chunks of at most this number of bytes from now on, whatever its capability says.
    pub(crate) fn limit(&self, max_chunk_bytes: usize) {
        self.change(|state| state.limit = Some(max_chunk_bytes));
    }

    /// Cuts the connection; it can be made again.
    pub(crate) fn cut(&self) {
        self.change(State::break_off);
    }

    /// Confirms this number of the held chunks.
    pub(crate) fn confirm(&self, chunks: usize) {
        self.change(|state| {
            let chunks = chunks.min(state.unconfirmed.len());
            let confirmed: Vec<_> = state.unconfirmed.drain(..chunks).collect();
            state.confirmed.extend(confirmed);
        });
    }

    /// Returns how often the owner began to wait for confirmations, and whether it waits now.
    pub(crate) fn awaits(&self) -> (u64, bool) {
        let state = self.lock();
        (state.awaits, !state.unawaited)
    }

    pub(crate) fn opened(&self) -> u64 {
        self.lock().opened
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        self.lock().taken.clone()
    }

    /// Waits until the medium has this number of chunks.
    pub(crate) fn await_chunks(&self, chunks: usize) -> Vec<Chunk> {
        let state = self.lock();
        let enough = |state: &mut State| state.taken.len() < chunks;
        let (state, waited) = self
            .shared
            .1
            .wait_timeout_while(state, PATIENCE, enough)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {chunks} chunks came",
            state.taken.len()
        );
        state.taken.clone()
    }

    /// Returns the contents of the chunks, each chunk once however often it was sent.
    pub(crate) fn received(&self) -> Received {
        Received::of(&self.chunks())
    }
}

impl State {
    fn break_off(&mut self) {
        self.open = false;
        self.unconfirmed.clear();
        self.confirmed.clear();
        self.refused.clear();
    }
}

/// Checks that every chunk has a reason and a fate.
pub(crate) fn assert_chunks_add_up(report: &ShutdownReport) {
    let stats = &report.stats;
    let closed = stats.closed_by;
    assert_eq!(
        stats.chunks_encoded,
        closed.records + closed.bytes + closed.age + closed.flush,
        "{stats:?}"
    );
    assert_eq!(
        stats.chunks_encoded,
        stats.chunks_delivered + stats.chunks_spooled + stats.chunks_given_up,
        "{stats:?}"
    );
}

fn error(class: RetryClass, message: &str) -> TransportError {
    TransportError::new("reach", "scripted", class, message)
}

impl ChunkWriter for ScriptedWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let window = self.capability.window_chunks.get();
        let mut state = self.medium.lock();
        while state.mode == Mode::Stuck {
            state = self.medium.shared.1.wait(state).unwrap();
        }
        assert!(state.mode != Mode::Panicking, "as the test wants it");
        if !state.open {
            let broken = Box::new(error(RetryClass::Retry, "no connection"));
            let reason = RejectReason::Broken(broken);
            return Err(Rejected { chunk, reason });
        }
        let told = self.capability.max_chunk_bytes.get();
        let max_chunk_bytes = state.limit.unwrap_or(told).min(told);
        if chunk.bytes.len() > max_chunk_bytes {
            let reason = RejectReason::TooLarge { max_chunk_bytes };
            return Err(Rejected { chunk, reason });
        }
        if state.unconfirmed.len() >= window {
            let reason = RejectReason::Full;
            return Err(Rejected { chunk, reason });
        }
        match state.mode {
            Mode::Held => state.unconfirmed.push(chunk.ticket),
            Mode::Refusing => {
                state.refused.push(chunk.ticket);
                return Ok(());
            }
            _ => state.confirmed.push(chunk.ticket),
        }
        state.taken.push(chunk);
        drop(state);
        self.medium.shared.1.notify_all();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let mut state = self.medium.lock();
        if state.mode == Mode::Sleeping && state.unawaited {
            return Ok(());
        }
        let confirmed = state.confirmed.drain(..).map(|ticket| DeliveryReport {
            ticket,
            outcome: Outcome::Confirmed,
        });
        out.extend(confirmed);
        let refused = state.refused.drain(..).map(|ticket| DeliveryReport {
            ticket,
            outcome: Outcome::Refused(error(RetryClass::Final, "not wanted")),
        });
        out.extend(refused);
        if state.open {
            Ok(())
        } else {
            Err(error(RetryClass::Retry, "connection lost"))
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.medium.lock().notify = Some(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.medium.change(|state| {
            state.unawaited = !awaited;
            state.awaits += u64::from(awaited);
        });
    }

    fn reopen(&mut self, _by: Instant) -> Result<(), TransportError> {
        let mut state = self.medium.lock();
        state.break_off();
        match state.mode {
            Mode::Unreachable => Err(error(RetryClass::Retry, "unreachable")),
            Mode::Unauthorised => Err(error(RetryClass::Final, "not authorised")),
            _ => {
                state.open = true;
                state.opened += 1;
                Ok(())
            }
        }
    }

    fn close(self: Box<Self>, _by: Instant) -> CloseReport {
        let mut state = self.medium.lock();
        state.closed = true;
        CloseReport {
            delivery_reports: Vec::new(),
            unconfirmed: std::mem::take(&mut state.unconfirmed),
            error: None,
        }
    }
}

/// The contents of chunks, each chunk once.
pub(crate) struct Received {
    /// The names of the records' types in order.
    pub(crate) types: Vec<String>,
    pub(crate) timestamps: Vec<Option<i64>>,
    pub(crate) beats: Vec<Beat>,
    pub(crate) headers: Vec<ChunkHeader>,
    /// Records of each chunk.
    pub(crate) sizes: Vec<usize>,
}

impl Received {
    pub(crate) fn of(chunks: &[Chunk]) -> Self {
        let once: BTreeMap<_, _> = chunks
            .iter()
            .map(|chunk| (chunk.meta.identity, chunk))
            .collect();
        let mut received = Self {
            types: Vec::new(),
            timestamps: Vec::new(),
            beats: Vec::new(),
            headers: Vec::new(),
            sizes: Vec::new(),
        };
        let mut decoder = container::decoder();
        for (identity, chunk) in once {
            let decoded = decoder.decode(&chunk.bytes).unwrap();
            assert_eq!(decoded.summary.identity(), Some(identity));
            assert_eq!(
                usize::try_from(chunk.meta.records).unwrap(),
                decoded.batch.len()
            );
            for record in decoded.batch.records() {
                received.types.push(record.schema().name().to_owned());
                received.timestamps.push(record.timestamp());
                if record.schema().name() == "test.Beat" {
                    received.beats.push(read(record.fields()).unwrap());
                }
            }
            received.sizes.push(decoded.batch.len());
            received.headers.extend(decoded.summary.header);
        }
        received
    }

    /// How many records there are of any type.
    pub(crate) fn records(&self) -> u64 {
        u64::try_from(self.types.len()).unwrap()
    }

    /// Fails unless the records of each thread are in order and without duplicates.
    pub(crate) fn assert_ordered(&self) {
        let mut last = BTreeMap::new();
        for beat in &self.beats {
            if let Some(before) = last.insert(beat.thread, beat.number) {
                assert!(before < beat.number, "{before} before {beat:?}");
            }
        }
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.beats.iter().map(|beat| beat.number).collect()
    }
}

/// The records of a type, in order.
#[cfg(feature = "samplers")]
pub(crate) fn of_type<R: Record>(medium: &Medium) -> Vec<R> {
    let mut decoder = container::decoder();
    let mut all = Vec::new();
    for chunk in medium.chunks() {
        let decoded = decoder.decode(&chunk.bytes).unwrap();
        let records = decoded.batch.records();
        let wanted = records.filter(|record| record.schema() == R::schema());
        all.extend(wanted.map(|record| read::<R>(record.fields()).unwrap()));
    }
    all
}

/// A controller without a metadata record, so that a test counts its own records only.
pub(crate) fn plain(writer: Box<dyn ChunkWriter>) -> ControllerBuilder {
    Controller::builder(writer).metadata_record(false)
}

/// Waits until the condition holds.
pub(crate) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let by = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < by, "{what} did not happen");
        std::thread::yield_now();
    }
}
