//! A queue that threads share, with a record for each call: what a probe would cost that is built from
//! it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_rig::monitored;
use baler_rig::overhead::{End, Outer, Running, Variant, cycles};
use crossbeam_channel::{Receiver, Sender, bounded};

use super::counter;
use crate::Failure;

pub(super) const VARIANTS: &[Variant] = &[Variant::new(
    "crossbeam-channel",
    "two cycle counter reads and a bounded channel of records; dropping when full",
    |_| {
        let (sender, receiver) = bounded(RECORDS);
        let set = SENDER.set(sender);
        set.map_err(|_| Failure::new("there is a queue already"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || empty(&receiver, &stopped));
        Ok(Box::new(Queue { stop, thread }))
    },
)
.with_settings("64 Ki, emptied each 1 ms")];

/// How many records the queue holds.
const RECORDS: usize = 65_536;

/// How often it is emptied.
const EVERY: Duration = Duration::from_millis(1);

/// As many bytes as Baler's record of an operation execution.
type Record = [u64; 8];

static SENDER: OnceLock<Sender<Record>> = OnceLock::new();

monitored! {
    fn to_queue {
        let begin = cycles();
    } after {
        if let Some(sender) = SENDER.get() {
            // A record that finds the queue full is lost, and counted by its absence.
            sender.try_send([1, 2, 3, begin, cycles(), 6, 7, 8]).ok();
        }
    }
}

/// Empties the queue at intervals until `stop` is set, and then once more.
fn empty(queue: &Receiver<Record>, stop: &AtomicBool) {
    loop {
        let last = stop.load(Ordering::Acquire);
        let records = queue.try_iter().map(std::hint::black_box).count();
        counter::arrived(u64::try_from(records).unwrap_or(u64::MAX));
        if last {
            return;
        }
        thread::park_timeout(EVERY);
    }
}

struct Queue {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Running for Queue {
    fn outer(&self) -> Outer {
        to_queue
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let ended = self.thread.join();
        ended.map_err(|_| Failure::new("the emptying thread panicked"))?;
        counter::end(calls)
    }
}
