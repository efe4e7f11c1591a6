//! One queue that all threads share, behind a lock and without one, as Kieker had it before and after
//! Strubel and Wulf, "Refactoring Kieker's Monitoring Component", table 2.
//!
//! The probe does the least that a record needs, so that the two differ only in the queue.

use std::collections::VecDeque;
use std::hint::black_box;
use std::iter;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use baler_common::mutex::lock;
use baler_rig::monitored;
use baler_rig::overhead::{Outer, Running, Variant, cycles};
use crossbeam_channel::{Receiver, Sender};

use crate::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "queue-blocking",
        "two clock reads, and a record into one queue behind a lock, as Java's LinkedBlockingQueue",
        |_| Shipped::start(blocking, |it| BLOCKING.put(it), || BLOCKING.take()),
    ),
    Variant::new(
        "queue-lock-free",
        "as queue-blocking, with a queue without a lock (crossbeam-channel)",
        |_| Shipped::start(lock_free, put, take),
    ),
];

/// Kieker's default (`kieker.monitoring.core.controller.WriterController.RecordQueueSize`).
const MAX_RECORDS: usize = 10_000;

/// The fields of Kieker's `OperationExecutionRecord`.
struct Execution {
    _signature: &'static str,
    _session: &'static str,
    _trace: i64,
    _begin: u64,
    _end: u64,
    _host: &'static str,
    _order: i32,
    _depth: i32,
}

impl Execution {
    fn since(begin: u64) -> Option<Self> {
        Some(Self {
            _signature: "int kieker.moobench.Application.monitoredMethod(int)",
            _session: "<no-session-id>",
            _trace: 1,
            _begin: begin,
            _end: cycles(),
            _host: "localhost",
            _order: 1,
            _depth: 1,
        })
    }
}

/// A record, or the end.
type Entry = Option<Execution>;

monitored! {
    fn blocking {
        let begin = cycles();
    } after {
        BLOCKING.put(Execution::since(begin));
    }
}

monitored! {
    fn lock_free {
        let begin = cycles();
    } after {
        put(Execution::since(begin));
    }
}

static BLOCKING: LazyLock<Blocking> = LazyLock::new(Blocking::default);

#[derive(Default)]
struct Blocking {
    entries: Mutex<VecDeque<Entry>>,
    is_not_empty: Condvar,
    is_not_full: Condvar,
}

impl Blocking {
    fn put(&self, entry: Entry) {
        let entries = lock(&self.entries);
        let is_full = |entries: &mut VecDeque<Entry>| entries.len() >= MAX_RECORDS;
        let entries = self.is_not_full.wait_while(entries, is_full);
        let mut entries = entries.unwrap_or_else(PoisonError::into_inner);
        entries.push_back(entry);
        self.is_not_empty.notify_one();
    }

    fn take(&self) -> Entry {
        let entries = lock(&self.entries);
        let is_empty = |entries: &mut VecDeque<Entry>| entries.is_empty();
        let entries = self.is_not_empty.wait_while(entries, is_empty);
        let mut entries = entries.unwrap_or_else(PoisonError::into_inner);
        self.is_not_full.notify_one();
        entries.pop_front().expect("it is not empty")
    }
}

static LOCK_FREE: LazyLock<(Sender<Entry>, Receiver<Entry>)> =
    LazyLock::new(|| crossbeam_channel::bounded(MAX_RECORDS));

fn put(entry: Entry) {
    LOCK_FREE.0.send(entry).expect("the receiver is static");
}

fn take() -> Entry {
    LOCK_FREE.1.recv().expect("the sender is static")
}

/// An application, and a thread that takes its records and discards them.
struct Shipped {
    outer: Outer,
    put: fn(Entry),
    consumer: JoinHandle<usize>,
}

impl Shipped {
    fn start(
        outer: Outer,
        put: fn(Entry),
        take: fn() -> Entry,
    ) -> Result<Box<dyn Running>, Failure> {
        let consume = move || iter::from_fn(take).map(black_box).count();
        let consumer = thread::Builder::new()
            .name("consumer".to_owned())
            .spawn(consume);
        let consumer = consumer.map_err(Failure::cannot("start a thread"))?;
        Ok(Box::new(Self {
            outer,
            put,
            consumer,
        }))
    }
}

impl Running for Shipped {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<u64, Failure> {
        (self.put)(None);
        let consumed = self.consumer.join();
        let consumed = consumed.map_err(|_| Failure::new("the consumer panicked"))?;
        if u64::try_from(consumed) != Ok(calls) {
            let reason = format!("the consumer has {consumed} records instead of {calls}");
            return Err(Failure::new(reason));
        }
        Ok(0)
    }
}
