//! Events that an operator should know about, in addition to the counters.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use baler_common::container::{LossReason, Losses};
use baler_common::transport::TransportError;
use bytes::Bytes;

use crate::adaptive::PatternNews;

/// Something that an operator should know about. All of it is counted as well.
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
        /// The error.
        error: Arc<TransportError>,
        /// Whether the collector will try again.
        retries: bool,
    },
    /// Records were dropped before they reached the collector: the queues were full, or a thread
    /// could not wait. Reported once a second at most.
    Dropped {
        /// Records dropped since the last report.
        records: u64,
        /// All losses of this controller so far, by reason.
        losses: Losses,
    },
    /// A chunk was given up with its records.
    Lost {
        /// Its number in the lane.
        sequence: u64,
        /// The number of its records.
        records: u32,
        /// The reason.
        reason: LossReason,
        /// The error of the medium.
        error: Option<Arc<TransportError>>,
    },
    /// A serializer or the collector itself panicked; monitoring goes on.
    Panicked {
        /// The code that panicked.
        place: &'static str,
        /// The number of records that the panic lost.
        records: u64,
    },
    /// The file of patterns was read, or could not be read, or one of its lines is wrong.
    Patterns(PatternNews),
    /// Records that cannot be sent went to quarantine.
    Quarantined(Quarantined),
    /// A sampler could not sample. Reported once until it works again.
    SamplerFailed {
        /// The name of the sampler.
        sampler: &'static str,
        /// The error.
        error: Arc<std::io::Error>,
    },
}

/// Records that cannot be sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Quarantined {
    /// The type of the record, or of the first one.
    pub record: Box<str>,
    /// The number of records.
    pub records: u64,
    /// Why they cannot be sent.
    pub reason: LossReason,
    /// What the container cannot hold, with the type and the field if it is a field; empty if the
    /// records are too large.
    pub problem: Box<str>,
    /// Their size: encoded if that was possible, otherwise as rows.
    pub size_bytes: usize,
    /// The limit.
    pub limit_bytes: usize,
    /// A chunk with these records for inspection; empty if no container can hold them.
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
        )?;
        match &*self.problem {
            "" => Ok(()),
            problem => write!(f, "; {problem}"),
        }
    }
}

/// Receives events, on the collector's thread.
pub(crate) type EventHook = Box<dyn FnMut(&Event) + Send>;

/// Receives records that cannot be sent, on the collector's thread.
pub(crate) type QuarantineHook = Box<dyn FnMut(&Quarantined) + Send>;

/// The application's hooks.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) event: Option<EventHook>,
    pub(crate) quarantine: Option<QuarantineHook>,
}

impl Hooks {
    /// Reports an event. A hook that panics is not called again.
    pub(super) fn report(&mut self, event: &Event) {
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
