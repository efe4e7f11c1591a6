//! The sending side: threads that emit, a controller, a writer.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use baler_common::container::{KiekerSerializer, NativeSerializer};
use baler_common::transport::{ChunkWriter, ContainerKind, RetryPolicy};
use baler_monitoring::{Controller, Overflow, ShutdownReport};
use baler_rig::cpu::Stopwatch;
use baler_rig::workload::Call;

use super::case::Case;
use super::load::Load;
use super::row::Sample;
use crate::failure::Failure;

/// How long a repetition may take altogether; a medium that hangs must not hang the run.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Emits the load and delivers all of it; measures from the first record to the end of the
/// controller, and of what `afterwards` waits for.
pub(super) fn send<T>(
    case: &Case,
    load: &Load,
    writer: Box<dyn ChunkWriter>,
    afterwards: impl FnOnce() -> Result<T, Failure>,
) -> Result<(Sample, T), Failure> {
    let controller = controller(case, writer)?;
    let emitters = load.calls().len();
    let (ready, go) = (Barrier::new(emitters + 1), Barrier::new(emitters + 1));
    let stopwatch = thread::scope(|scope| {
        for calls in load.calls() {
            let (controller, ready, go) = (&controller, &ready, &go);
            scope.spawn(move || {
                let mut executions = load.executions();
                ready.wait();
                go.wait();
                emit(controller, &mut executions, calls);
            });
        }
        ready.wait();
        let stopwatch = Stopwatch::start();
        go.wait();
        stopwatch
        // The scope waits for the emitters; a panic of one of them would be passed on.
    });
    let report = controller.shutdown(PATIENCE);
    let outcome = afterwards();
    let cost = stopwatch.cost();
    check(&report, load)?;
    let chunk_bytes = usize::try_from(report.stats.bytes_delivered).unwrap_or(usize::MAX);
    Ok((Sample { cost, chunk_bytes }, outcome?))
}

fn emit(controller: &Controller, executions: &mut baler_rig::workload::Executions, calls: &[Call]) {
    for call in calls {
        // A record that is not taken is counted, with its reason: `check` finds it.
        controller.emit(executions.of(call));
    }
}

fn controller(case: &Case, writer: Box<dyn ChunkWriter>) -> Result<Controller, Failure> {
    // The records blocked behind a dead medium are given up, so that the emitters end.
    let mut retry = RetryPolicy::default();
    retry.max_elapsed = Some(PATIENCE / 2);
    let builder = Controller::builder(writer)
        .metadata_record(false)
        .overflow(Overflow::Block)
        .chunk_records(case.chunk_records)
        // Beyond what any chunk to be measured has.
        .chunk_bytes(900 << 10)
        .retry(retry);
    let builder = match case.encoding.container {
        ContainerKind::Kieker => builder.serializer(KiekerSerializer::new()),
        ContainerKind::Native => builder.serializer(
            NativeSerializer::new(case.encoding.compression)
                .map_err(Failure::cannot("make a serializer"))?,
        ),
    };
    builder
        .start()
        .map_err(Failure::cannot("start a controller"))
}

fn check(report: &ShutdownReport, load: &Load) -> Result<(), Failure> {
    if let Some(error) = &report.error {
        return Err(Failure::new(format!("the writer did not close: {error}")));
    }
    if !report.adds_up() || !report.on_time || report.delivered() != load.records() {
        return Err(Failure::new(format!(
            "{} to be emitted: {report}",
            load.records()
        )));
    }
    Ok(())
}
