//! A consumer's process: takes chunks, compares every record, and tells before it settles.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_analysis::quarantine::{Poison, Quarantine};
use baler_analysis::{AnalysisError, Parcel, Source, Stage, Stop};
use baler_common::transport::{
    ChunkReader, Origin, ReaderCapability, ReaderCloseReport, ReaderStats, Received, Settled,
    Token, TransportError, Verdict,
};

use super::event::{Event, Run};
use super::numbered::{Checked, Numbered};
use super::orders::{self, Order};
use super::recording::EventPipe;
use super::report::ConsumerReport;
use crate::args::{Sabotage, VerifyConsumerArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::shutdown::Shutdown;

/// How often a consumer that holds a chunk looks whether it still has to.
const HELD: Duration = Duration::from_millis(20);

/// What a consumer was told to do.
#[derive(Debug, Default)]
struct Instructions {
    hold: AtomicBool,
    slow_micros: AtomicU64,
}

/// Consumes until it is told to end.
pub(in crate::commands) fn run(
    args: &VerifyConsumerArgs,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let events = EventPipe::stdout().map_err(|error| Failure::output("standard output", &error))?;
    let told = Arc::new(Instructions::default());
    let (orders, ending) = (Arc::clone(&told), shutdown.clone());
    orders::listen(move |order| match order {
        Order::Hold => orders.hold.store(true, Ordering::Release),
        Order::Release => orders.hold.store(false, Ordering::Release),
        Order::Slow { chunk } => {
            let micros = u64::try_from(chunk.as_micros()).unwrap_or(u64::MAX);
            orders.slow_micros.store(micros, Ordering::Release);
        }
        Order::Finish => ending.request(),
        Order::LimitFiles { bytes } => orders::limit_files(bytes),
        Order::Emit { .. } | Order::Poison { .. } => {}
    })
    .map_err(|error| Failure::new(Code::Internal, format!("cannot start a thread: {error}")))?;

    let opened = endpoint::open_reader(&args.from, true)?;
    let repeated = Repeated::default();
    let reader = ReportingReader {
        inner: opened.reader,
        repeated: repeated.clone(),
        events: events.clone(),
        waits_for: None,
    };
    let mut source = Source::new(Box::new(reader)).with_quarantine(ReportingQuarantine {
        events: events.clone(),
    });
    events.tell(&Event::Ready);
    let mut stage = Comparison {
        seed: args.seed,
        events: events.clone(),
        told,
        repeated,
        shutdown: shutdown.clone(),
        sabotage: args.sabotage.map(|sabotage| (sabotage, args.sabotage_at)),
        held_back: None,
    };
    let ran = source.run(&mut stage, Stop::default(), |_| !shutdown.is_requested());
    let report = source.report();
    let closed = source.close(shutdown.deadline());
    let error = ran.err().or_else(|| closed.err());
    let report = ConsumerReport {
        chunks: report.chunks,
        duplicates: report.duplicates,
        redelivered: report.redelivered,
        unverifiable: report.unverifiable,
        stale: report.stale,
        rebalances: report.reader.rebalances,
        error: error.as_ref().map(ToString::to_string),
    };
    let json = serde_json::to_string(&report)
        .map_err(|error| Failure::output("a report", &error.into()))?;
    events.tell(&Event::Report { json });
    match error {
        Some(error) => Err(error.into()),
        None => Ok(Code::Done),
    }
}

/// Deliveries that the medium marked as repeated and that are in work; clones share.
#[derive(Debug, Clone, Default)]
struct Repeated(Arc<Mutex<HashSet<Origin>>>);

impl Repeated {
    fn insert(&self, origin: Origin) {
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.insert(origin);
    }

    fn take(&self, origin: &Origin) -> bool {
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.remove(origin)
    }
}

/// A reader whose repeated deliveries are noted, since a parcel does not say that it is one, and
/// which tells what it waits for.
struct ReportingReader {
    inner: Box<dyn ChunkReader>,
    repeated: Repeated,
    events: EventPipe,
    /// What was told last; nothing before the first call.
    waits_for: Option<&'static str>,
}

impl ChunkReader for ReportingReader {
    fn capability(&self) -> &ReaderCapability {
        self.inner.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.inner.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        let received = self.inner.receive(by);
        let what = self.inner.waits_for().unwrap_or_default();
        if self.waits_for.replace(what) != Some(what) {
            let what = what.to_owned();
            self.events.tell(&Event::Waits { what });
        }
        let received = received?;
        if let Received::Chunk(delivery) = &received
            && delivery.redelivered
        {
            self.repeated.insert(delivery.origin.clone());
        }
        Ok(received)
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.inner.settle(token, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.inner.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.inner.stats()
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.inner.close(by)
    }
}

/// Puts foreign bytes aside by telling of them.
struct ReportingQuarantine {
    events: EventPipe,
}

impl Quarantine for ReportingQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        self.events.tell(&Event::Quarantined {
            bytes: poison.bytes.into(),
        });
        Ok(())
    }
}

