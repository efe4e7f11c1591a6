//! What an operator should hear of, beside the counters.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use baler_common::container::{LossReason, Losses};
use baler_common::transport::TransportError;
use bytes::Bytes;

use crate::adaptive::PatternNews;

/// Something that an operator should hear of. Everything is counted as well.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The writer was opened, for the first time or again.
    Connected {
        /// The medium.
        medium: &'static str,
    },
    /// The connection broke or could not be made.
    Disconnected {
        /// Why.
        error: Arc<TransportError>,
        /// Whether it will be tried again.
        retries: bool,
    },
    /// Records were dropped before the collector had them: the queues were full, or a thread could
    /// not wait. Told once a second at most.
    Dropped {
        /// How many since the last time.
        records: u64,
        /// All of this controller's life, by reason.
        losses: Losses,
    },
    /// A chunk was given up with its records.
    Lost {
        /// Its number in the lane.
        sequence: u64,
        /// How many records were in it.
        records: u32,
        /// Why.
        reason: LossReason,
        /// What the medium said.
        error: Option<Arc<TransportError>>,
    },
    /// A serializer or the collector itself panicked; monitoring goes on.
    Panicked {
        /// In what.
        place: &'static str,
        /// How many records were lost by it.
        records: u64,
    },
    /// The file of patterns was read, or could not be, or a line of it is wrong.
    Patterns(PatternNews),
    /// Records that cannot be sent were put aside.
    Quarantined(Quarantined),
    /// A sampler could not sample. Told once until it works again.
    SamplerFailed {
        /// Which.
        sampler: &'static str,
        /// Why.
        error: Arc<std::io::Error>,
    },
}

/// Records that cannot be sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Quarantined {
    /// The type of the (first) record.
    pub record: Box<str>,
    /// How many records.
    pub records: u64,
    /// Why they cannot be sent.
    pub reason: LossReason,
    /// How large they are: encoded if they could be, else as rows.
    pub size_bytes: usize,
    /// What would have been allowed.
    pub limit_bytes: usize,
    /// A chunk that holds them and can be inspected; empty if no container can.
    pub chunk: Bytes,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { medium } => write!(f, "connected to {medium}"),
            Self::Disconnected { error, retries } => {
                let then = if *retries { "will retry" } else { "given up" };
                write!(f, "{error} ({then})")
            }
            Self::Dropped { records, losses } => {
                let all = losses.total();
                write!(
                    f,
                    "{records} records dropped before collection, {all} in all"
                )
            }
            Self::Lost {
                sequence,
                records,
                reason,
                error,
            } => {
                write!(f, "chunk {sequence} with {records} records lost ({reason})")?;
                match error {
                    Some(error) => write!(f, ": {error}"),
                    None => Ok(()),
                }
            }
            Self::Panicked { place, records } => {
                write!(f, "panic in {place}, {records} records lost")
            }
            Self::Patterns(news) => fmt::Display::fmt(news, f),
            Self::Quarantined(quarantined) => fmt::Display::fmt(quarantined, f),
            Self::SamplerFailed { sampler, error } => {
                write!(f, "sampler {sampler} failed: {error}")
            }
        }
    }
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of type {} put aside ({}): {} bytes, limit {}",
            self.records, self.record, self.reason, self.size_bytes, self.limit_bytes
        )
    }
}

/// Told of events, on the collector's thread.
pub(crate) type EventHook = Box<dyn FnMut(&Event) + Send>;

/// Takes what cannot be sent, on the collector's thread.
pub(crate) type QuarantineHook = Box<dyn FnMut(&Quarantined) + Send>;

/// The application's hooks.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) event: Option<EventHook>,
    pub(crate) quarantine: Option<QuarantineHook>,
}

impl Hooks {
    /// Tells of an event. A hook that panics is not called again.
    pub(super) fn tell(&mut self, event: &Event) {
        if let (Event::Quarantined(quarantined), Some(hook)) = (event, &mut self.quarantine) {
            if catch_unwind(AssertUnwindSafe(|| hook(quarantined))).is_err() {
                self.quarantine = None;
            }
        }
        if let Some(hook) = &mut self.event {
            if catch_unwind(AssertUnwindSafe(|| hook(event))).is_err() {
                self.event = None;
            }
        }
    }
}
