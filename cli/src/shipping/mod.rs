//! Records to a medium through the monitoring controller, for every command that sends.
//!
//! args -> [`Shipper`] (controller, watch over the link, signals) -> [`Report`] that adds up

mod link;
mod report;
mod spool;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::container::{Compression, KiekerSerializer, NativeSerializer};
use baler_monitoring::{Controller, FlushError, Overflow, StartError};
use baler_spool::SpoolWatch;
use link::Link;

pub(crate) use report::Report;
pub(crate) use spool::SpoolFigures;

use crate::args::{ContainerChoice, OverflowChoice, ShippingArgs};
use crate::endpoint::Writer;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::shutdown::Shutdown;

/// How often the watch looks at the link and at signals.
const TICK: Duration = Duration::from_millis(50);

/// How long the last chunk may take when it has no record.
const FAREWELL: Duration = Duration::from_secs(1);

/// A controller whose medium and whose end are watched.
#[derive(Debug)]
pub(crate) struct Shipper {
    controller: Controller,
    link: Arc<Link>,
    shutdown: Shutdown,
    emitting: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
    started: Instant,
    endpoint: String,
    spool: Option<SpoolWatch>,
    overflow: OverflowChoice,
}

impl Shipper {
    /// Starts a controller over the writer as the flags say; `metadata` makes its first record one
    /// that tells of the producer. Its figures are part of the observation.
    ///
    /// # Errors
    ///
    /// Settings that cannot be, or do not go together.
    pub(crate) fn start(
        args: &ShippingArgs,
        writer: Writer,
        metadata: bool,
        shutdown: &Shutdown,
        observation: &Observation,
    ) -> Result<Self, Failure> {
        let link = Arc::new(Link::new(args.give_up));
        let events = Arc::clone(&link);
        let observed = observation.observed();
        observed.endpoint("sink", &writer.endpoint);
        let mut builder = Controller::builder(observation.tapped_writer(writer.writer))
            .application("baler")
            .metadata_record(metadata)
            .overflow(overflow(args))
            .on_event(move |event| events.told(event));
        builder = match args.container {
            ContainerChoice::Kieker if args.compression != Compression::None => {
                return Err(Failure::configuration(format!(
                    "--compression {} does not go with --container kieker, which has none; use \
                     --container native",
                    args.compression
                )));
            }
            ContainerChoice::Kieker => builder.serializer(KiekerSerializer::default()),
            ContainerChoice::Native => builder.serializer(
                NativeSerializer::new(args.compression)
                    .map_err(|error| Failure::configuration(error.to_string()))?,
            ),
        };
        if let Some(records) = args.chunk_records {
            builder = builder.chunk_records(records.get());
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
        let mut shipper = Self {
            controller,
            link,
            shutdown: shutdown.clone(),
            emitting: Arc::new(AtomicBool::new(true)),
            watch: None,
            started: Instant::now(),
            endpoint: writer.endpoint,
            spool: writer.spool,
            overflow: args.overflow,
        };
        shipper.watch = Some(shipper.watch()?);
        Ok(shipper)
    }

    /// The controller.
    pub(crate) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Whether to emit no more: a signal came, or the medium was given up.
    pub(crate) fn should_stop(&self) -> bool {
        self.shutdown.is_requested() || self.link.is_given_up()
    }

    /// Waits until everything emitted is confirmed, the medium is given up, or, after a signal,
    /// the deadline.
    ///
    /// # Errors
    ///
    /// Something was lost, or it is not known whether it arrived.
    pub(crate) fn flush(&self) -> Result<(), String> {
        loop {
            match self.controller.flush(TICK * 4) {
                Ok(()) => return Ok(()),
                Err(FlushError::Timeout) if self.link.is_given_up() => {
                    return Err(self.unreachable());
                }
                Err(FlushError::Timeout)
                    if self.shutdown.is_requested()
                        && self.shutdown.deadline() <= Instant::now() =>
                {
                    return Err("the deadline came before everything was confirmed".to_owned());
                }
                Err(FlushError::Timeout) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Delivers what there is and accounts for every record.
    pub(crate) fn finish(mut self) -> Report {
        self.emitting.store(false, Ordering::Release);
        let mut by = self.shutdown.deadline();
        if self.flush().is_ok() {
            // Only the mark of the end is left: a receiver that has what it wanted may be gone.
            by = by.min(Instant::now() + FAREWELL);
        }
        // What could not be flushed is in the report.
        let report = self.controller.shutdown_by(by);
        let elapsed = self.started.elapsed();
        self.link.end();
        if let Some(watch) = self.watch.take() {
            watch.join().ok();
        }
        let unreachable = self.link.is_given_up().then(|| self.unreachable());
        let spool = self
            .spool
            .as_ref()
            .map(|spool| SpoolFigures::new(&spool.status()));
        Report::new(&report, &self.endpoint, elapsed, self.overflow, unreachable).with_spool(spool)
    }

    fn unreachable(&self) -> String {
        format!(
            "gave up on {}: {}",
            self.endpoint,
            self.link
                .last_error()
                .unwrap_or_else(|| "no reason was told".to_owned())
        )
    }

    /// Watches over the link and signals on a thread of its own: threads that wait in `emit` for
    /// room that will never be there are let go by a shutdown of the controller.
    fn watch(&self) -> Result<JoinHandle<()>, Failure> {
        let (controller, link) = (self.controller.clone(), Arc::clone(&self.link));
        let (shutdown, emitting) = (self.shutdown.clone(), Arc::clone(&self.emitting));
        let watch = move || {
            // After a signal, emitters get a quarter of the time to notice by themselves.
            let mut patience = None;
            while !link.is_ended() {
                link.wait(TICK);
                if link.judge() {
                    controller.shutdown(TICK);
                    return;
                }
                if shutdown.is_requested() && emitting.load(Ordering::Acquire) {
                    let left = shutdown
                        .deadline()
                        .saturating_duration_since(Instant::now());
                    let until = *patience.get_or_insert_with(|| Instant::now() + left / 4);
                    if Instant::now() >= until {
                        controller.shutdown_by(shutdown.deadline());
                        return;
                    }
                }
            }
        };
        thread::Builder::new()
            .name("baler-watch".to_owned())
            .spawn(watch)
            .map_err(|error| {
                Failure::new(Code::Internal, format!("cannot start a thread: {error}"))
            })
    }
}

fn overflow(args: &ShippingArgs) -> Overflow {
    match args.overflow {
        OverflowChoice::Block => Overflow::Block,
        OverflowChoice::BlockWithTimeout => Overflow::BlockTimeout(args.block_timeout),
        OverflowChoice::DropNewest => Overflow::DropNewest,
        OverflowChoice::DropOldest => Overflow::DropOldest,
    }
}
