//! A writer that tells what becomes of every chunk, before its owner learns of it.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use baler_common::container::ChunkDecoder;
use baler_common::transport::{
    Capability, Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, CloseReport, Confirmation,
    ContainerKind, Epoch, Notify, Outcome, ProducerId, RejectReason, Rejected, TransportError,
    WriterStats,
};
use bytes::Bytes;

use super::event::{Event, Run};
use super::numbered::{Checked, Numbered};

/// Where a process tells its events; clones share.
#[derive(Debug, Clone)]
pub(super) struct EventPipe {
    pipe: Arc<Mutex<File>>,
}

impl EventPipe {
    /// Tells on standard output.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn stdout() -> io::Result<Self> {
        let pipe = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            pipe: Arc::new(Mutex::new(File::from(pipe))),
        })
    }

    /// Tells an event. When nobody listens any more, the process has lost its purpose and ends.
    pub(super) fn tell(&self, event: &Event) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if event.write(&mut *pipe).is_err() {
            std::process::exit(1);
        }
    }
}

/// Foreign bytes to be sent among the chunks; clones share.
#[derive(Debug, Clone, Default)]
pub(super) struct PoisonQueue {
    waiting: Arc<Mutex<VecDeque<Vec<u8>>>>,
    /// Those that are not confirmed yet, the waiting ones included.
    open: Arc<AtomicU64>,
}

impl PoisonQueue {
    /// Appends foreign bytes; they go with the next chunk.
    pub(super) fn push(&self, bytes: Vec<u8>) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.lock().push_back(bytes);
    }

    /// Whether everything was confirmed.
    pub(super) fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the oracle of each chunk: before it is offered for the first time, and, when the medium has
/// confirmed it, before the owner knows.
///
/// It gives the chunks tickets of its own, so that foreign bytes can go among them.
pub(super) struct RecordingWriter {
    inner: Box<dyn ChunkWriter>,
    records: Records,
}

/// What is known of the chunks that go through.
struct Records {
    events: EventPipe,
    seed: u64,
    decoder: ChunkDecoder,
    /// What the inner writer has, by its ticket.
    sent: HashMap<u64, Sent>,
    next_ticket: u64,
    /// What was announced and has no end, by the owner's ticket.
    announced: HashMap<u64, ChunkIdentity>,
    poison: PoisonQueue,
    poisons: u64,
}

#[derive(Debug)]
enum Sent {
    Chunk(u64),
    Poison(Vec<u8>),
}

impl RecordingWriter {
    /// Tells of everything that goes through it to `inner`.
    pub(super) fn new(
        inner: Box<dyn ChunkWriter>,
        seed: u64,
        events: EventPipe,
        poison: PoisonQueue,
    ) -> Self {
        let records = Records {
            events,
            seed,
            decoder: ChunkDecoder::default(),
            sent: HashMap::new(),
            next_ticket: 0,
            announced: HashMap::new(),
            poison,
            poisons: 0,
        };
        Self { inner, records }
    }
}

impl Records {
    fn announce(&mut self, chunk: &Chunk) {
        if self.announced.contains_key(&chunk.ticket) {
            return;
        }
        let identity = chunk.meta.identity;
        let mut runs = Vec::new();
        if let Ok(decoded) = self.decoder.decode(&chunk.bytes) {
            for record in decoded.batch.read::<Numbered>().flatten() {
                if let Checked::Sound(stream, number) = record.check(self.seed) {
                    Run::append(&mut runs, stream, number);
                }
            }
            self.decoder.reuse(decoded.batch);
        }
        self.announced.insert(chunk.ticket, identity);
        self.events.tell(&Event::Offered { identity, runs });
    }

    fn ticket(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket = ticket.saturating_add(1);
        ticket
    }

