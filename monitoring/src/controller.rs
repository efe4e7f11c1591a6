//! The handle by which an application controls its monitoring.

mod adaptive;
mod builder;
mod installed;
#[cfg(feature = "samplers")]
mod sampling;
mod settings;

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

#[cfg(doc)]
use crate::Overflow;
#[cfg(doc)]
use baler_common::container::LossReason;
use baler_common::record::{NO_TIMESTAMP, Record, RecordBatch, RecordRef, RowWriter, Schema};
use baler_common::transport::{ChunkIdentity, ChunkWriter};
use baler_connector_kieker::types::KiekerMetadataRecord;

use super::adaptive::Switch;
use super::clock::{Clock, monotonic, time_left};
use super::collector::{ControllerState, FlushOrder, ShutdownReport, Stats};
use super::queue::{self, QueueRow};
#[cfg(feature = "samplers")]
use super::samplers::Samplers;

pub use builder::ControllerBuilder;
#[cfg(unix)]
pub(crate) use installed::{InstalledHold, hold_installed, stop_recording};
pub(crate) use installed::{
    active_key, active_queues, active_shared, active_unix_ns, refresh_active,
};
pub use installed::{emit, installed, shutdown_installed};
#[cfg(feature = "samplers")]
pub(crate) use sampling::WeakController;
pub use settings::StartError;
pub(crate) use settings::{Settings, WAIT_TIME, WholeBatches};

/// How long the collector continues after the last handle was dropped without a shutdown.
const GRACE_AFTER_DROP: Duration = Duration::from_secs(5);

/// Starts, controls and ends monitoring, and takes records. A handle: clones share the collector,
/// and it can be used from any thread.
///
/// When the last handle is dropped, the collector delivers the remaining records in the background,
/// for 5 s at most. To wait for it, or to get the outcome, call [`shutdown`](Self::shutdown) or
/// keep a [`ShutdownGuard`].
///
/// Without the feature `enable` it accepts no records, starts no thread, and reports zeros.
///
/// # Fork
///
/// Threads do not survive a fork, and neither does the collector. In the child, the parent's
/// controller is disabled: it accepts no record, changes nothing, and its figures are zero.
/// [`flush`](Self::flush) and [`shutdown`](Self::shutdown) return at once and report that the
/// controller belongs to the parent. The parent delivers the queued records. No call waits for a
/// lock that a thread of the parent had. Probes in the child do nothing until it installs a
/// controller of its own, with a writer of its own. This holds for the C library's `fork`, not for
/// processes made by a bare system call. Two limits remain. A child cannot start threads if another
/// thread was just starting one through the standard library at the fork. It cannot use a record
/// type whose schema another thread was just making.
///
/// # Signals
///
/// Emitting inside a signal handler is not supported. The handler may interrupt its thread while
/// that emits a record or calls a controller. Then the handler's record is dropped and counted
/// ([`LossReason::Reentrant`]), and the interrupted record stays whole. Otherwise the record is
/// accepted like any other, which may take locks and allocate. A handler that must call code with
/// probes calls [`suppress`](crate::suppress) first. Then all its records are dropped and counted.
/// A handler must not make a call of `record = aggregated`: no check protects the sums.
///
/// # Aborts
///
/// A process that aborts, or ends by [`std::process::exit`] without a shutdown, loses undelivered
/// records: the records of up to one wait time in the queues, and the unconfirmed chunks.
#[derive(Debug, Clone)]
pub struct Controller {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<ControllerState>,
    metadata: Option<KiekerMetadataRecord>,
    hostname: Box<str>,
    identity: ChunkIdentity,
    whole: Option<WholeBatches>,
    switch: Arc<Switch>,
    #[cfg(feature = "samplers")]
    samplers: Arc<Samplers>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            return;
        }
        #[cfg(feature = "samplers")]
        self.samplers.stop();
        if let Some(by) = monotonic().checked_add(GRACE_AFTER_DROP) {
            self.shared.order_stop(by);
        }
    }
}

/// A flush failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// The collector lost records during the flush.
    #[error("{records} records were lost while flushing")]
    Lost {
        /// The number of records.
        records: u64,
    },
    /// The collector has ended, or ended meanwhile, or runs in the process from which this one was
    /// forked.
    #[error("the collector has ended, or runs in a parent process")]
    Stopped,
    /// Some records were not confirmed in time. The collector continues to deliver them.
    #[error("not everything was confirmed in time")]
    Timeout,
}

