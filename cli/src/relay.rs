//! Passes chunks from a reader to a writer without decoding them, and counts them.
//!
//! reader -> identities -> outbox -> writer; each fate settles its delivery at the reader

mod error;
mod identity;
mod intake;
mod ledger;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use baler_common::random::random;
use baler_common::transport::{
    ChunkReader, ChunkWriter, Connection, Fate, Notify, Outbox, OutboxSettings, TransportError,
};
use baler_connector_file::quarantine::Quarantine;

pub(crate) use error::RelayError;
use identity::Identities;
use ledger::Ledger;
pub(crate) use ledger::RelayStats;

use crate::shutdown::time_until;

/// Returns the default settings of a relay. At most 1,024 chunks and 64 MiB are received and not
/// settled, and the sink is tried again without limit. Each process has its own seed for the
/// pauses.
pub(crate) fn settings() -> OutboxSettings {
    let mut settings = OutboxSettings::default();
    settings.max_bytes = 64 << 20;
    settings.retry.seed = random();
    settings
}

/// Passes chunks from any [`ChunkReader`] to any [`ChunkWriter`], with one thread for both.
///
/// A delivery is settled at the source only when the sink has confirmed its chunk or has put it on
/// local disk. A chunk on disk survives the end of this process. Chunks of one lane leave in the
/// order in which they came.
///
/// The owner calls [`step`](Self::step) again and again, or [`run`](Self::run) once, and then
/// [`close`](Self::close). A relay that is dropped or killed instead loses nothing: the source
/// delivers the unsettled chunks again.
pub(crate) struct Relay {
    ledger: Ledger,
    outbox: Outbox,
    /// The channel on which the sink notifies of changes.
    changes: Receiver<()>,
    /// Whether the sink has notified since the outbox was last driven.
    has_changed: bool,
    identities: Identities,
    demand: Demand,
    next_ticket: u64,
    /// The time at which the outbox must be driven again.
    wake_up: Option<Instant>,
    /// The length of one wait for the source while confirmations of the sink are missing.
    pause: Duration,
    /// Whether the source reported its end.
    ended: bool,
    /// Memory that is reused in each step.
    fates: Vec<Fate>,
}

/// Notifies the relay of changes at the sink.
struct SinkNotification(SyncSender<()>);

impl Notify for SinkNotification {
    fn notify(&self) {
        // A notification that still waits is enough.
        self.0.try_send(()).ok();
    }
}

/// The number of chunks that the source may hand out.
#[derive(Debug, Clone, Copy)]
struct Demand {
    max: usize,
    /// The number of chunks, in all, after which the source is paused; `None` without a limit.
    in_all: Option<u64>,
    paused: bool,
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The source is at its end, and all its chunks are settled.
    End,
    /// No event came from the source.
    Idle,
    /// An event came from the source.
    Received,
}

impl Relay {
    /// Creates a relay between the two. It opens the writer at the first step.
    ///
    /// Without [`with_quarantine`](Self::with_quarantine), bytes that never were a chunk are
    /// counted and discarded. A chunk that the sink refuses for good ends the relay and stays at
    /// the source.
    pub(crate) fn new(
        mut reader: Box<dyn ChunkReader>,
        writer: Box<dyn ChunkWriter>,
        mut settings: OutboxSettings,
    ) -> Self {
        settings.max_chunks = settings.max_chunks.max(1);
        settings.max_bytes = settings.max_bytes.max(1);
        let demand = Demand {
            max: settings.max_chunks,
            in_all: None,
            paused: false,
        };
        let (sender, changes) = sync_channel(1);
        let outbox = Outbox::new(writer, settings, Arc::new(SinkNotification(sender)));
        reader.set_demand(demand.max);
        Self {
            ledger: Ledger::new(reader),
            outbox,
            changes,
            has_changed: false,
            identities: Identities::new(),
            demand,
            next_ticket: 0,
            wake_up: None,
            pause: FIRST_PAUSE,
            ended: false,
            fates: Vec::new(),
        }
    }

