//! Table 1 of Knoche's paper: a record passes two queues, one queue or none on its way to the encoder.
//!
//! Kieker's first collector had a queue of its own behind the controller's queue.
//! Its overhead disappeared when records bypassed the first queue.
//!
//! The three variants make the same rows, with times from the same clock, [`cycles`].
//! They differ only in the queues.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::{
    BatchBuilder, FieldSource, ReadError, Record, RowWriter, Schema, Width, WordSink,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use super::application::Outer;
use super::controlled::Makes;
use super::variant::{End, Running, Variant};
use super::variants::{Started, cycles, null, start};
use crate::harness::Failure;
use crate::monitored;

/// The rows of the table.
pub(super) const ROWS: &[&str] = &["none", "clock", "two-queues", "one-queue", "no-queue"];

/// The rows that no other measurement has.
pub(super) const VARIANTS: [Variant; 3] = [
    Variant::new(
        "two-queues",
        "every record passes a queue that all threads share, and then the queue of one-queue",
        |_| TwoQueues::start(),
    ),
    Variant::new(
        "one-queue",
        "every record passes the thread's queue to the collector, which encodes it",
        |_| start(null(), one_queue, Makes::One),
    ),
    Variant::new(
        "no-queue",
        "the calling thread encodes its records itself, without queue and collector",
        |_| Ok(Box::new(NoQueue)),
    ),
];

/// How many records the first of two queues holds.
const FIRST_QUEUE_RECORDS: usize = 65_536;

/// Records in a chunk: the collector's default.
const CHUNK_RECORDS: usize = 1_024;

/// The fields in which the records of a thread differ.
#[derive(Debug, Clone, Copy)]
struct Call {
    tin: i64,
    tout: i64,
    eoi: i32,
    ess: i32,
}

thread_local! {
    /// How many calls are open, and how many began since the outermost one.
    static TRACE: Cell<(i32, i32)> = const { Cell::new((0, 0)) };
    static FIRST_QUEUE: RefCell<Option<SyncSender<Call>>> = const { RefCell::new(None) };
    static EMITTED: RefCell<TimedRecord> = RefCell::new(TimedRecord::new());
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

#[inline]
fn begin() -> Call {
    let (ess, begun) = TRACE.get();
    let eoi = if ess == 0 { 0 } else { begun };
    TRACE.set((ess + 1, eoi + 1));
    let tin = cycles().cast_signed();
    Call {
        tin,
        tout: 0,
        eoi,
        ess,
    }
}

#[inline]
fn end(call: Call) -> Call {
    let tout = cycles().cast_signed();
    let (open, begun) = TRACE.get();
    TRACE.set((open - 1, begun));
    Call { tout, ..call }
}

/// A record whose timestamp is the end of its call.
///
/// `emit` reads another clock for a record without a timestamp, and Kieker's record has none.
struct TimedRecord(OperationExecutionRecord);

impl TimedRecord {
    fn new() -> Self {
        Self(OperationExecutionRecord {
            operation_signature: "public u64 baler_rig.overhead.operation(u32, u64)".into(),
            session_id: "<no-session-id>".into(),
            trace_id: 1,
            tin: 0,
            tout: 0,
            hostname: "localhost".into(),
            eoi: 0,
            ess: 0,
        })
    }

    fn of(&mut self, call: Call) -> &Self {
        (self.0.tin, self.0.tout) = (call.tin, call.tout);
        (self.0.eoi, self.0.ess) = (call.eoi, call.ess);
        self
    }
}

impl Record for TimedRecord {
    const WIDTHS: &'static [Width] = OperationExecutionRecord::WIDTHS;

    fn schema() -> &'static Arc<Schema> {
        OperationExecutionRecord::schema()
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.0.tout)
    }

    fn write_fields(&self, row: &mut RowWriter<'_>) {
        self.0.write_fields(row);
    }

    fn write_words<S: WordSink>(&self, sink: S) -> Option<S::Output> {
        self.0.write_words(sink)
    }

    fn read_fields(source: &mut FieldSource<'_>) -> Result<Self, ReadError> {
        OperationExecutionRecord::read_fields(source).map(Self)
    }
}

monitored! {
    fn one_queue {
        let call = begin();
    } after {
        emit(end(call));
    }
}

fn emit(call: Call) {
    EMITTED.with_borrow_mut(|record| baler_monitoring::emit(record.of(call)));
}

monitored! {
    fn two_queues {
        let call = begin();
    } after {
        enter_first_queue(end(call));
    }
}