impl Controller {
    /// Sets up a controller that delivers through this writer.
    pub fn builder(writer: Box<dyn ChunkWriter>) -> ControllerBuilder {
        ControllerBuilder::new(writer)
    }

    fn new(
        shared: Arc<ControllerState>,
        metadata: Option<KiekerMetadataRecord>,
        hostname: Box<str>,
        identity: ChunkIdentity,
        whole: Option<WholeBatches>,
        switch: Arc<Switch>,
    ) -> Self {
        let handle = Handle {
            shared,
            metadata,
            hostname,
            identity,
            whole,
            switch,
            #[cfg(feature = "samplers")]
            samplers: Arc::default(),
        };
        Self {
            handle: Arc::new(handle),
        }
    }

    fn shared(&self) -> &Arc<ControllerState> {
        &self.handle.shared
    }

    /// Ends the controller before its collector was started.
    fn never_run(&self) {
        let shared = self.shared();
        shared.order_stop(monotonic());
        shared.ledger.finish(&shared.queues, true, None);
    }

    pub(crate) fn switch(&self) -> &Switch {
        &self.handle.switch
    }

    /// Emits a record; returns whether it was accepted.
    ///
    /// Its own timestamp counts, otherwise the time of the controller's clock. The calling thread
    /// only copies its fields. The overflow policy decides whether the thread may wait.
    #[inline]
    pub fn emit<R: Record>(&self, record: &R) -> bool {
        let shared = self.shared();
        if !cfg!(feature = "enable") || !shared.is_enabled() {
            return false;
        }
        let queues = &shared.queues;
        let timestamp = record.timestamp().unwrap_or_else(|| shared.clock.unix_ns());
        let find = || Some(Arc::clone(queues));
        queue::push_record(queues.key(), find, record, timestamp)
    }

    /// Emits a record as it is, even without a timestamp: for forwarding records.
    pub fn emit_as_is(&self, record: RecordRef<'_>) -> bool {
        let timestamp = record.timestamp().unwrap_or(NO_TIMESTAMP);
        self.emit_row(record.schema(), timestamp, |row| record.fields().write(row))
    }

    /// Emits the records of a batch as they are, as [`emit_as_is`](Self::emit_as_is) does for each;
    /// returns the number of accepted ones. The batches of one thread keep their order.
    ///
    /// A batch with at least half the records or bytes of a chunk, and not more than a chunk, becomes
    /// a chunk of its own without a copy of its records. The call then waits until the collector has
    /// taken the batch before. This needs a single lane, [`Overflow::Block`], and neither
    /// [`memory`](ControllerBuilder::memory) nor [`auto_chunks`](ControllerBuilder::auto_chunks).
    /// All strings of the batch are in the chunk, whether a record has them or not.
    ///
    /// Records that the same thread emits in other ways afterwards may come before the batch.
    pub fn emit_batch(&self, batch: RecordBatch) -> usize {
        let shared = self.shared();
        if !cfg!(feature = "enable") || !shared.is_enabled() {
            return 0;
        }
        if let Some(_inside) = queue::enter() {
            let records = batch.len();
            if self.handle.whole.is_some_and(|it| it.is_chunk(&batch)) {
                return match shared.queues.hand_over(batch) {
                    true => records,
                    false => 0,
                };
            }
            shared.queues.handover().wait_until_free();
        }
        let records = batch.records();
        records.filter(|record| self.emit_as_is(*record)).count()
    }

