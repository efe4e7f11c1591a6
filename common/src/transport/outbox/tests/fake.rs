//! A writer that follows a script.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub(super) use crate::transport::window::tests::chunk;
use crate::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Notify, Order, Outbox,
    OutboxSettings, Outcome, RejectReason, Rejected, RetryClass, RetryPolicy, TransportError,
};

/// A moment that tests count from.
#[expect(
    clippy::disallowed_methods,
    reason = "a test needs some instant to count from"
)]
pub(super) fn start() -> Instant {
    Instant::now()
}

pub(super) fn error(class: RetryClass) -> TransportError {
    TransportError::new("write to", "scripted", class, "as the test wants it")
}

/// The medium's actions on its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediumAction {
    /// Confirms the oldest chunk in flight.
    Confirm,
    /// Refuses the oldest chunk in flight, temporarily or permanently.
    Refuse(RetryClass),
    /// Refuses the newest chunk in flight temporarily: out of order.
    RefuseNewest,
    /// Breaks; the chunks in flight have arrived, or not.
    Break { arrived: bool },
    /// Breaks, and fails to open for this number of attempts.
    BreakFor { attempts: u32 },
    /// Panics when it is next offered a chunk.
    PanicOnOffer,
    /// Lets time pass.
    Wait { milliseconds: u64 },
}

#[derive(Default)]
pub(super) struct Script {
    open: bool,
    pub(super) closed_for: u32,
    pub(super) failed: Option<RetryClass>,
    panic: bool,
    /// Takes nothing, whatever the window says.
    pub(super) full: bool,
    pub(super) max_chunk_bytes: usize,
    pub(super) in_flight: Vec<u64>,
    delivery_reports: Vec<DeliveryReport>,
    /// All arrivals in order; a chunk that arrives twice is there twice.
    pub(super) arrived: Vec<u64>,
    pub(super) offered: Vec<u64>,
    pub(super) reopened: u32,
    /// Whether the owner does not wait for confirmations.
    pub(super) unawaited: bool,
}

#[derive(Clone)]
pub(super) struct Fake {
    script: Arc<Mutex<Script>>,
    pub(super) capability: Capability,
}

pub(super) struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

impl Fake {
    pub(super) fn new(window: usize) -> Self {
        let mut capability = Capability::new("scripted", Order::PerLane, Durability::Received);
        capability.window_chunks = NonZeroUsize::new(window).unwrap();
        let script = Script {
            max_chunk_bytes: usize::MAX,
            ..Script::default()
        };
        Self {
            script: Arc::new(Mutex::new(script)),
            capability,
        }
    }

    pub(super) fn outbox(&self, retry: RetryPolicy) -> Outbox {
        let settings = OutboxSettings {
            retry,
            ..OutboxSettings::default()
        };
        Outbox::new(Box::new(self.clone()), settings, Arc::new(Nobody))
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        change(&mut self.script.lock().unwrap())
    }

    pub(super) fn perform(&self, action: MediumAction) {
        self.with(|script| match action {
            MediumAction::Confirm => script.finish_oldest(Outcome::Confirmed),
            MediumAction::Refuse(class) => script.finish_oldest(Outcome::Refused(error(class))),
            MediumAction::RefuseNewest => {
                if let Some(ticket) = script.in_flight.pop() {
                    let outcome = Outcome::Refused(error(RetryClass::Retry));
                    script
                        .delivery_reports
                        .push(DeliveryReport { ticket, outcome });
                }
            }
            MediumAction::Break { arrived } => {
                if arrived {
                    let in_flight = std::mem::take(&mut script.in_flight);
                    script.arrived.extend(in_flight);
                }
                script.break_off();
            }
            MediumAction::BreakFor { attempts } => {
                script.break_off();
                script.closed_for = attempts;
            }
            MediumAction::PanicOnOffer => script.panic = true,
            MediumAction::Wait { .. } => {}
        });
    }
}

impl Script {
    fn finish_oldest(&mut self, outcome: Outcome) {
        if self.in_flight.is_empty() {
            return;
        }
        let ticket = self.in_flight.remove(0);
        if matches!(outcome, Outcome::Confirmed) {
            self.arrived.push(ticket);
        }
        self.delivery_reports
            .push(DeliveryReport { ticket, outcome });
    }

    fn break_off(&mut self) {
        self.open = false;
        self.in_flight.clear();
    }
}

impl ChunkWriter for Fake {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let panics = self.with(|script| std::mem::take(&mut script.panic));
        assert!(!panics, "as the test wants it");
        let window = self.capability.window_chunks.get();
        self.with(|script| {
            let reason = if !script.open {
                RejectReason::Broken(Box::new(error(RetryClass::Retry)))
            } else if chunk.bytes.len() > script.max_chunk_bytes {
                RejectReason::TooLarge {
                    max_chunk_bytes: script.max_chunk_bytes,
                }
            } else if script.full || script.in_flight.len() >= window {
                RejectReason::Full
            } else {
                assert!(
                    !script.in_flight.contains(&chunk.ticket),
                    "{} is in flight already",
                    chunk.ticket
                );
                script.in_flight.push(chunk.ticket);
                script.offered.push(chunk.ticket);
                return Ok(());
            };
            Err(Rejected { chunk, reason })
        })
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.with(|script| {
            out.append(&mut script.delivery_reports);
            if script.open {
                Ok(())
            } else {
                Err(error(RetryClass::Retry))
            }
        })
    }

    fn set_notify(&mut self, _: Arc<dyn Notify>) {}

    fn set_awaited(&mut self, awaited: bool) {
        self.with(|script| script.unawaited = !awaited);
    }

    fn reopen(&mut self, _: Instant) -> Result<(), TransportError> {
        self.with(|script| {
            script.break_off();
            script.delivery_reports.clear();
            script.reopened += 1;
            if let Some(class) = script.failed {
                return Err(error(class));
            }
            if script.closed_for > 0 {
                script.closed_for -= 1;
                return Err(error(RetryClass::Retry));
            }
            script.open = true;
            Ok(())
        })
    }

    fn close(self: Box<Self>, _: Instant) -> CloseReport {
        self.with(|script| CloseReport {
            delivery_reports: std::mem::take(&mut script.delivery_reports),
            unconfirmed: std::mem::take(&mut script.in_flight),
            error: None,
        })
    }
}