fn enter_first_queue(call: Call) {
    FIRST_QUEUE.with_borrow_mut(|queue| {
        if queue.is_none() {
            queue.clone_from(&first_queue());
        }
        // `finish` reports records that found no queue or no forwarding thread.
        queue.as_ref().map(|queue| queue.send(call));
    });
}

/// The sender of which each calling thread takes a copy.
fn first_queue() -> MutexGuard<'static, Option<SyncSender<Call>>> {
    static SENDER: Mutex<Option<SyncSender<Call>>> = Mutex::new(None);
    SENDER.lock().unwrap_or_else(PoisonError::into_inner)
}

struct TwoQueues {
    second: Box<dyn Running>,
    forwarding: JoinHandle<()>,
}

impl TwoQueues {
    fn start() -> Started {
        let second = start(null(), two_queues, Makes::One)?;
        let (sender, queue) = sync_channel(FIRST_QUEUE_RECORDS);
        *first_queue() = Some(sender);
        // The queue ends with the last sender.
        let forwarding = thread::spawn(move || queue.iter().for_each(emit));
        Ok(Box::new(Self { second, forwarding }))
    }
}

impl Running for TwoQueues {
    fn outer(&self) -> Outer {
        self.second.outer()
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        *first_queue() = None;
        // This thread has a sender too if it made the calls.
        drop(FIRST_QUEUE.take());
        let ended = self.forwarding.join();
        ended.map_err(|_| Failure::new("the forwarding thread panicked"))?;
        self.second.finish(calls)
    }
}

monitored! {
    fn no_queue {
        let call = begin();
    } after {
        let call = end(call);
        ENCODER.with_borrow_mut(|encoder| encoder.add(call));
    }
}

/// The number of encoded records of all threads that have ended.
static ENCODED: AtomicU64 = AtomicU64::new(0);

/// Encodes the records of its thread.
struct Encoder {
    record: TimedRecord,
    batch: BatchBuilder,
    serializer: NativeSerializer,
    header: ChunkHeader,
    chunk: Vec<u8>,
}

impl Encoder {
    fn new() -> Self {
        Self {
            record: TimedRecord::new(),
            batch: BatchBuilder::new(),
            serializer: NativeSerializer::default(),
            header: ChunkHeader::new(ChunkIdentity {
                producer: ProducerId::new(1),
                epoch: Epoch {
                    start_unix_ns: 1,
                    random: 1,
                },
                lane: 0,
                sequence: 0,
            }),
            chunk: Vec::new(),
        }
    }

    fn add(&mut self, call: Call) {
        let pushed = self.batch.push(self.record.of(call));
        if pushed.is_ok() && self.batch.len() >= CHUNK_RECORDS {
            self.encode();
        }
    }

    fn encode(&mut self) {
        let batch = self.batch.take();
        self.chunk.clear();
        let (header, chunk) = (&self.header, &mut self.chunk);
        if self.serializer.serialize(&batch, header, chunk).is_ok() {
            ENCODED.fetch_add(u64::try_from(batch.len()).unwrap_or(0), Ordering::Relaxed);
        }
        black_box(&self.chunk);
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.encode();
    }
}

struct NoQueue;

impl Running for NoQueue {
    fn outer(&self) -> Outer {
        no_queue
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        // This thread has records left if it made the calls.
        drop(ENCODER.replace(Encoder::new()));
        let lost = calls.checked_sub(ENCODED.load(Ordering::Relaxed));
        let lost = lost.ok_or_else(|| Failure::new("more records were encoded than made"))?;
        Ok(End { lost })
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::variant::find;
    use super::super::variants::{clock_reads, variants};
    use super::*;

    /// One test for all rows, since they install a controller for the whole process.
    #[test]
    fn every_row_of_the_table_reads_the_same_clock_twice_a_call_and_keeps_every_record() {
        let (depth, outer_calls) = (10, 300);
        let case = Case {
            variant: String::new(),
            threads: 1,
            depth,
            calls: outer_calls,
        };
        let all = variants();
        let calls = u64::from(depth) * outer_calls;
        for name in ROWS {
            let running = (find(&all, name).unwrap().set_up)(&case).unwrap();
            let before = clock_reads();
            for _ in 0..outer_calls {
                running.outer()(depth);
            }
            let reads = if *name == "none" { 0 } else { 2 * calls };
            assert_eq!(clock_reads() - before, reads, "{name}");
            assert_eq!(running.finish(calls).unwrap().lost, 0, "{name}");
        }
        // Else `emit` reads a clock of its own, which is not counted here.
        let call = end(begin());
        let timestamp = TimedRecord::new().of(call).timestamp();
        assert_eq!(timestamp, Some(call.tout));
    }
}