    /// Emits a record of a type known only at run time, whose fields `write` appends in the schema's
    /// order. Returns whether it was accepted.
    ///
    /// `timestamp` is in nanoseconds since the Unix epoch, or [`NO_TIMESTAMP`]. A record whose fields
    /// do not follow the schema is lost in the collector, and counted.
    pub fn emit_row(
        &self,
        schema: &Arc<Schema>,
        timestamp: i64,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> bool {
        let shared = self.shared();
        let queues = &shared.queues;
        let find = || Some(Arc::clone(queues));
        cfg!(feature = "enable")
            && shared.is_enabled()
            && queue::push(queues.key(), find, schema, timestamp, write)
    }

    /// Accepts records from now on; has no effect after a shutdown.
    ///
    /// Each time, a metadata record comes first, as in Kieker.
    pub fn enable(&self) {
        if !cfg!(feature = "enable") {
            return;
        }
        let shared = self.shared();
        if let Some(metadata) = &self.handle.metadata {
            if !shared.is_enabled() && !shared.is_forked() {
                let now = shared.clock.unix_ns();
                let mut fields = Vec::new();
                metadata.write_fields(&mut RowWriter::new(&mut fields));
                shared.queues.push_aside(&QueueRow::Record {
                    schema: KiekerMetadataRecord::schema(),
                    timestamp: now,
                    fields: &fields,
                });
            }
        }
        shared.set_enabled(true);
        refresh_active(shared);
    }

    /// Accepts no records from now on. Records that were accepted are still delivered. Refused
    /// records do not count as emitted.
    pub fn disable(&self) {
        self.shared().set_enabled(false);
        refresh_active(self.shared());
    }

    /// Whether records are accepted.
    pub fn is_enabled(&self) -> bool {
        self.shared().is_enabled()
    }

    /// Waits until the medium has confirmed everything that was emitted before.
    ///
    /// # Errors
    ///
    /// See [`FlushError`].
    pub fn flush(&self, timeout: Duration) -> Result<(), FlushError> {
        if !cfg!(feature = "enable") {
            return Ok(());
        }
        let (order, end) = FlushOrder::new();
        self.shared().order_flush(order);
        match end.wait(timeout) {
            Ok(0) => Ok(()),
            Ok(records) => Err(FlushError::Lost { records }),
            Err(RecvTimeoutError::Timeout) => Err(FlushError::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(FlushError::Stopped),
        }
    }

    /// Ends monitoring: accepts no more records, delivers the rest, closes the writer, and accounts
    /// for every record. All of this takes at most `timeout`, even if the writer hangs.
    ///
    /// Of several concurrent calls the earliest deadline counts; all return the same report.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        let shared = self.shared();
        if shared.is_forked() {
            return ShutdownReport::of_parent();
        }
        let now = monotonic();
        let by = now.checked_add(timeout).unwrap_or(now);
        // While the queues still accept their last records.
        #[cfg(feature = "samplers")]
        self.end_samplers(now, timeout);
        // The collector ends a little earlier, so that its own account arrives in time.
        let margin = (timeout / 10).min(Duration::from_millis(50));
        shared.order_stop(by.checked_sub(margin).unwrap_or(now));
        refresh_active(shared);
        shared.ledger.wait(by).unwrap_or_else(|| {
            let error = "the writer did not return before the deadline";
            shared
                .ledger
                .finish(&shared.queues, false, Some(error.into()))
        })
    }

    /// Returns the current figures.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        if shared.is_forked() {
            return Stats::default();
        }
        shared.ledger.stats(&shared.queues)
    }

    /// Returns the final report, once there is one.
    pub fn report(&self) -> Option<ShutdownReport> {
        let shared = self.shared();
        if shared.is_forked() {
            return None;
        }
        shared.ledger.report()
    }

    /// Returns the source of the time of records without a timestamp.
    pub fn clock(&self) -> &Clock {
        &self.shared().clock
    }

    /// Returns the machine's name, as it is in records.
    pub fn hostname(&self) -> &str {
        &self.handle.hostname
    }

    /// Returns producer and epoch of all chunks, and lane and sequence of the first one.
    pub fn identity(&self) -> ChunkIdentity {
        self.handle.identity
    }

    /// Returns a guard that shuts down when it is dropped.
    pub fn guard(&self, timeout: Duration) -> ShutdownGuard {
        ShutdownGuard {
            controller: self.clone(),
            timeout,
        }
    }

    /// Shuts down until a point in time; see [`shutdown`](Self::shutdown).
    pub fn shutdown_by(&self, by: Instant) -> ShutdownReport {
        self.shutdown(time_left(by))
    }
}

/// Shuts its controller down when it is dropped; keep it until the end of `main`.
///
/// A second shutdown has no effect, so a guard and an explicit [`Controller::shutdown`] can be
/// combined.
#[derive(Debug)]
#[must_use = "dropping it shuts the controller down"]
pub struct ShutdownGuard {
    controller: Controller,
    timeout: Duration,
}

impl ShutdownGuard {
    /// Shuts down now and returns the report.
    pub fn shutdown(self) -> ShutdownReport {
        self.controller.shutdown(self.timeout)
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.controller.shutdown(self.timeout);
    }
}
