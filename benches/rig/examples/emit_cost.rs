//! What a record costs the process from the call that makes it to its encoded chunk, in CPU time: the
//! medium is none.
//!
//! `emit_cost [MILLIONS] [CHUNK_RECORDS] [KIND]`; a line for each kind of record, or this one, in
//! nanoseconds a record.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, Overflow, probe};
use baler_rig::cpu::{process_cpu_time, thread_cpu_time};
use baler_rig::failure::{Failure, exit_code};
use baler_rig::workload::{Call, Executions, Workload};

/// How long all records may take to arrive.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many calls are made beforehand, to be emitted again and again.
const CALLS: usize = 1 << 16;

/// Emits so many records.
type Emit<'a> = &'a mut dyn FnMut(&Controller, usize);

fn main() -> ExitCode {
    exit_code("emit_cost", run())
}

fn run() -> Result<bool, Failure> {
    let mut words = std::env::args().skip(1);
    let mut number = |otherwise| {
        let word = words.next();
        let number = word.map(|word| word.parse().map_err(Failure::cannot("read a number")));
        number.unwrap_or(Ok(otherwise))
    };
    let (millions, chunk_records): (usize, usize) = (number(4)?, number(1_024)?);
    let only = words.next();
    let records = millions.saturating_mul(1_000_000);
    let workload = Workload::new(1);
    let calls: Vec<Call> = workload.clone().take(CALLS).collect();
    let mut executions = Executions::new(&workload);
    let (calls, mut out) = (calls.as_slice(), io::stdout().lock());

    let begun = thread_cpu_time();
    for call in calls.iter().cycle().take(records) {
        black_box(executions.of(call));
    }
    let making = thread_cpu_time().saturating_sub(begun);

    let kinds: [(&str, Duration, Emit<'_>); 3] = [
        ("typed", making, &mut |controller, records| {
            for call in calls.iter().cycle().take(records) {
                // What is not taken is counted, with its reason.
                controller.emit(executions.of(call));
            }
        }),
        ("operation", Duration::ZERO, &mut |_, records| {
            (0..records).for_each(|number| operation(black_box(number)));
        }),
        ("duration", Duration::ZERO, &mut |_, records| {
            (0..records).for_each(|number| duration(black_box(number)));
        }),
    ];
    let wanted = |kind: &str| only.as_deref().is_none_or(|only| only == kind);
    for (kind, making, emit) in kinds {
        if !wanted(kind) {
            continue;
        }
        let cost = measure(records, chunk_records, emit)?;
        let ns = |time: Duration| time.as_secs_f64() * 1e9 / records as f64;
        writeln!(
            out,
            "{kind:9} {:6.1} ns, of which the emitting thread {:6.1}",
            ns(cost.process.saturating_sub(making)),
            ns(cost.emitting.saturating_sub(making)),
        )
        .map_err(Failure::cannot("write"))?;
    }
    Ok(true)
}

#[probe]
#[inline(never)]
fn operation(number: usize) {
    black_box(number);
}

#[probe(record = duration)]
#[inline(never)]
fn duration(number: usize) {
    black_box(number);
}

/// CPU time.
struct Cost {
    process: Duration,
    emitting: Duration,
}

fn measure(records: usize, chunk_records: usize, emit: Emit<'_>) -> Result<Cost, Failure> {
    let controller = Controller::builder(Box::new(NullWriter::new(NullConfig::default())))
        .metadata_record(false)
        // Nothing may be lost, so the slower end sets the pace.
        .overflow(Overflow::Block)
        .chunk_records(chunk_records)
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    controller.install();
    let deliver = || {
        controller
            .flush(PATIENCE)
            .map_err(Failure::cannot("deliver everything"))
    };
    emit(&controller, CALLS);
    deliver()?;
    let (process, emitting) = (process_cpu_time(), thread_cpu_time());
    emit(&controller, records);
    deliver()?;
    let cost = Cost {
        process: process_cpu_time().saturating_sub(process),
        emitting: thread_cpu_time().saturating_sub(emitting),
    };
    let report = controller.shutdown(PATIENCE);
    if report.adds_up() && report.dropped().total() == 0 {
        Ok(cost)
    } else {
        Err(Failure::new(report.to_string()))
    }
}
