//! Records to a medium through the monitoring controller, for every command that sends.
//!
//! args -> [`Shipper`] (controller, watch over the medium, signals) -> [`Report`] that adds up

mod medium_watch;
mod report;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_analysis::AnalysisError;
use baler_common::container::{Compression, NativeSerializer};
use baler_common::transport::RetryPolicy;
use baler_connector_file::spool::{SpoolRoute, SpoolWatch};
use baler_connector_kieker::container::KiekerSerializer;
use baler_monitoring::{Controller, FlushError, Overflow, StartError};
use medium_watch::MediumWatch;
use serde_json::Value;

pub(crate) use report::{
    Report, report_spool_losses, report_writer, spool_figures, spool_lost_chunks,
};

use crate::args::{ChunkRecords, ContainerChoice, DocumentFormat, OverflowChoice, ShippingArgs};
use crate::decoding;
use crate::endpoint::Writer;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::output;
use crate::patience::TargetPatience;
use crate::shutdown::{Shutdown, time_until};

/// How often the watch looks at the medium and at signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long the last chunk may take when it has no record.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The name of the stage that sends, in errors.
pub(crate) const STAGE: &str = "send";

/// A controller, with a watch over its medium and over signals.
pub(crate) struct Shipper {
    pub(crate) controller: Controller,
    medium: Arc<MediumWatch>,
    shutdown: Shutdown,
    emitting: Arc<AtomicBool>,
    /// The watching thread. It ends when the sender is dropped.
    watch: Option<(JoinHandle<()>, Sender<()>)>,
    started: Instant,
    endpoint: String,
    spool: Option<SpoolWatch>,
    overflow: OverflowChoice,
}

impl Shipper {
    /// Starts a controller over the writer as the flags ask. With `metadata`, its first record
    /// describes the producer. Its figures are part of the observation.
    ///
    /// # Errors
    ///
    /// A setting is invalid, or settings contradict each other.
    pub(crate) fn start(
        args: &ShippingArgs,
        writer: Writer,
        metadata: bool,
        observation: &Observation,
    ) -> Result<Self, Failure> {
        let medium = Arc::new(MediumWatch::new(&writer.endpoint));
        let events = Arc::clone(&medium);
        let observed = &observation.observed;
        observed.endpoint("sink", &writer.endpoint);
        let mut builder = Controller::builder(observed.tapped_writer(writer.writer))
            .application("baler")
            .metadata_record(metadata)
            .overflow(overflow(args))
            .retry(retry(args))
            .on_event(move |event| events.note(event));
        let compression = args.compression.unwrap_or(Compression::None);
        builder = match args.container {
            ContainerChoice::Kieker if compression != Compression::None => {
                return Err(Failure::configuration(format!(
                    "--compression {compression} does not go with --container kieker, which has \
                     none; use --container native"
                )));
            }
            ContainerChoice::Kieker if args.dictionary.is_some() => {
                return Err(Failure::configuration(
                    "--dictionary does not go with --container kieker, which has no compression",
                ));
            }
            ContainerChoice::Kieker => builder.serializer(KiekerSerializer::default()),
            ContainerChoice::Native => builder.serializer(native(args, compression)?),
        };
        if let Some(ChunkRecords::Fixed(records)) = args.chunk_records {
            builder = builder.chunk_records(records.get());
        }
        if let Some(bound) = args.auto_latency().map_err(Failure::configuration)? {
            builder = builder.auto_chunks(bound);
        }
        if let Some(bytes) = args.chunk_bytes {
            builder = builder.chunk_bytes(bytes.get());
        }
        if let Some(bytes) = args.max_chunk_bytes {
            builder = builder.max_chunk_bytes(bytes.get());
        }
        if let Some(time) = args.wait_time {
            builder = builder.wait_time(time);
        }
        if let Some(lanes) = args.lanes {
            builder = builder.lanes(lanes.get());
        }
        if let Some(bytes) = args.memory {
            builder = builder.memory(bytes.get());
        }
        if let Some(bytes) = args.queue_bytes {
            builder = builder.queue_bytes(bytes.get());
        }
        let controller = builder.start().map_err(|error| match error {
            StartError::Thread(_) => Failure::new(Code::Internal, error.to_string()),
            _ => Failure::configuration(error.to_string()),
        })?;
        observed.sends(&controller);
        if let Some(spool) = &writer.spool {
            observed.add(Box::new(spool.clone()));
        }
        let mut shipper = Self {
            controller,
            medium,
            shutdown: observation.shutdown.clone(),
            emitting: Arc::new(AtomicBool::new(true)),
            watch: None,
            started: Instant::now(),
            endpoint: writer.endpoint,
            spool: writer.spool,
            overflow: args.overflow,
        };
        let (spool, quiet) = (shipper.spool.clone(), observation.quiet);
        let patience = TargetPatience::new(&shipper.endpoint, Some(args.give_up), quiet, spool);
        shipper.watch = Some(shipper.watch(patience)?);
        Ok(shipper)
    }

