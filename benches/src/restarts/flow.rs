//! Records that flow all the time, and when they arrive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{Received, Verdict};
use baler_monitoring::{Controller, Overflow};

use crate::endpoint;
use crate::failure::Failure;
use crate::numbered::{Numbered, Seen, numbers};

/// A record is emitted so often.
const EVERY: Duration = Duration::from_millis(2);

/// A chunk is closed so often.
const WAIT: Duration = Duration::from_millis(10);

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How many numbers there can be: eleven hours of them.
const CAPACITY: u64 = 20_000_000;

/// Both ends, in this process, so that their clock is one.
pub(super) struct Flow {
    arrivals: Arc<Arrivals>,
    emitter: JoinHandle<(Controller, u64)>,
    reader: JoinHandle<Result<Seen, Failure>>,
}

/// What has arrived, and when.
struct Arrivals {
    start: Instant,
    stop_emitting: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// When the last chunk arrived.
    last: Duration,
    /// When the youngest record in it was emitted.
    youngest: Duration,
    /// The first arrivals since the last look.
    first: Option<Duration>,
    first_fresh: Option<Duration>,
    /// When that look was.
    since: Duration,
    /// The reader is to end when so many different numbers have arrived.
    end: Option<(u64, Instant)>,
    failed: bool,
}

/// How long after a moment the first chunk arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Latency {
    /// Any chunk: the reader is back.
    pub(super) first: Duration,
    /// One with a record that was emitted after that moment: both ends are.
    pub(super) fresh: Duration,
}

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flow {
    pub(super) fn start(writer: &str, reader: &str) -> Result<Self, Failure> {
        let arrivals = Arc::new(Arrivals {
            start: Instant::now(),
            stop_emitting: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let controller = Controller::builder(endpoint::writer(writer)?)
            .metadata_record(false)
            .overflow(Overflow::Block)
            .wait_time(WAIT)
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        let shared = Arc::clone(&arrivals);
        let emitter = thread::spawn(move || {
            let mut numbered = Numbered::new(1);
            while !shared.stop_emitting.load(Ordering::Acquire) {
                let now = shared.start.elapsed().as_nanos();
                controller.emit(numbered.next(i64::try_from(now).unwrap_or(i64::MAX)));
                thread::park_timeout(EVERY);
            }
            (controller, numbered.count())
        });
        let (shared, uri) = (Arc::clone(&arrivals), reader.to_owned());
        let reader = thread::spawn(move || {
            let read = read(&shared, &uri);
            if read.is_err() {
                shared.lock().failed = true;
                shared.changed.notify_all();
            }
            read
        });
        Ok(Self {
            arrivals,
            emitter,
            reader,
        })
    }

    /// Waits until a chunk arrives with a record that was emitted after now, and says how long
    /// that and any first chunk took.
    pub(super) fn latency(&self) -> Result<Latency, Failure> {
        let since = self.arrivals.start.elapsed();
        let mut state = self.arrivals.lock();
        state.since = since;
        (state.first, state.first_fresh) = (None, None);
        let by = Instant::now() + PATIENCE;
        loop {
            if let (Some(first), Some(fresh)) = (state.first, state.first_fresh) {
                return Ok(Latency {
                    first: first.saturating_sub(since),
                    fresh: fresh.saturating_sub(since),
                });
            }
            let left = by.saturating_duration_since(Instant::now());
            if state.failed || left.is_zero() {
                let (last, youngest) = (state.last, state.youngest);
                return Err(Failure::new(format!(
                    "nothing arrived within {PATIENCE:?} after {since:?}: the last chunk came \
                     at {last:?} and was of {youngest:?}"
                )));
            }
            let waited = self.arrivals.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends both ends; yields how many records there were, and how many of them never arrived.
    pub(super) fn end(self) -> Result<(u64, u64), Failure> {
        let panicked = |_| Failure::new("an end panicked");
        self.arrivals.stop_emitting.store(true, Ordering::Release);
        let (controller, emitted) = self.emitter.join().map_err(panicked)?;
        let report = controller.shutdown(PATIENCE);
        self.arrivals.lock().end = Some((emitted, Instant::now() + PATIENCE));
        let seen = self.reader.join().map_err(panicked)??;
        if report.delivered() != emitted || seen.impossible > 0 {
            return Err(Failure::new(format!("{emitted} to be emitted: {report}")));
        }
        Ok((emitted, seen.missing_below(emitted)))
    }
}

fn read(arrivals: &Arrivals, uri: &str) -> Result<Seen, Failure> {
    let mut seen = Seen::new(CAPACITY);
    let mut decoder = ChunkDecoder::default();
    let mut reader = endpoint::reader(uri)?;
    reader.set_demand(64);
    loop {
        let end = arrivals.lock().end;
        if end.is_some_and(|(count, by)| seen.distinct >= count || Instant::now() > by) {
            reader.close(Instant::now() + PATIENCE);
            return Ok(seen);
        }
        match reader.receive(Instant::now() + WAIT) {
            Ok(Received::Chunk(delivery)) => {
                let now = arrivals.start.elapsed();
                let decoded = decoder.decode(&delivery.bytes);
                let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
                let mut youngest = 0;
                for (number, tin) in numbers(&decoded.batch) {
                    seen.add(number);
                    youngest = youngest.max(tin);
                }
                reader.settle(delivery.token, Verdict::Ack).ok();
                let youngest = Duration::from_nanos(u64::try_from(youngest).unwrap_or(0));
                let mut state = arrivals.lock();
                (state.last, state.youngest) = (now, youngest);
                if now > state.since {
                    state.first.get_or_insert(now);
                    if youngest > state.since {
                        state.first_fresh.get_or_insert(now);
                    }
                }
                drop(state);
                arrivals.changed.notify_all();
            }
            Ok(_) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(Failure::cannot("receive")(error)),
        }
    }
}
