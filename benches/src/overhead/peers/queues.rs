//! Queues that threads share, with a record for each call: what a probe would cost that is built from
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_rig::monitored;
use baler_rig::overhead::{End, Outer, Running, Variant, cycles};
use crossbeam_channel::{Receiver, Sender, bounded};
use crossbeam_queue::ArrayQueue;

use super::counter;
use crate::failure::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "crossbeam-channel",
        "two cycle counter reads and a bounded channel of 64 Ki records, emptied every 1 ms; \
                dropping when full",
        |_| {
            let (sender, receiver) = bounded(RECORDS);
            set(&SENDER, sender)?;
            Ok(Draining::start(try_to_channel, move |stop| {
                poll(stop, || count(&receiver));
            }))
        },
    ),
    Variant::new(
        "crossbeam-channel-blocking",
        "as crossbeam-channel, but both ends wait for each other",
        |_| {
            let (sender, receiver) = bounded(RECORDS);
            set(&SENDER, sender)?;
            Ok(Draining::start(to_channel, move |stop| {
                wait(&stop, &receiver);
            }))
        },
    ),
    Variant::new(
        "array-queue",
        "two cycle counter reads and crossbeam's ArrayQueue of 64 Ki records, emptied every \
                1 ms; dropping when full",
        |_| {
            set(&QUEUE, ArrayQueue::new(RECORDS))?;
            Ok(Draining::start(to_array_queue, |stop| {
                poll(stop, || {
                    QUEUE.get().map_or(0, |queue| {
                        std::iter::from_fn(|| queue.pop())
                            .map(std::hint::black_box)
                            .count()
                    })
                });
            }))
        },
    ),
];

/// How many records a queue holds.
const RECORDS: usize = 65_536;

/// How often it is emptied.
const EVERY: Duration = Duration::from_millis(1);

/// As many bytes as Baler's record of an operation execution.
type Record = [u64; 8];

static SENDER: OnceLock<Sender<Record>> = OnceLock::new();
static QUEUE: OnceLock<ArrayQueue<Record>> = OnceLock::new();

fn set<T>(once: &OnceLock<T>, value: T) -> Result<(), Failure> {
    let set = once.set(value);
    set.map_err(|_| Failure::new("there is a queue already"))
}

fn record(begin: u64) -> Record {
    [1, 2, 3, begin, cycles(), 6, 7, 8]
}

monitored! {
    fn try_to_channel {
        let begin = cycles();
    } after {
        if let Some(sender) = SENDER.get() {
            // What finds it full is lost, and counted by its absence.
            sender.try_send(record(begin)).ok();
        }
    }
}

monitored! {
    fn to_channel {
        let begin = cycles();
    } after {
        if let Some(sender) = SENDER.get() {
            sender.send(record(begin)).ok();
        }
    }
}

monitored! {
    fn to_array_queue {
        let begin = cycles();
    } after {
        if let Some(queue) = QUEUE.get() {
            queue.push(record(begin)).ok();
        }
    }
}

fn count(receiver: &Receiver<Record>) -> usize {
    receiver.try_iter().map(std::hint::black_box).count()
}

/// Empties the queue now and then until it is told to stop, and once more.
fn poll(stop: Arc<AtomicBool>, empty: impl Fn() -> usize) {
    loop {
        let last = stop.load(Ordering::Acquire);
        counter::arrived(u64::try_from(empty()).unwrap_or(u64::MAX));
        if last {
            return;
        }
        thread::park_timeout(EVERY);
    }
}

/// Takes what comes until it is told to stop and nothing comes.
fn wait(stop: &AtomicBool, receiver: &Receiver<Record>) {
    let mut arrived = 0;
    loop {
        match receiver.recv_timeout(EVERY * 100) {
            Ok(record) => {
                std::hint::black_box(record);
                arrived += 1;
            }
            Err(_) if stop.load(Ordering::Acquire) => break,
            Err(_) => {}
        }
    }
    counter::arrived(arrived);
}

struct Draining {
    outer: Outer,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Draining {
    fn start(
        outer: Outer,
        drain: impl FnOnce(Arc<AtomicBool>) + Send + 'static,
    ) -> Box<dyn Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || drain(stopped));
        Box::new(Self {
            outer,
            stop,
            thread,
        })
    }
}

impl Running for Draining {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let ended = self.thread.join();
        ended.map_err(|_| Failure::new("the emptying thread panicked"))?;
        counter::end(calls)
    }
}