    /// Whether to emit no more: a signal came, or the medium was given up.
    pub(crate) fn should_stop(&self) -> bool {
        self.shutdown.is_requested() || self.medium.is_given_up()
    }

    /// Waits until everything emitted is confirmed, the medium is given up, or, after a signal, the
    /// deadline is over.
    ///
    /// # Errors
    ///
    /// A record was lost, or its arrival is unknown, or the deadline came first.
    pub(crate) fn flush(&self) -> Result<(), AnalysisError> {
        loop {
            match self.controller.flush(POLL_INTERVAL * 4) {
                Ok(()) => return Ok(()),
                Err(FlushError::Timeout | FlushError::Stopped)
                    if let Some(why) = self.medium.why_given_up() =>
                {
                    return Err(AnalysisError::stage(STAGE, why));
                }
                // The watch ends the collector at the deadline.
                Err(error @ (FlushError::Timeout | FlushError::Stopped))
                    if self.shutdown.is_requested()
                        && (error == FlushError::Stopped
                            || self.shutdown.deadline() <= Instant::now()) =>
                {
                    return Err(AnalysisError::Stalled { stage: STAGE });
                }
                Err(FlushError::Timeout) => {}
                Err(error) => return Err(AnalysisError::stage(STAGE, error.to_string())),
            }
        }
    }

    /// Delivers the remaining records, and accounts for every record.
    pub(crate) fn finish(mut self) -> Report {
        self.emitting.store(false, Ordering::Release);
        let mut by = self.shutdown.deadline();
        if self.flush().is_ok() {
            if let Some(spool) = &self.spool {
                let is_given_up = || self.medium.is_given_up();
                send_on_what_is_spooled(spool, self.started, &self.shutdown, is_given_up);
            }
            // Only the end mark is left. A receiver that has all its records may be gone.
            by = self.shutdown.deadline().min(Instant::now() + CLOSE_TIMEOUT);
        }
        // The report has the records that could not be flushed.
        let report = self.controller.shutdown_by(by);
        let elapsed = self.started.elapsed();
        if let Some((watch, stop)) = self.watch.take() {
            drop(stop);
            watch.join().ok();
        }
        self.medium.report_lost(true);
        let given_up = self.medium.why_given_up();
        let spool = self.spool.as_ref().map(SpoolWatch::status);
        Report::new(
            report,
            &self.endpoint,
            elapsed,
            self.overflow,
            given_up,
            spool,
        )
    }

    /// Delivers the remaining records, ends the observation, and prints the document with the
    /// figures added. Returns the report, and the exit code of the command.
    ///
    /// # Errors
    ///
    /// As [`Report::conclude`], or something cannot be written.
    pub(crate) fn conclude(
        self,
        observation: Observation,
        format: DocumentFormat,
        mut document: Value,
    ) -> Result<(Report, Code), Failure> {
        let report = self.finish();
        let shown = observation.finish();
        output::extend(&mut document, &report.document);
        output::document(format, &document)?;
        shown?;
        let code = report.conclude()?;
        Ok((report, code))
    }

