//! Calls of known length, recorded by their probes and seen by the sampler of threads.
//!
//! They are the calls of F. Lange, "Measure Java Performance – Sampling or Instrumentation?" (2011).
//! `baler receive --from file:///tmp/baler-sampled` shows their records.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_monitoring::{Controller, Sampler, ShutdownReport, StartError, probe};

/// Calls of these lengths in milliseconds, one after the other.
pub(crate) const CALLS: [u64; 9] = [100, 1, 100, 500, 1, 100, 1, 50, 50];

#[probe(name = "void Demo.runCode()")]
fn run_code() {
    for milliseconds in CALLS {
        match milliseconds {
            1 => method_1ms(),
            50 => method_50ms(),
            100 => method_100ms(),
            _ => method_500ms(),
        }
    }
}

#[probe(name = "void Demo.method1ms()")]
fn method_1ms() {
    work(Duration::from_millis(1));
}

#[probe(name = "void Demo.method50ms()")]
#[expect(
    clippy::disallowed_methods,
    reason = "a sampler sees a sleeping call, too"
)]
fn method_50ms() {
    thread::sleep(Duration::from_millis(50));
}

#[probe(name = "void Demo.method100ms()")]
fn method_100ms() {
    work(Duration::from_millis(100));
}

#[probe(name = "void Demo.method500ms()")]
fn method_500ms() {
    work(Duration::from_millis(500));
}

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Runs the calls and returns the report.
pub(crate) fn run(folder: &Path) -> Result<ShutdownReport, StartError> {
    let writer = FileWriter::new(FileWriterConfig::new(folder));
    let controller = Controller::builder(Box::new(writer))
        .jittered_sampler(Sampler::Threads, Duration::from_millis(10))
        .start()?;
    controller.install();
    run_code();
    Ok(controller.shutdown(Duration::from_secs(5)))
}

#[allow(clippy::print_stdout, reason = "an example shows what it did")]
fn main() -> Result<(), StartError> {
    println!("{}", run(&std::env::temp_dir().join("baler-sampled"))?);
    Ok(())
}
