//! A consumer's process. It compares every record, and reports each chunk before it settles the
//! chunk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baler_analysis::{AnalysisError, Parcel, Source, SourceReport, Stage, Stop};
use baler_connector_file::quarantine::{Poison, PutAside, Quarantine};

use super::messages::{Event, Order, follow_orders, tell};
use super::records::{Numbered, runs};
use crate::args::VerifyConsumerArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::shutdown::Shutdown;

/// Consumes until it is asked to end.
pub(in crate::commands) fn run(
    args: &VerifyConsumerArgs,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let (hold, slow_micros) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let mut stage = Comparison {
        seed: args.seed,
        hold: Arc::clone(&hold),
        slow_micros: Arc::clone(&slow_micros),
        shutdown: shutdown.clone(),
    };
    let ending = shutdown.clone();
    follow_orders(move |order| match order {
        Order::Hold => hold.store(true, Ordering::Release),
        Order::Slow { chunk } => {
            let micros = u64::try_from(chunk.as_micros()).expect("a fault lasts milliseconds");
            slow_micros.store(micros, Ordering::Release);
        }
        Order::Finish => ending.request(),
        Order::Emit { .. } | Order::Poison { .. } | Order::LimitFiles { .. } => {}
    })?;
    let reader = endpoint::open_reader(&args.from, true)?.reader;
    let mut source = Source::new(reader).with_quarantine(ReportingQuarantine);
    tell(&Event::Ready);
    let (mut moved, mut waits_for) = (0, None);
    let ran = source.run(&mut stage, Stop::default(), |report| {
        let now_moved = report.chunks + report.quarantined + report.redelivered;
        // After a chunk another one may follow. Only a wait without a new chunk counts as the end.
        let lacks = if moved == now_moved {
            lacks(report)
        } else {
            "chunks"
        };
        moved = now_moved;
        if waits_for.replace(lacks) != Some(lacks) {
            let what = lacks.to_owned();
            tell(&Event::WaitsFor { what });
        }
        !shutdown.is_requested()
    });
    let duplicates = source.report().duplicates;
    let closed = source.close(shutdown.deadline());
    tell(&Event::Consumed { duplicates });
    ran?;
    closed?;
    Ok(Code::Done)
}

/// Returns the resource that the consumer waits for; empty at the end of its medium.
fn lacks(report: &SourceReport) -> &'static str {
    let waiting = &report.waiting;
    match waiting.since() {
        // The wait began with an error.
        Some(_) => waiting.what().unwrap_or("broker"),
        None if report.in_work > 0 => "chunks",
        None => "",
    }
}

/// A quarantine that reports foreign bytes as events.
struct ReportingQuarantine;

impl Quarantine for ReportingQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        let bytes = poison.bytes.into();
        tell(&Event::Quarantined { bytes });
        Ok(PutAside::Kept)
    }
}

/// Compares every record with the expected one.
struct Comparison {
    seed: u64,
    hold: Arc<AtomicBool>,
    slow_micros: Arc<AtomicU64>,
    shutdown: Shutdown,
}

impl Stage for Comparison {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let records = parcel.chunk().batch.read::<Numbered>();
        let (runs, unaltered) = runs(self.seed, records.flatten());
        tell(&Event::Processed {
            chunk: parcel.identity().map(|identity| identity.to_string()),
            redelivered: parcel.is_redelivered(),
            runs,
            altered: parcel.len() as u64 - unaltered,
        });
        if self.hold.load(Ordering::Acquire) {
            tell(&Event::Holding);
            // The kill comes now, between decoding and settling.
            while !self.shutdown.is_requested() {
                self.shutdown
                    .wait_until(Instant::now() + Duration::from_secs(1));
            }
        }
        let slow = Duration::from_micros(self.slow_micros.load(Ordering::Acquire));
        self.shutdown.wait_until(Instant::now() + slow);
        Ok(())
    }
}