    /// Sets the quarantine for chunks that cannot be passed on. It is called on the relay's thread,
    /// which waits for it. A chunk that it has kept is rejected at the source.
    ///
    /// If it fails, the chunk is given back to the source and the relay ends.
    #[must_use]
    pub(crate) fn with_quarantine(mut self, quarantine: impl Quarantine + 'static) -> Self {
        self.ledger.quarantine = Some(Box::new(quarantine));
        self
    }

    /// Passes on all chunks that can be passed on, and waits for an event until `by` at most.
    ///
    /// Opening the sink can take longer, up to the setting `reopen_timeout`.
    ///
    /// # Errors
    ///
    /// [`RelayError`]. Chunks in flight stay in flight until [`close`](Self::close).
    pub(crate) fn step(&mut self, by: Instant) -> Result<Step, RelayError> {
        self.drive(None)?;
        if self.ended {
            if self.outbox.is_empty() {
                return Ok(Step::End);
            }
            self.wait(self.until(by));
            return Ok(Step::Idle);
        }
        self.receive(by)
    }

    /// Returns the counts so far.
    pub(crate) fn stats(&self) -> RelayStats {
        RelayStats {
            identities_made: self.identities.made(),
            outbox: self.outbox.stats(),
            ..self.ledger.stats()
        }
    }

    /// Returns the number of deliveries so far, repeated ones included. Cheaper than
    /// [`stats`](Self::stats).
    pub(crate) fn received(&self) -> u64 {
        self.ledger.counts.received
    }

    /// Whether the source has handed out all the chunks that are wanted.
    fn has_enough(&self) -> bool {
        let wanted = self.demand.in_all;
        wanted.is_some_and(|wanted| self.received() >= wanted)
    }

    /// Drives the outbox and settles the deliveries that it concludes.
    fn drive(&mut self, by: Option<Instant>) -> Result<(), RelayError> {
        // Clear the notification first: later changes belong to the next turn.
        self.changes.try_recv().ok();
        self.has_changed = false;
        self.wake_up = self.outbox.drive(Instant::now(), by, &mut self.fates);
        let stats = self.outbox.stats();
        // A sink that cannot be opened refuses all chunks at once; no single chunk is at fault.
        let failed = match (stats.connection, stats.last_error) {
            (Connection::Failed, Some(error)) => Some(error),
            _ => None,
        };
        let mut result = Ok(());
        for fate in self.fates.drain(..) {
            let concluded = self.ledger.conclude(fate, failed.is_some());
            result = result.and(concluded);
        }
        match failed {
            Some(error) => result.and(Err(RelayError::Sink(error))),
            None => result,
        }
    }

    /// Waits until the sink notifies of a change, or until this time.
    fn wait(&mut self, until: Instant) {
        let left = time_until(until);
        self.has_changed = self.has_changed || self.changes.recv_timeout(left).is_ok();
    }

    /// Returns `by`, or an earlier time at which the outbox must be driven.
    fn until(&self, by: Instant) -> Instant {
        self.wake_up.map_or(by, |wake_up| wake_up.min(by))
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// The first wait for the source while confirmations of the sink are missing.
const FIRST_PAUSE: Duration = Duration::from_micros(250);

/// The longest wait for the source while confirmations of the sink are missing.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The longest wait of [`Relay::run`] before it checks whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// The conditions under which [`Relay::run`] stops by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stop {
    /// The idle time after which it stops. During this time nothing came, nothing was in flight,
    /// and the source was at the end of its medium
    /// ([`ChunkReader::waits_for`](baler_common::transport::ChunkReader::waits_for)).
    pub(crate) idle_timeout: Option<Duration>,
    /// The number of received and settled chunks, repeated ones included, after which it stops.
    pub(crate) chunks: Option<u64>,
}

/// The reason why [`Relay::run`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// [`Stop::chunks`] is reached.
    Count,
    /// The source is at its end.
    End,
    /// Nothing came for [`Stop::idle_timeout`].
    IdleTimeout,
    /// `keep_going` returned false.
    Stopped,
}

