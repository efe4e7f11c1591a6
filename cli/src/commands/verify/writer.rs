//! A writer that reports the fate of every chunk, before its owner learns it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::container::{ChunkDecoder, Limits};
use baler_common::transport::{
    Capability, Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, CloseReport, ContainerKind,
    DeliveryReport, Epoch, Notify, Outcome, Probes, ProducerId, RejectReason, Rejected,
    TransportError, WriterStats,
};

use super::messages::{Event, tell};
use super::records::{Numbered, runs};

/// Foreign bytes to send among the chunks. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct PoisonQueue {
    waiting: Arc<Mutex<VecDeque<Vec<u8>>>>,
    /// The number of pieces that are not confirmed yet, including the waiting ones.
    open: Arc<AtomicU64>,
}

impl PoisonQueue {
    /// Appends foreign bytes, which go with the next chunk.
    pub(super) fn push(&self, bytes: Vec<u8>) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.lock().push_back(bytes);
    }

    /// Whether everything was confirmed or refused.
    pub(super) fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports each chunk to the oracle: before its first offer, and after its confirmation before the
/// owner learns it.
///
/// It gives the chunks tickets of its own, so that foreign bytes can go among them.
pub(super) struct RecordingWriter {
    inner: Box<dyn ChunkWriter>,
    records: Records,
}

/// The state of the chunks that pass through.
struct Records {
    seed: u64,
    decoder: ChunkDecoder,
    /// The chunks and foreign bytes that the inner writer has, by its tickets.
    in_flight: HashMap<u64, InFlight>,
    next_ticket: u64,
    /// The owner's tickets of chunks that were offered and are neither confirmed nor refused.
    offered: HashSet<u64>,
    poison: PoisonQueue,
}

enum InFlight {
    /// A chunk, by its owner's ticket.
    Chunk(u64),
    Poison(Vec<u8>),
}

impl RecordingWriter {
    /// Creates a writer that reports everything it passes to `inner`.
    pub(super) fn new(inner: Box<dyn ChunkWriter>, seed: u64, poison: PoisonQueue) -> Self {
        let records = Records {
            seed,
            decoder: baler::decoder(Limits::default()),
            in_flight: HashMap::new(),
            next_ticket: 0,
            offered: HashSet::new(),
            poison,
        };
        Self { inner, records }
    }
}

impl Records {
    /// Reports the records of a chunk at its first offer.
    fn announce(&mut self, chunk: &Chunk) {
        if !self.offered.insert(chunk.ticket) {
            return;
        }
        let mut offered = Vec::new();
        if let Ok(decoded) = self.decoder.decode(&chunk.bytes) {
            (offered, _) = runs(self.seed, decoded.batch.read::<Numbered>().flatten());
        }
        tell(&Event::Offered {
            chunk: chunk.ticket,
            runs: offered,
        });
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Sends the waiting foreign bytes, as far as the medium accepts them.
    fn send_poison(&mut self, inner: &mut dyn ChunkWriter) -> Result<(), RejectReason> {
        loop {
            let Some(bytes) = self.poison.lock().pop_front() else {
                return Ok(());
            };
            let ticket = self.ticket();
            let process = std::process::id();
            let identity = ChunkIdentity {
                producer: ProducerId::new(0xbad0_0000 | u128::from(process) << 32),
                epoch: Epoch {
                    start_unix_ns: self.seed,
                    random: process,
                },
                lane: 0,
                sequence: ticket,
            };
            let chunk = Chunk {
                ticket,
                meta: ChunkMeta {
                    container: ContainerKind::Native,
                    records: 1,
                    identity,
                },
                bytes: bytes.clone().into(),
            };
            if let Err(rejected) = inner.offer(chunk) {
                self.poison.lock().push_front(bytes);
                return Err(rejected.reason);
            }
            self.in_flight.insert(ticket, InFlight::Poison(bytes));
        }
    }

    /// Reports the outcome of a chunk. Returns it with the owner's ticket, or `None` for foreign
    /// bytes.
    fn confirmed(&mut self, confirmation: DeliveryReport) -> Option<DeliveryReport> {
        let DeliveryReport { ticket, outcome } = confirmation;
        let is_lost = matches!(&outcome, Outcome::Refused(error) if !error.is_retryable());
        let is_safe = matches!(outcome, Outcome::Confirmed | Outcome::Spooled);
        match self.in_flight.remove(&ticket)? {
            InFlight::Poison(bytes) => {
                if !is_safe && !is_lost {
                    self.poison.lock().push_back(bytes);
                    return None;
                }
                if is_safe {
                    tell(&Event::Poisoned { bytes });
                }
                self.poison.open.fetch_sub(1, Ordering::AcqRel);
                None
            }
            InFlight::Chunk(chunk) => {
                if is_safe {
                    let spooled = matches!(outcome, Outcome::Spooled);
                    tell(&Event::Acknowledged { chunk, spooled });
                } else if is_lost {
                    tell(&Event::Refused { chunk });
                }
                if is_safe || is_lost {
                    self.offered.remove(&chunk);
                }
                Some(DeliveryReport {
                    ticket: chunk,
                    outcome,
                })
            }
        }
    }

    /// Forgets the chunks of the inner writer, whose fate is unknown. Foreign bytes are queued
    /// again here; the owner sends its chunks again.
    fn forget(&mut self) {
        let in_flight = self.in_flight.drain().filter_map(|(_, sent)| match sent {
            InFlight::Poison(bytes) => Some(bytes),
            InFlight::Chunk(_) => None,
        });
        self.poison.lock().extend(in_flight);
    }
}

impl ChunkWriter for RecordingWriter {
    fn capability(&self) -> &Capability {
        self.inner.capability()
    }

    fn offer(&mut self, mut chunk: Chunk) -> Result<(), Rejected> {
        self.records.announce(&chunk);
        if let Err(reason) = self.records.send_poison(&mut *self.inner) {
            return Err(Rejected { chunk, reason });
        }
        let theirs = chunk.ticket;
        chunk.ticket = self.records.ticket();
        let sent = (chunk.ticket, InFlight::Chunk(theirs));
        match self.inner.offer(chunk) {
            Ok(()) => {
                self.records.in_flight.extend([sent]);
                Ok(())
            }
            Err(mut rejected) => {
                rejected.chunk.ticket = theirs;
                Err(rejected)
            }
        }
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let mut delivery_reports = Vec::new();
        let result = self.inner.delivery_reports(&mut delivery_reports);
        let delivery_reports = delivery_reports.into_iter();
        out.extend(delivery_reports.filter_map(|it| self.records.confirmed(it)));
        result
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.inner.set_notify(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        self.inner.set_probes(probes);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.inner.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.records.forget();
        self.inner.reopen(by)
    }

    fn stats(&self) -> WriterStats {
        self.inner.stats()
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        let Self { inner, mut records } = *self;
        let mut report = inner.close(by);
        let delivery_reports = report.delivery_reports.into_iter();
        report.delivery_reports = delivery_reports
            .filter_map(|it| records.confirmed(it))
            .collect();
        let owners = |ticket| match records.in_flight.get(ticket) {
            Some(InFlight::Chunk(theirs)) => Some(*theirs),
            Some(InFlight::Poison(_)) | None => None,
        };
        report.unconfirmed = report.unconfirmed.iter().filter_map(owners).collect();
        report
    }
}
