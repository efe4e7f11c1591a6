//! Knoche's table 1: a record passes two queues, one or none on its way to the encoder.
//!
//! Kieker's first collector had a queue of its own behind the controller's queue.
//! Its overhead disappeared when the first queue was bypassed.
//!
//! All variants make the same record, and take its times from the same clock, [`cycles`]: they differ in
//! the queues alone.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_monitoring::Overflow;

use super::application::Outer;
use super::controlled::{Controlled, Other, Taken, null};
use super::plain::cycles;
use super::variant::{End, Running, Variant};
use crate::failure::Failure;
use crate::monitored;

/// How many records the first of two queues holds.
const FIRST_QUEUE_RECORDS: usize = 65_536;

/// Records in a chunk: the collector's default.
const CHUNK_RECORDS: usize = 1_024;

/// The variants with two queues, one and none.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "two-queues",
        "every record passes a queue that all threads share, and then that of one-queue",
        |_| TwoQueues::start(),
    ),
    Variant::new(
        "one-queue",
        "every record passes the thread's queue to the collector, which encodes it",
        |_| one_queue(emitting),
    ),
    Variant::new(
        "no-queue",
        "the thread that is called encodes its records itself, without queue and collector",
        |_| Ok(Box::new(NoQueue)),
    ),
];

/// One call, as all variants of this table know it.
#[derive(Debug, Clone, Copy)]
struct Execution {
    tin: i64,
    tout: i64,
    eoi: i32,
    ess: i32,
}

