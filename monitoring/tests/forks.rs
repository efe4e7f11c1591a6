//! Children of a fork: they never wait for a lock that a thread of their parent had, and monitor
//! themselves with their own controllers.
//!
//! A separate test binary, because it forks while its threads are busy.

#![cfg(test)]
#![cfg(all(feature = "enable", feature = "macros", unix))]
#![expect(
    unsafe_code,
    reason = "processes are forked, awaited and ended by unsafe functions alone"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use baler_common::record::{Interned, Record};
use baler_connector_kieker::pattern::PatternList;
use baler_connector_null::{NullConfig, NullWriter};
#[cfg(feature = "sampling")]
use baler_monitoring::Sampler;
use baler_monitoring::{Controller, FlushError, emit, probe, shutdown_installed};

const FORKS: usize = 1_000;

/// Children that run at the same time.
const AT_ONCE: usize = 8;

/// A child that runs for longer hangs: others take some milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The emitted record.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "test.Fork")]
struct Step {
    number: u64,
    text: String,
}

fn step(number: u64) -> Step {
    Step {
        number,
        text: format!("step {number}"),
    }
}

#[probe]
fn call(number: u64) {
    std::hint::black_box(number);
}

#[probe(record = aggregated)]
fn added_up(number: u64) {
    std::hint::black_box(number);
}

fn start() -> Controller {
    let writer = NullWriter::new(NullConfig::default());
    let builder = Controller::builder(Box::new(writer))
        .queue_bytes(256 << 10)
        .chunk_records(32);
    #[cfg(feature = "sampling")]
    let builder = builder.sampler(Sampler::Threads, Duration::from_millis(1));
    builder.start().unwrap()
}

/// Held while a thread begins and ends, and while the process forks. The standard library has its
/// own lock for threads, which a child may find taken for ever.
static THREADS: Mutex<()> = Mutex::new(());

fn work(number: u64) {
    call(number);
    added_up(number);
    emit(&step(number));
}

/// Keeps every lock of monitoring busy until `is_over`.
fn make_load(controller: &Controller, is_over: &AtomicBool, numbers: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        work(number);
        controller.emit(&step(number));
        match number % 64 {
            // A thread that begins and ends.
            0 => {
                let _threads = THREADS.lock().unwrap();
                std::thread::scope(|scope| scope.spawn(|| work(number)).join()).unwrap();
            }
            8 => drop(controller.stats()),
            16 => drop(controller.flush(Duration::from_secs(1))),
            24 => drop(controller.install()),
            32 => controller.deactivate("..*.none()").unwrap(),
            40 => controller.set_patterns(PatternList::new()),
            48 => drop(Interned::leaked(&format!("{number}"))),
            _ => (),
        }
    }
}

/// The life of a child; an error is the number of the failed check.
fn live_as_child(parent: &Controller) -> Result<(), u8> {
    let ensure = |is_so: bool, otherwise: u8| if is_so { Ok(()) } else { Err(otherwise) };
    // Nothing is recorded for the parent, and the child reads nothing of it.
    work(0);
    ensure(!parent.emit(&step(0)) && !emit(&step(0)), 2)?;
    ensure(!parent.is_enabled(), 3)?;
    ensure(
        parent.flush(PATIENCE) == Err(FlushError::Stopped) && parent.activate("*").is_ok(),
        4,
    )?;
    let began = Instant::now();
    for report in [
        shutdown_installed(PATIENCE),
        Some(parent.shutdown(PATIENCE)),
    ] {
        let report = report.ok_or(5)?;
        let error = report.error.as_deref().unwrap_or_default();
        ensure(!report.on_time && report.adds_up(), 6)?;
        ensure(report.emitted() == 0 && error.contains("fork"), 7)?;
    }
    ensure(began.elapsed() < PATIENCE / 2, 8)?;
    // A controller of the child's own works as in any other process.
    let own = start();
    own.install();
    for number in 0..100 {
        work(number);
    }
    std::thread::scope(|scope| drop(scope.spawn(|| work(100))));
    let report = own.shutdown(PATIENCE);
    ensure(report.on_time && report.adds_up(), 9)?;
    #[cfg(feature = "sampling")]
    let samples = own.sampler_stats().records;
    #[cfg(not(feature = "sampling"))]
    let samples = 0;
    // Metadata, and for each thread one record of aggregated calls.
    ensure(report.delivered() == 1 + 2 * 101 + 2 + samples, 10)
}

/// Forks. The child runs `run`, and its result becomes the child's exit code.
fn fork(run: impl FnOnce() -> Result<(), u8>) -> libc::pid_t {
    let threads = THREADS.lock().unwrap();
    // SAFETY: the child runs what this test is about, and ends without returning from here.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system forks no more");
    if child == 0 {
        let code = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => 0,
            Ok(Err(code)) => i32::from(code),
            Err(_) => 1,
        };
        // SAFETY: ends the process, and runs nothing of the parent's before.
        unsafe { libc::_exit(code) }
    }
    drop(threads);
    child
}

/// Waits for a child and returns its exit code. A child that hangs is killed.
fn join(child: libc::pid_t, until: Instant) -> Result<(), String> {
    let mut status = 0;
    loop {
        // SAFETY: the status is a local variable.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < until => std::thread::park_timeout(Duration::from_millis(1)),
            0 => {
                // SAFETY: the child is this process' own and was not awaited yet.
                unsafe {
                    libc::kill(child, libc::SIGKILL);
                    libc::waitpid(child, &raw mut status, 0);
                }
                return Err(format!("process {child} hung"));
            }
            _ if status == 0 => return Ok(()),
            _ => return Err(format!("process {child} ended with {status:#x}")),
        }
    }
}

#[test]
fn children_of_a_fork_neither_hang_nor_lose_their_own_records() {
    let controller = start();
    controller.install();
    let (is_over, numbers) = (AtomicBool::new(false), AtomicU64::new(0));
    // The collector, and all threads of the load: none begins while the process forks.
    controller.flush(PATIENCE).unwrap();
    let have_begun = Barrier::new(4);
    let failures = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                have_begun.wait();
                make_load(&controller, &is_over, &numbers);
            });
        }
        have_begun.wait();
        let mut failures = Vec::new();
        let mut children = std::collections::VecDeque::new();
        for number in 0..FORKS {
            // The forking thread has a block, a cell and a place in a trace.
            work(u64::try_from(number).unwrap());
            children.push_back((
                fork(|| live_as_child(&controller)),
                Instant::now() + PATIENCE,
            ));
            if children.len() >= AT_ONCE {
                let (child, until) = children.pop_front().unwrap();
                failures.extend(join(child, until).err());
            }
            if failures.len() >= 5 {
                break;
            }
        }
        for (child, until) in children {
            failures.extend(join(child, until).err());
        }
        is_over.store(true, Ordering::Relaxed);
        failures
    });
    let report = controller.shutdown(PATIENCE);
    assert_eq!(failures, [""; 0]);
    assert!(report.on_time && report.adds_up(), "{report}");
}