/// Compares every record with what it must be.
struct Comparison {
    seed: u64,
    events: EventPipe,
    told: Arc<Instructions>,
    repeated: Repeated,
    shutdown: Shutdown,
    /// What the lie is, and after how many chunks.
    sabotage: Option<(Sabotage, u64)>,
    held_back: Option<Event>,
}

impl Stage for Comparison {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let (mut runs, mut altered, mut sound) = (Vec::new(), 0_u64, 0_u64);
        for record in parcel.chunk().batch.read::<Numbered>() {
            match record.map(|record| record.check(self.seed)) {
                Ok(Checked::Sound(stream, number)) => {
                    sound = sound.saturating_add(1);
                    Run::append(&mut runs, stream, number);
                }
                Ok(Checked::Altered) | Err(_) => altered = altered.saturating_add(1),
            }
        }
        // Records of another type are not ours: somebody changed their name, or the queue is not
        // empty.
        let all = u64::try_from(parcel.len()).unwrap_or(u64::MAX);
        altered = all.saturating_sub(sound).max(altered);
        let event = Event::Processed {
            identity: parcel.identity(),
            redelivered: parcel.origin().is_some_and(|it| self.repeated.take(it)),
            runs,
            altered,
        };
        self.tell(event);
        if self.told.hold.load(Ordering::Acquire) {
            self.events.tell(&Event::Holding);
            // The kill comes now, between decoding and settling.
            loop {
                let ended = self.shutdown.wait_until(Instant::now() + HELD);
                if ended || !self.told.hold.load(Ordering::Acquire) {
                    break;
                }
            }
        }
        let slow = self.told.slow_micros.load(Ordering::Acquire);
        if slow > 0 {
            let until = Instant::now() + Duration::from_micros(slow);
            self.shutdown.wait_until(until);
        }
        drop(parcel);
        Ok(())
    }
}

impl Comparison {
    /// Tells the truth, unless it was told to lie: a medium that lies looks the same from here.
    fn tell(&mut self, event: Event) {
        let Some((sabotage, after)) = &mut self.sabotage else {
            self.events.tell(&event);
            return;
        };
        if let Some(held_back) = self.held_back.take() {
            self.events.tell(&event);
            self.events.tell(&held_back);
            self.sabotage = None;
            return;
        }
        *after = after.saturating_sub(1);
        if *after > 0 {
            self.events.tell(&event);
            return;
        }
        let sabotage = *sabotage;
        if sabotage == Sabotage::Reorder {
            self.held_back = Some(event);
            return;
        }
        self.sabotage = None;
        match (sabotage, event) {
            (Sabotage::Lose, _) => {}
            (Sabotage::Duplicate, event) => {
                self.events.tell(&event);
                self.events.tell(&event);
            }
            (
                _,
                Event::Processed {
                    identity,
                    redelivered,
                    mut runs,
                    mut altered,
                },
            ) => {
                if sabotage == Sabotage::Alter {
                    altered = altered.saturating_add(1);
                } else if let Some(run) = runs.last().copied() {
                    let first = run.first.saturating_add(1_000_000_000);
                    let count = 1;
                    runs.push(Run {
                        first,
                        count,
                        ..run
                    });
                }
                self.events.tell(&Event::Processed {
                    identity,
                    redelivered,
                    runs,
                    altered,
                });
            }
            (_, event) => self.events.tell(&event),
        }
    }
}