thread_local! {
    /// How many calls are open, and how many were begun since there was none.
    static TRACE: Cell<(i32, i32)> = const { Cell::new((0, 0)) };
    static FIRST_QUEUE: RefCell<Option<SyncSender<Execution>>> = const { RefCell::new(None) };
    static RECORD: RefCell<OperationExecutionRecord> = RefCell::new(record());
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

/// Threads that have not called yet take their sender from here.
static FIRST_QUEUES: Mutex<Option<SyncSender<Execution>>> = Mutex::new(None);

#[inline]
fn begin() -> Execution {
    let (ess, eoi) = TRACE.get();
    let eoi = if ess == 0 { 0 } else { eoi };
    TRACE.set((ess + 1, eoi + 1));
    Execution {
        tin: cycles().cast_signed(),
        tout: 0,
        eoi,
        ess,
    }
}

#[inline]
fn end(begun: Execution) -> Execution {
    let tout = cycles().cast_signed();
    let (open, eoi) = TRACE.get();
    TRACE.set((open - 1, eoi));
    Execution { tout, ..begun }
}

fn write(execution: &Execution, record: &mut OperationExecutionRecord) {
    record.tin = execution.tin;
    record.tout = execution.tout;
    record.eoi = execution.eoi;
    record.ess = execution.ess;
}

fn record() -> OperationExecutionRecord {
    OperationExecutionRecord {
        operation_signature: "public u64 baler_rig.overhead.operation(u32, u64)".into(),
        session_id: "<no-session-id>".into(),
        trace_id: 1,
        tin: 0,
        tout: 0,
        hostname: "localhost".into(),
        eoi: 0,
        ess: 0,
    }
}

monitored! {
    fn emitting {
        let begun = begin();
    } after {
        emit(&end(begun));
    }
}

fn emit(execution: &Execution) {
    RECORD.with_borrow_mut(|record| {
        write(execution, record);
        baler_monitoring::emit(record);
    });
}

fn one_queue(outer: Outer) -> Result<Box<dyn Running>, Failure> {
    let builder = null().overflow(Overflow::Block);
    Controlled::start(builder, outer, Taken::All, Other::Nothing)
}

monitored! {
    fn two_queues {
        let begun = begin();
    } after {
        into_first_queue(end(begun));
    }
}

fn into_first_queue(execution: Execution) {
    FIRST_QUEUE.with_borrow_mut(|queue| {
        let queue = queue.get_or_insert_with(|| {
            let shared = FIRST_QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
            shared.clone().unwrap_or_else(|| sync_channel(0).0)
        });
        // Nobody listens when the forwarding thread has failed, which `finish` finds.
        queue.send(execution).ok();
    });
}

struct TwoQueues {
    second: Box<dyn Running>,
    forwarding: JoinHandle<()>,
}

impl TwoQueues {
    fn start() -> Result<Box<dyn Running>, Failure> {
        let second = one_queue(two_queues)?;
        let (sender, queue) = sync_channel(FIRST_QUEUE_RECORDS);
        *FIRST_QUEUES.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        // It ends when the last thread with a sender does.
        let forwarding = thread::spawn(move || queue.iter().for_each(|execution| emit(&execution)));
        Ok(Box::new(Self { second, forwarding }))
    }
}

impl Running for TwoQueues {
    fn outer(&self) -> Outer {
        self.second.outer()
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        let mut senders = FIRST_QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        drop(senders.take());
        // The calls may have been made by this thread.
        drop(FIRST_QUEUE.take());
        let ended = self.forwarding.join();
        ended.map_err(|_| Failure::new("the forwarding thread panicked"))?;
        self.second.finish(calls)
    }
}

monitored! {
    fn no_queue {
        let begun = begin();
    } after {
        let execution = end(begun);
        ENCODER.with_borrow_mut(|encoder| encoder.add(&execution));
    }
}

/// Records that threads have encoded and that ended with them.
static ENCODED: AtomicU64 = AtomicU64::new(0);

/// What a thread encodes with.
struct Encoder {
    record: OperationExecutionRecord,
    batch: BatchBuilder,
    serializer: NativeSerializer,
    header: ChunkHeader,
    chunk: Vec<u8>,
    encoded: u64,
}

impl Encoder {
    fn new() -> Self {
        Self {
            record: record(),
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
            encoded: 0,
        }
    }

    fn add(&mut self, execution: &Execution) {
        write(execution, &mut self.record);
        if self.batch.push(&self.record).is_ok() && self.batch.len() >= CHUNK_RECORDS {
            self.encode();
        }
    }

    fn encode(&mut self) {
        self.chunk.clear();
        let batch = self.batch.take();
        let written = self
            .serializer
            .serialize(&batch, &self.header, &mut self.chunk);
        if written.is_ok() {
            self.encoded += u64::try_from(batch.len()).unwrap_or(u64::MAX);
        }
        black_box(&self.chunk);
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.encode();
        ENCODED.fetch_add(self.encoded, Ordering::Relaxed);
    }
}

struct NoQueue;

impl Running for NoQueue {
    fn outer(&self) -> Outer {
        no_queue
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        // The calls may have been made by this thread.
        drop(ENCODER.replace(Encoder::new()));
        let encoded = ENCODED.load(Ordering::Relaxed);
        let missing = calls.checked_sub(encoded);
        let lost = missing.ok_or_else(|| Failure::new("more records were encoded than made"))?;
        Ok(End { lost })
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::experiment::Experiment;
    use super::super::plain::clock_reads;
    use super::super::variant::find;
    use super::super::variants;

    /// One test for all variants, since they install a controller for the whole process.
    #[test]
    fn every_row_of_the_table_reads_the_same_clock_twice_a_call_and_keeps_every_record() {
        let (depth, outer_calls) = (10, 300);
        let case = Case {
            variant: String::new(),
            threads: 1,
            depth,
            method_time_ns: 0,
            calls: outer_calls,
            warm_up: 0.0,
            rate: None,
        };
        let all = variants();
        let names = Experiment::Bypass.variants().unwrap();
        assert_eq!(
            names,
            ["none", "clock", "two-queues", "one-queue", "no-queue"]
        );
        let calls = u64::from(depth) * outer_calls;
        for name in names {
            let running = (find(&all, name).unwrap().set_up)(&case).unwrap();
            let before = clock_reads();
            for _ in 0..outer_calls {
                running.outer()(depth, 0);
            }
            let reads = if *name == "none" { 0 } else { 2 * calls };
            assert_eq!(clock_reads() - before, reads, "{name}");
            assert_eq!(running.finish(calls).unwrap().lost, 0, "{name}");
        }
    }
}
