//! The queues of Knoche's table 1: a record passes two of them on its way to the encoder, or none.
//!
//! Kieker's first collector had a queue of its own behind that of the controller, and its overhead
//! was gone when the first one was bypassed.
//! Baler has one queue from the start, as `operation` measures it.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::record::kieker::controlflow::OperationExecutionRecord;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Clock, Controller, Overflow};

use super::application::Outer;
use super::variant::{End, Running, Variant};
use crate::failure::Failure;
use crate::monitored;

/// How many records the first of two queues holds.
const FIRST_QUEUE_RECORDS: usize = 65_536;

/// Records in a chunk: the collector's default.
const CHUNK_RECORDS: usize = 1_024;

/// How long what is in the queues may take to be delivered at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variants with two queues and none.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "two-queues",
        about: "every record passes a queue of records, shared by all threads, before it comes to \
                that of operation",
        set_up: |_| TwoQueues::start(),
    },
    Variant {
        name: "no-queue",
        about: "the thread that is called encodes its records itself, without queue and collector",
        set_up: |_| Ok(Box::new(NoQueue)),
    },
];

/// What a probe without Baler's trace context knows of a call.
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
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

/// Threads that have not called yet take their sender from here.
static FIRST_QUEUES: Mutex<Option<SyncSender<Execution>>> = Mutex::new(None);

fn begin() -> Execution {
    let (ess, eoi) = TRACE.get();
    let eoi = if ess == 0 { 0 } else { eoi };
    TRACE.set((ess + 1, eoi + 1));
    Execution {
        tin: Clock::System.unix_ns(),
        tout: 0,
        eoi,
        ess,
    }
}

fn end(begun: Execution) -> Execution {
    let tout = Clock::System.unix_ns();
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
    controller: Controller,
    forwarding: JoinHandle<()>,
}

impl TwoQueues {
    fn start() -> Result<Box<dyn Running>, Failure> {
        let writer = Box::new(NullWriter::new(NullConfig::default()));
        let controller = Controller::builder(writer)
            .metadata_record(false)
            .overflow(Overflow::Block)
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        let (sender, queue) = sync_channel(FIRST_QUEUE_RECORDS);
        *FIRST_QUEUES.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        let second = controller.clone();
        let forwarding = thread::spawn(move || {
            let mut record = record();
            // To the end of the last thread that has a sender.
            for execution in queue {
                write(&execution, &mut record);
                second.emit(&record);
            }
        });
        Ok(Box::new(Self {
            controller,
            forwarding,
        }))
    }
}

impl Running for TwoQueues {
    fn outer(&self) -> Outer {
        two_queues
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        drop(
            FIRST_QUEUES
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        // Where the calls were made by this thread.
        drop(FIRST_QUEUE.take());
        let ended = self.forwarding.join();
        ended.map_err(|_| Failure::new("the forwarding thread panicked"))?;
        let report = self.controller.shutdown(PATIENCE);
        if !report.adds_up() || report.emitted() != calls {
            return Err(Failure::new(format!("{calls} records: {report}")));
        }
        Ok(End {
            lost: report.dropped().total(),
        })
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
        // Where the calls were made by this thread.
        drop(ENCODER.replace(Encoder::new()));
        let encoded = ENCODED.load(Ordering::Relaxed);
        let missing = calls.checked_sub(encoded);
        let lost = missing.ok_or_else(|| Failure::new("more records were encoded than made"))?;
        Ok(End { lost })
    }
}
