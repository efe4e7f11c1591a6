//! The writing process.

mod amqp;
mod baler;
mod kafka;

use baler_rig::cpu::Stopwatch;
use baler_rig::workload::{Call, Workload};

use super::case::{Broker, Way};
use super::task::{Writing, Written};
use crate::failure::Failure;

/// How many different calls there are at most; they come again and again.
///
/// They stay in the processor's second cache, as what a service has just found out does: a list that
/// is read from memory would cost more than some of what is measured.
const DIFFERENT: u64 = 16_384;

/// The calls of a writing process, made before anything is measured.
#[derive(Debug)]
pub(super) struct Calls {
    workload: Workload,
    calls: Vec<Call>,
}

impl Calls {
    /// Those of a load of so many records.
    pub(super) fn new(seed: u64, records: u64) -> Self {
        let mut workload = Workload::new(seed);
        let count = usize::try_from(records.min(DIFFERENT)).unwrap_or(usize::MAX);
        let calls = workload.by_ref().take(count).collect();
        Self { workload, calls }
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// So many, from the first one on.
    pub(super) fn take(&self, records: u64) -> impl Iterator<Item = &Call> {
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        self.calls.iter().cycle().take(records)
    }
}

/// What was confirmed so far.
#[derive(Debug, Clone, Copy, Default)]
struct Confirmed {
    records: u64,
    messages: u64,
    payload_bytes: u64,
}

/// Something that writes records and waits until all of them are confirmed.
trait Writes {
    /// Writes so many records of the load.
    fn write(&mut self, records: u64) -> Result<(), Failure>;

    /// What was confirmed so far.
    fn confirmed(&self) -> Confirmed;
}

/// Writes what was asked for.
///
/// # Errors
///
/// The broker does not take it.
pub(crate) fn write(task: &Writing) -> Result<Written, Failure> {
    let calls = Calls::new(task.seed, task.records.max(task.warm_up));
    match (task.broker, task.way) {
        (_, Way::Baler(chunk_records)) => {
            let mut writer = baler::Writer::open(task, &calls, chunk_records)?;
            let mut written = measure(task, &mut writer)?;
            written.all_messages = writer.close()?;
            Ok(written)
        }
        (Broker::Amqp, _) => measure(task, &mut amqp::Writer::open(task, &calls)?),
        (Broker::Kafka | Broker::KafkaMock, Way::PlainThreaded) => {
            measure(task, &mut kafka::Writer::threaded(task, &calls)?)
        }
        (Broker::Kafka | Broker::KafkaMock, _) => {
            measure(task, &mut kafka::Writer::polled(task, &calls)?)
        }
    }
}

/// Where to write, as Baler names it.
fn uri(task: &Writing) -> String {
    let Writing {
        address,
        name,
        queue_type,
        ..
    } = task;
    match task.broker {
        Broker::Amqp => format!("amqp://{address}?queue={name}&queue_type={queue_type}"),
        Broker::Kafka | Broker::KafkaMock => format!("kafka://{address}/{name}"),
    }
}

fn measure(task: &Writing, writer: &mut dyn Writes) -> Result<Written, Failure> {
    writer.write(task.warm_up)?;
    let before = writer.confirmed();
    let stopwatch = Stopwatch::start();
    writer.write(task.records)?;
    let cost = stopwatch.cost();
    let after = writer.confirmed();
    Ok(Written {
        wall_seconds: cost.wall.as_secs_f64(),
        cpu_seconds: cost.cpu.as_secs_f64(),
        records: after.records - before.records,
        messages: after.messages - before.messages,
        all_messages: after.messages,
        payload_bytes: after.payload_bytes - before.payload_bytes,
    })
}