impl Relay {
    /// Relays until the source ends, until a stop condition holds, or until `keep_going` returns
    /// false. `keep_going` is called before every step. A step lasts 50 ms at most, or as long as
    /// opening the sink.
    ///
    /// In the last case chunks may be in flight; [`close`](Self::close) drains them.
    ///
    /// # Errors
    ///
    /// [`RelayError`]. Chunks in flight stay in flight until [`close`](Self::close).
    pub(crate) fn run(
        &mut self,
        stop: Stop,
        mut keep_going: impl FnMut(&Self) -> bool,
    ) -> Result<Ended, RelayError> {
        self.demand.in_all = stop.chunks;
        let mut last_heard = Instant::now();
        while keep_going(self) {
            let settled = self.ledger.in_flight.is_empty();
            if settled && self.has_enough() {
                return Ok(Ended::Count);
            }
            let waited = self.is_source_waited_for();
            match self.step(Instant::now() + TICK)? {
                Step::End => return Ok(Ended::End),
                Step::Received => last_heard = Instant::now(),
                Step::Idle if !self.ledger.in_flight.is_empty() => last_heard = Instant::now(),
                Step::Idle if waited || self.is_source_waited_for() => last_heard = Instant::now(),
                Step::Idle => {
                    let idle = last_heard.elapsed();
                    if stop.idle_timeout.is_some_and(|limit| idle >= limit) {
                        return Ok(Ended::IdleTimeout);
                    }
                }
            }
        }
        Ok(Ended::Stopped)
    }

    /// Whether the source is not at its end.
    fn is_source_waited_for(&self) -> bool {
        self.ledger.counts.source_waiting.since().is_some()
    }

    /// Waits for confirmations until `by` at most; takes nothing from the source.
    fn drain(&mut self, by: Instant) -> Result<(), RelayError> {
        self.drive(Some(by))?;
        if !self.ledger.in_flight.is_empty() {
            self.wait(self.until(by));
        }
        Ok(())
    }
}

/// The divisor of the time until the deadline that is reserved for the source, which must send its
/// last acknowledgements.
const PART_FOR_SOURCE: u32 = 8;

/// The most time that is reserved for the source.
const MAX_FOR_SOURCE: Duration = Duration::from_millis(500);

/// The result of closing a relay.
#[derive(Debug)]
pub(crate) struct RelayReport {
    /// The final counts; nothing is in flight any more.
    pub(crate) stats: RelayStats,
    /// The error while draining, if there was one.
    pub(crate) error: Option<RelayError>,
    /// The source's error when it was closed, if there was one.
    pub(crate) source_error: Option<TransportError>,
    /// The sink's error when it was closed, if there was one.
    pub(crate) sink_error: Option<TransportError>,
}

impl Relay {
    /// Takes no more chunks, and waits for the confirmations of the chunks in flight until `by`.
    /// Gives the other chunks back to the source, and closes both connectors.
    ///
    /// It exceeds the deadline only as far as a connector exceeds its own.
    pub(crate) fn close(mut self, by: Instant) -> RelayReport {
        let for_source = time_until(by) / PART_FOR_SOURCE;
        let sink_by = by.checked_sub(for_source.min(MAX_FOR_SOURCE)).unwrap_or(by);
        self.ledger.reader.set_demand(0);
        let mut error = None;
        while error.is_none() && !self.ledger.in_flight.is_empty() && Instant::now() < sink_by {
            error = self.drain(sink_by).err();
        }
        let outbox = self.outbox.stats();
        let failed = outbox.connection == Connection::Failed;
        let sink_error = self.outbox.close(sink_by, &mut self.fates);
        for fate in self.fates.drain(..) {
            let concluded = self.ledger.conclude(fate, failed);
            error = error.or_else(|| concluded.err());
        }
        let mut stats = RelayStats {
            identities_made: self.identities.made(),
            outbox,
            ..self.ledger.stats()
        };
        let closed = self.ledger.reader.close(by);
        stats.source.unreported += closed.unreported;
        RelayReport {
            stats,
            error,
            source_error: closed.error,
            sink_error,
        }
    }
}