    /// Sends the foreign bytes that wait, as far as the medium takes them.
    fn send_poison(&mut self, inner: &mut dyn ChunkWriter) -> Result<(), RejectReason> {
        loop {
            let Some(bytes) = self.poison.lock().pop_front() else {
                return Ok(());
            };
            let ticket = self.ticket();
            self.poisons = self.poisons.saturating_add(1);
            let chunk = Chunk {
                ticket,
                meta: ChunkMeta {
                    container: ContainerKind::Native,
                    records: 1,
                    identity: ChunkIdentity {
                        producer: ProducerId::new(
                            0xbad0_0000 | u128::from(std::process::id()) << 32,
                        ),
                        epoch: Epoch {
                            start_unix_ns: self.seed,
                            random: std::process::id(),
                        },
                        lane: 0,
                        sequence: self.poisons,
                    },
                },
                bytes: Bytes::copy_from_slice(&bytes),
            };
            match inner.offer(chunk) {
                Ok(()) => {
                    self.sent.insert(ticket, Sent::Poison(bytes));
                }
                Err(rejected) => {
                    self.poison.lock().push_front(bytes);
                    return Err(rejected.reason);
                }
            }
        }
    }

    /// Tells what became of a chunk, and names it as its owner does; nothing if it was poison.
    fn confirmed(&mut self, confirmation: Confirmation) -> Option<Confirmation> {
        let Confirmation { ticket, outcome } = confirmation;
        match self.sent.remove(&ticket)? {
            Sent::Poison(bytes) => {
                match outcome {
                    Outcome::Confirmed | Outcome::Spooled => {
                        self.events.tell(&Event::Poisoned { bytes });
                        self.poison.open.fetch_sub(1, Ordering::AcqRel);
                    }
                    Outcome::Refused(error) if error.is_retryable() => {
                        self.poison.lock().push_back(bytes);
                    }
                    Outcome::Refused(_) => {
                        self.poison.open.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                None
            }
            Sent::Chunk(ticket) => {
                match (&outcome, self.announced.get(&ticket).copied()) {
                    (Outcome::Confirmed | Outcome::Spooled, Some(identity)) => {
                        let spooled = matches!(outcome, Outcome::Spooled);
                        self.events.tell(&Event::Acknowledged { identity, spooled });
                        self.announced.remove(&ticket);
                    }
                    (Outcome::Refused(error), Some(identity)) if !error.is_retryable() => {
                        self.events.tell(&Event::Refused { identity });
                        self.announced.remove(&ticket);
                    }
                    _ => {}
                }
                Some(Confirmation { ticket, outcome })
            }
        }
    }

    /// What the inner writer has is in doubt: foreign bytes go again, chunks come again by
    /// themselves.
    fn forget(&mut self) {
        let mut sent: Vec<_> = self.sent.drain().collect();
        sent.sort_unstable_by_key(|(ticket, _)| std::cmp::Reverse(*ticket));
        let mut waiting = self.poison.lock();
        for (_, sent) in sent {
            if let Sent::Poison(bytes) = sent {
                waiting.push_front(bytes);
            }
        }
    }
}

impl ChunkWriter for RecordingWriter {
    fn capability(&self) -> &Capability {
        self.inner.capability()
    }

    fn offer(&mut self, mut chunk: Chunk) -> Result<(), Rejected> {
        self.records.announce(&chunk);
        if let Err(reason) = self.records.send_poison(&mut *self.inner) {
            if matches!(reason, RejectReason::TooLarge { .. }) {
                // Shorter than any medium's limit; if not, it is not sent.
                self.records.poison.lock().clear();
            } else {
                return Err(Rejected { chunk, reason });
            }
        }
        let theirs = chunk.ticket;
        let ours = self.records.ticket();
        chunk.ticket = ours;
        match self.inner.offer(chunk) {
            Ok(()) => {
                self.records.sent.insert(ours, Sent::Chunk(theirs));
                Ok(())
            }
            Err(mut rejected) => {
                rejected.chunk.ticket = theirs;
                Err(rejected)
            }
        }
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        let mut confirmations = Vec::new();
        let result = self.inner.confirmations(&mut confirmations);
        for confirmation in confirmations {
            out.extend(self.records.confirmed(confirmation));
        }
        result
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.inner.set_notify(notify);
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
        let report = inner.close(by);
        let mut confirmations = Vec::new();
        for confirmation in report.confirmations {
            confirmations.extend(records.confirmed(confirmation));
        }
        let tickets = report.unconfirmed.iter();
        let unconfirmed = tickets.filter_map(|ticket| match records.sent.get(ticket) {
            Some(Sent::Chunk(theirs)) => Some(*theirs),
            Some(Sent::Poison(_)) | None => None,
        });
        CloseReport {
            confirmations,
            unconfirmed: unconfirmed.collect(),
            error: report.error,
        }
    }
}
