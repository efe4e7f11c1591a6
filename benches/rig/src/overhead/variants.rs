//! What is measured: the application with no probe, with clock reads, and with Baler's probes.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader as _, Received, TransportError, Verdict};
use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_connector_null::{NullConfig, NullWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_monitoring::{Controller, ControllerBuilder, Overflow, probe};

use super::application::Outer;
use super::controlled::{Controlled, EndPeer, Makes};
use super::variant::{Alone, Running, Variant};
use crate::harness::Failure;
use crate::monitored;

type Started = Result<Box<dyn Running>, Failure>;

/// The variants without rivals.
pub fn variants() -> Vec<Variant> {
    vec![
        Variant::new("none", "no instrumentation", |_| Ok(Box::new(Alone(none)))),
        Variant::new(
            "clock",
            "two reads of the processor's cycle counter and nothing else: the floor",
            |_| Ok(Box::new(Alone(clock))),
        ),
        Variant::new(
            "instant",
            "two reads of the operating system's monotonic clock (std's Instant)",
            |_| Ok(Box::new(Alone(instant))),
        ),
        Variant::new(
            "deactivated",
            "the probe of an operation, while monitoring is switched off",
            |_| start(null().enabled(false), operation, Makes::Nothing),
        ),
        Variant::new(
            "deactivated-pattern",
            "the probe of an operation that a pattern deactivates, while monitoring is on",
            |_| start(null(), operation, Makes::Deactivated),
        ),
        Variant::new(
            "operation",
            "operation execution records through queue, collector and encoding to a writer that \
             discards; blocking when the queue is full",
            |_| start(null(), operation, Makes::One),
        ),
        Variant::new(
            "operation-drop-oldest",
            "as operation, but a full queue is overwritten: the circular queue",
            |_| {
                let builder = null().overflow(Overflow::DropOldest);
                start(builder, operation, Makes::One)
            },
        ),
        Variant::new(
            "duration",
            "as operation, with duration records, which hold less",
            |_| start(null(), duration, Makes::One),
        ),
        Variant::new(
            "aggregated",
            "as operation, with count, sum, minimum and maximum of many calls in one record a second",
            |_| start(null(), aggregated, Makes::Some),
        ),
        Variant::new(
            "aggregated-histogram",
            "as aggregated, with a histogram of 16 buckets for each power of two",
            |_| start(null(), histogram, Makes::Some),
        ),
        Variant::new(
            "events",
            "as operation, with an event before and one after each call, and metadata of each trace",
            |case| start(null(), events, Makes::Events { depth: case.depth }),
        ),
        Variant::new(
            "sampled",
            "as operation, for one call in 100; the others are not meant to have a record",
            |_| start(null(), sampled, Makes::Some),
        ),
        Variant::new(
            "file",
            "as operation, but to files in the temporary folder, without fsync",
            |_| to_files(),
        ),
        Variant::new(
            "tcp",
            "as operation, but over loopback to a receiver in the same process, which settles and \
             discards",
            |_| over_tcp(),
        ),
    ]
}

/// Reads the processor's time stamp counter; on other architectures than x86-64, the operating
/// system's clock.
///
/// Nothing is checked and nothing converted: this is the floor that others are compared with.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    #[expect(
        unsafe_code,
        reason = "the counter has no safe function; reading it touches no memory"
    )]
    // SAFETY: every processor of this architecture has the instruction, and Linux permits it to
    // programs unless it is asked not to.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
    }
}

monitored! { fn none {} }

monitored! {
    fn clock {
        let begin = cycles();
    } after {
        black_box(cycles().wrapping_sub(begin));
    }
}

monitored! {
    fn instant {
        let begin = Instant::now();
    } after {
        black_box(begin.elapsed());
    }
}

monitored! { #[probe] fn operation {} }
monitored! { #[probe(record = duration)] fn duration {} }
monitored! { #[probe(record = aggregated)] fn aggregated {} }
monitored! { #[probe(record = aggregated, histogram)] fn histogram {} }
monitored! { #[probe(record = events)] fn events {} }
monitored! { #[probe(sample = 1/100)] fn sampled {} }

/// A controller that loses nothing and whose writer discards.
fn null() -> ControllerBuilder {
    let writer = NullWriter::new(NullConfig::default());
    Controller::builder(Box::new(writer)).overflow(Overflow::Block)
}

fn start(builder: ControllerBuilder, outer: Outer, makes: Makes) -> Started {
    Controlled::start(builder, outer, makes, Box::new(|| Ok(())))
}

fn to_files() -> Started {
    let folder = tempfile::tempdir().map_err(Failure::cannot("make a folder"))?;
    let writer = FileWriter::new(FileWriterConfig::new(folder.path()));
    let builder = Controller::builder(Box::new(writer)).overflow(Overflow::Block);
    let remove = move || folder.close().map_err(Failure::cannot("remove a folder"));
    Controlled::start(builder, operation, Makes::One, Box::new(remove))
}

/// How soon a receiver looks whether its sender has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

fn over_tcp() -> Started {
    let (port, end_receiver) = receiver()?;
    let writer = TcpWriter::new(TcpConfig::new("127.0.0.1", port));
    let builder = Controller::builder(Box::new(writer)).overflow(Overflow::Block);
    Controlled::start(builder, operation, Makes::One, end_receiver)
}

/// A TCP receiver in this process that settles and discards what comes: its port, and its end.
fn receiver() -> Result<(u16, EndPeer), Failure> {
    let reader = TcpReader::bind(TcpConfig::new("127.0.0.1", 0));
    let mut reader = Box::new(reader.map_err(Failure::cannot("listen"))?);
    let port = reader.local_addr().port();
    let sent = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&sent);
    let thread = thread::spawn(move || {
        while !stop.load(Ordering::Acquire) {
            if let Received::Chunk(chunk) = reader.receive(Instant::now() + LOOK_AGAIN)? {
                reader.settle(chunk.token, Verdict::Ack)?;
            }
        }
        reader.close(Instant::now() + LOOK_AGAIN);
        Ok::<(), TransportError>(())
    });
    let end = move || {
        sent.store(true, Ordering::Release);
        let ended = thread.join();
        let ended = ended.map_err(|_| Failure::new("the receiver panicked"))?;
        ended.map_err(Failure::cannot("receive"))
    };
    Ok((port, Box::new(end)))
}
