//! The recorded data of probes as plain values, and the call trees made of it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::record::{Record, RecordBatch, RecordRef, read};
use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_connector_kieker::container;
use baler_connector_kieker::types::OperationExecutionRecord;
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{Clock, Controller, TestClock};

/// There is one controller in a process, and `cargo test` runs many tests in one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test uses the process-wide controller.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Far longer than any step here.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records from its creation to [`Recording::finish`], with a clock that stands still.
pub(crate) struct Recording {
    pub(crate) clock: TestClock,
    controller: Controller,
    medium: MemoryMedium,
    _alone: MutexGuard<'static, ()>,
}

/// An operation execution record.
#[derive(Debug, PartialEq)]
pub(crate) struct Execution {
    pub(crate) logged: Option<i64>,
    pub(crate) call: OperationExecutionRecord,
}

impl Recording {
    /// Starts at the time 1,000 ns.
    pub(crate) fn start() -> Self {
        let alone = one_at_a_time();
        let clock = TestClock::new(1_000);
        let medium = MemoryMedium::new(MemoryLimits::default());
        let controller = Controller::builder(Box::new(medium.writer()))
            .clock(Clock::Test(clock.clone()))
            .hostname("test-host")
            .metadata_record(false)
            .start()
            .unwrap();
        controller.install();
        Self {
            clock,
            controller,
            medium,
            _alone: alone,
        }
    }

    pub(crate) fn switch(&self, on: bool) {
        if on {
            self.controller.enable();
        } else {
            self.controller.disable();
        }
    }

    /// Returns everything recorded; records of a thread are in the order of emission.
    pub(crate) fn finish(self) -> Vec<Execution> {
        let batches = self.finish_all();
        let records = batches.iter().flat_map(RecordBatch::records);
        records.map(execution).collect()
    }

    /// Returns everything recorded, of any type.
    pub(crate) fn finish_all(self) -> Vec<RecordBatch> {
        let stats = self.controller.shutdown(PATIENCE).stats;
        assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
        let batches = drain(&self.medium);
        let records: usize = batches.iter().map(RecordBatch::len).sum();
        assert_eq!(u64::try_from(records).unwrap(), stats.delivered);
        batches
    }

    /// Waits until everything that was emitted before is delivered.
    pub(crate) fn flush(&self) {
        self.controller.flush(PATIENCE).unwrap();
    }
}

/// Returns the content of the medium, chunk by chunk.
pub(crate) fn drain(medium: &MemoryMedium) -> Vec<RecordBatch> {
    medium.end();
    let mut reader = medium.reader();
    reader.set_demand(usize::MAX);
    let mut decoder = container::decoder();
    let mut batches = Vec::new();
    loop {
        match reader.receive(Instant::now() + PATIENCE).unwrap() {
            Received::Chunk(delivery) => {
                batches.push(decoder.decode(&delivery.bytes).unwrap().batch);
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            Received::End => return batches,
            other => panic!("{other:?}"),
        }
    }
}

/// The records of one type.
pub(crate) fn of_type<R: Record>(batches: &[RecordBatch]) -> Vec<R> {
    let records = batches.iter().flat_map(RecordBatch::read::<R>);
    records.collect::<Result<_, _>>().unwrap()
}

pub(crate) fn execution(record: RecordRef<'_>) -> Execution {
    // Names, order and types of the fields are Kieker's.
    assert_eq!(record.schema(), OperationExecutionRecord::schema());
    Execution {
        logged: record.timestamp(),
        call: read(record.fields()).unwrap(),
    }
}

impl Deref for Execution {
    type Target = OperationExecutionRecord;

    fn deref(&self) -> &OperationExecutionRecord {
        &self.call
    }
}

impl Execution {
    /// The operation without its class and arguments.
    pub(crate) fn operation(&self) -> &str {
        let head = self.operation_signature.split('(').next().unwrap();
        head.rsplit(['.', ' ']).next().unwrap()
    }
}

/// Returns the traces among the records, as call trees: `root(first second(inner))`, sorted.
///
/// Fails where Kieker's trace reconstruction would call a trace broken: if its eoi are not 0, 1, 2
/// and so on, or if an ess is more than one above the ess of the call before.
pub(crate) fn reconstruct(records: &[Execution]) -> Vec<String> {
    let mut traces: BTreeMap<i64, Vec<&Execution>> = BTreeMap::new();
    for record in records {
        traces.entry(record.trace_id).or_default().push(record);
    }
    let mut trees: Vec<_> = traces
        .into_values()
        .map(|mut calls| {
            calls.sort_by_key(|call| call.eoi);
            let mut tree = String::new();
            let mut ess = -1;
            for (eoi, call) in (0_i32..).zip(&calls) {
                assert_eq!(call.eoi, eoi, "a gap or a duplicate in {calls:#?}");
                assert!(call.ess <= ess + 1, "a level is missing in {calls:#?}");
                assert!(call.ess > 0 || eoi == 0, "a second root in {calls:#?}");
                if call.ess > ess {
                    tree.push_str(if eoi == 0 { "" } else { "(" });
                } else {
                    (call.ess..ess).for_each(|_| tree.push(')'));
                    tree.push(' ');
                }
                tree.push_str(call.operation());
                ess = call.ess;
            }
            (0..ess).for_each(|_| tree.push(')'));
            tree
        })
        .collect();
    trees.sort();
    trees
}