    /// Watches the medium and signals on a thread of its own. A shutdown of the controller releases
    /// threads that wait in `emit` for room that will never come.
    fn watch(&self, mut patience: TargetPatience) -> Result<(JoinHandle<()>, Sender<()>), Failure> {
        let (stop, stopped) = channel();
        let (controller, medium) = (self.controller.clone(), Arc::clone(&self.medium));
        let (shutdown, emitting) = (self.shutdown.clone(), Arc::clone(&self.emitting));
        let watch = move || {
            // After a signal, emitters get a quarter of the time to notice by themselves.
            let mut let_go_at = None;
            while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                medium.report_lost(false);
                if let Err(failure) = patience.look(&controller.stats().outbox.waiting) {
                    medium.give_up(failure.message);
                }
                if medium.is_given_up() {
                    controller.shutdown(POLL_INTERVAL);
                    return;
                }
                if shutdown.is_requested() && emitting.load(Ordering::Acquire) {
                    let left = time_until(shutdown.deadline());
                    let until = *let_go_at.get_or_insert_with(|| Instant::now() + left / 4);
                    if Instant::now() >= until {
                        controller.shutdown_by(shutdown.deadline());
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("baler-watch".to_owned());
        let watch = thread.spawn(watch).map_err(Failure::thread)?;
        Ok((watch, stop))
    }
}

/// Waits while the medium takes the chunks on disk. It does not wait for a medium that is away, but
/// a run that `started` just now gives it a moment to be found.
pub(crate) fn send_on_what_is_spooled(
    spool: &SpoolWatch,
    started: Instant,
    shutdown: &Shutdown,
    is_given_up: impl Fn() -> bool,
) {
    loop {
        let status = spool.status();
        let may_go_on = match status.route {
            SpoolRoute::Replaying => true,
            SpoolRoute::Away | SpoolRoute::Closed => started.elapsed() < CLOSE_TIMEOUT,
            SpoolRoute::Direct => false,
        };
        let is_late = shutdown.is_requested() && shutdown.deadline() <= Instant::now();
        // Before it is open, a spool does not know the chunks of an earlier run.
        let is_empty = status.route != SpoolRoute::Closed && status.stats.waiting_chunks == 0;
        if !may_go_on || is_late || is_empty || is_given_up() {
            return;
        }
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// Returns the serializer of Baler's own container, compressed as the flags ask.
fn native(args: &ShippingArgs, compression: Compression) -> Result<NativeSerializer, Failure> {
    let serializer = match (&args.dictionary, compression) {
        (None, compression) => NativeSerializer::new(compression),
        (Some(path), Compression::Zstd { level }) => {
            NativeSerializer::with_dictionary(level, &decoding::read(path)?)
        }
        (Some(_), other) => {
            return Err(Failure::configuration(format!(
                "--dictionary is one of zstd and does not go with --compression {other}; use zstd, \
                 or zstd:1 to zstd:22"
            )));
        }
    };
    serializer.map_err(|error| Failure::configuration(error.to_string()))
}

fn retry(args: &ShippingArgs) -> RetryPolicy {
    let mut retry = RetryPolicy::default();
    retry.max_delay = args.retry_max_delay;
    retry.max_elapsed = args.retry_max_elapsed;
    retry.max_attempts = args.retry_max_attempts.map(NonZeroU32::get);
    // Senders that lost the same broker must not reconnect in step.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |time| time.subsec_nanos());
    retry.seed = u64::from(std::process::id()) << 32 | u64::from(nanos);
    retry
}

fn overflow(args: &ShippingArgs) -> Overflow {
    match args.overflow {
        OverflowChoice::Block => Overflow::Block,
        OverflowChoice::BlockWithTimeout => Overflow::BlockTimeout(args.block_timeout),
        OverflowChoice::DropNewest => Overflow::DropNewest,
        OverflowChoice::DropOldest => Overflow::DropOldest,
    }
}
