//! One repetition: calling threads with timed batches.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use baler_monitoring::usage::{process_cpu_time, thread_cpu_time};
use serde::{Deserialize, Serialize};

use super::application::Outer;
use super::case::Case;
use super::variant::Variant;
use crate::clock::nanos;
use crate::harness::Failure;
use crate::instructions::{UNCOUNTED_ROUNDS, count_last_round};
use crate::statistics::to_f64;

/// The result of one repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// The time of each measured batch of all threads, in nanoseconds.
    pub(super) batches_ns: Vec<u64>,
    /// The number of instrumented calls in a batch.
    pub(super) calls_a_batch: u64,
    /// CPU time of all other threads while the calling threads measured: collectors and exporters.
    pub(super) background_cpu_ns: u64,
    /// Instrumented calls, including the warm-up.
    pub(super) calls: u64,
    /// The number of calls whose record never arrived.
    pub(super) lost: u64,
}

impl Measured {
    /// The mean time of a call in each batch, in nanoseconds.
    pub(super) fn ns_per_call(&self) -> impl Iterator<Item = f64> {
        let calls = to_f64(self.calls_a_batch.max(1));
        self.batches_ns.iter().map(move |ns| to_f64(*ns) / calls)
    }

    /// Returns how many instrumented calls were measured.
    pub(super) fn measured_calls(&self) -> u64 {
        self.batches_ns.len() as u64 * self.calls_a_batch
    }
}

/// Measures a case in this process.
///
/// # Errors
///
/// The variant cannot be set up, or its account does not add up.
pub(super) fn measure(case: &Case, variant: &Variant) -> Result<Measured, Failure> {
    let running = (variant.set_up)(case)?;
    let mut measured = call_in_threads(case, running.outer())?;
    measured.calls = case.instrumented_calls();
    measured.lost = running.finish(measured.calls)?;
    Ok(measured)
}

/// Calls on this thread and measures nothing: callgrind counts.
///
/// # Errors
///
/// As [`measure`].
pub(super) fn call_only(case: &Case, variant: &Variant) -> Result<(), Failure> {
    let running = (variant.set_up)(case)?;
    let outer = running.outer();
    let mut calls = || {
        call_often(case.calls, case, outer);
        Ok(())
    };
    count_last_round(&mut calls, &|| running.settle())?;
    let calls = case.calls * (UNCOUNTED_ROUNDS + 1) * u64::from(case.depth);
    running.finish(calls).map(drop)
}

/// The result of a calling thread.
struct Thread {
    batches_ns: Vec<u64>,
    cpu: Duration,
}

fn call_in_threads(case: &Case, outer: Outer) -> Result<Measured, Failure> {
    // All threads begin to measure when the last one is warm.
    let warm = Barrier::new(case.threads + 1);
    let go = Barrier::new(case.threads + 1);
    let (threads, cpu) = thread::scope(|scope| {
        let handles: Vec<_> = (0..case.threads)
            .map(|_| scope.spawn(|| call(case, outer, &warm, &go)))
            .collect();
        warm.wait();
        let cpu_before = process_cpu_time();
        go.wait();
        let threads: Vec<_> = handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| Failure::new("a thread panicked")))
            .collect();
        (threads, process_cpu_time() - cpu_before)
    });
    let mut measured = Measured {
        calls_a_batch: case.batch_calls() * u64::from(case.depth),
        ..Measured::default()
    };
    let mut calling = Duration::ZERO;
    for thread in threads {
        let thread = thread?;
        measured.batches_ns.extend(thread.batches_ns);
        calling += thread.cpu;
    }
    // The clocks of the threads and of the process are not read at the same time.
    measured.background_cpu_ns = nanos(cpu.saturating_sub(calling));
    Ok(measured)
}

fn call(case: &Case, outer: Outer, warm: &Barrier, go: &Barrier) -> Thread {
    let (warm_up, measured) = case.batches();
    // Written once, so that no page is new during the measurement.
    let mut batches_ns = vec![1_u64; measured];
    for _ in 0..warm_up {
        batch(case, outer);
    }
    warm.wait();
    go.wait();
    let cpu_before = thread_cpu_time();
    for slot in &mut batches_ns {
        let begin = Instant::now();
        batch(case, outer);
        *slot = nanos(begin.elapsed());
    }
    Thread {
        batches_ns,
        cpu: thread_cpu_time() - cpu_before,
    }
}

/// The measured loop, the same machine code for every variant.
#[inline(never)]
fn batch(case: &Case, outer: Outer) {
    call_often(case.batch_calls(), case, outer);
}

#[inline(always)]
fn call_often(times: u64, case: &Case, outer: Outer) {
    for _ in 0..times {
        black_box(outer(black_box(case.depth)));
    }
}
