//! The collector's way out: chunks to the outbox, and accounts of what became of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkDecoder, LossReason, Losses};
use baler_common::record::RecordBatch;
use baler_common::transport::{
    Chunk, Connection, ContainerKind, End, Fate, Outbox, TransportError,
};
use bytes::Bytes;

use super::encoder::{Encoder, Problem};
use super::event::{Event, Hooks, Quarantined};
use super::shared::Shared;
use super::split::{apart, halves, versions};
use super::types::ChunkTypes;
use crate::clock::monotonic;

/// Makes chunks of batches, in pieces where one would be too large, and hands them to the outbox.
///
/// What cannot be sent is put aside; everything is entered into the ledger.
pub(super) struct Dispatch {
    shared: Arc<Shared>,
    outbox: Outbox,
    encoder: Encoder,
    max_chunk_bytes: usize,
    hooks: Hooks,
    /// Whether every lane has its last chunk.
    sent_last: bool,
    /// The records of a chunk that the medium found too large went on in chunks below this ticket.
    resent_below: u64,
    types: ChunkTypes,
    fates: Vec<Fate>,
    seen: Seen,
}

/// How often dropped records are told of at most.
const TELL_DROPPED_EVERY: Duration = Duration::from_secs(1);

/// What was told to the application's hooks.
#[derive(Debug, Default)]
struct Seen {
    dropped: u64,
    /// When that was looked at.
    dropped_at: Option<Instant>,
    connection: Connection,
    broken: u64,
}

impl Dispatch {
    pub(super) fn new(
        shared: Arc<Shared>,
        outbox: Outbox,
        encoder: Encoder,
        max_chunk_bytes: usize,
        hooks: Hooks,
    ) -> Self {
        Self {
            shared,
            outbox,
            encoder,
            max_chunk_bytes,
            hooks,
            sent_last: false,
            resent_below: 0,
            types: ChunkTypes::default(),
            fates: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// Whether another chunk is welcome.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    /// Whether every chunk has its fate.
    pub(super) fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Whether the epoch's last chunk was made.
    pub(super) fn has_sent_last(&self) -> bool {
        self.sent_last
    }

    /// The ticket of the next chunk.
    pub(super) fn next_ticket(&self) -> u64 {
        self.encoder.next_ticket()
    }

    /// Whether the records of all chunks below this ticket have their fates.
    pub(super) fn has_settled(&self, below: u64) -> bool {
        let below = below.max(self.resent_below);
        self.outbox
            .first_ticket()
            .is_none_or(|first| first >= below)
    }

    /// Makes one chunk of these records and hands it to the outbox; its length in bytes.
    pub(super) fn ship(
        &mut self,
        lane: usize,
        batch: &RecordBatch,
        last: bool,
    ) -> Result<usize, Problem> {
        let (losses, limit) = (self.losses(), self.limit());
        let chunk = self.encoder.encode(lane, batch, losses, last, limit)?;
        let bytes = chunk.bytes.len();
        self.shared.ledger.encoded(bytes);
        if chunk.meta.container == ContainerKind::Kieker {
            self.types.remember(chunk.ticket, batch);
        }
        self.outbox.push(chunk, monotonic());
        Ok(bytes)
    }

    /// Makes the chunks that can be made of a batch that cannot be one.
    pub(super) fn take_apart(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: Problem,
        last: bool,
    ) {
        let mut todo = Vec::new();
        self.reduce(lane, batch, problem, &mut todo);
        while let Some(batch) = todo.pop() {
            let last = last && todo.is_empty();
            if let Err(problem) = self.ship(lane, &batch, last) {
                self.reduce(lane, batch, problem, &mut todo);
            }
        }
    }

    /// Pushes the parts that are to be tried next, the first one on top; puts the rest aside.
    fn reduce(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: Problem,
        todo: &mut Vec<RecordBatch>,
    ) {
        match problem {
            Problem::TooLarge {
                bytes,
                limit,
                chunk,
            } => {
                if batch.len() > 1
                    && let Ok((first, second)) = halves(&batch)
                {
                    self.shared.ledger.split();
                    todo.push(second);
                    todo.push(first);
                } else {
                    self.put_aside(&batch, LossReason::TooLarge, bytes, limit, chunk);
                }
            }
            Problem::Unsupported { record } => match apart(&batch, &record) {
                Ok((others, of_type)) if !of_type.is_empty() => {
                    let chunk = self.encoder.for_inspection(lane, &of_type);
                    let (size, limit) = (chunk.len(), self.limit());
                    self.put_aside(&of_type, LossReason::NotEncodable, size, limit, chunk);
                    if !others.is_empty() {
                        todo.push(others);
                    }
                }
                _ => self.put_all_aside(&batch),
            },
            Problem::Ambiguous { record } => match versions(&batch, &record) {
                Ok((first, others)) if !others.is_empty() => {
                    todo.push(others);
                    todo.push(first);
                }
                _ => self.put_all_aside(&batch),
            },
            Problem::Failed => self.put_all_aside(&batch),
            Problem::Panicked => {
                self.put_all_aside(&batch);
                self.shared.ledger.panicked();
                let (place, records) = ("the serializer", count(batch.len()));
                self.hooks.tell(&Event::Panicked { place, records });
            }
        }
    }

    fn put_all_aside(&mut self, batch: &RecordBatch) {
        let limit = self.limit();
        self.put_aside(batch, LossReason::NotEncodable, 0, limit, Bytes::new());
    }

    fn put_aside(
        &mut self,
        batch: &RecordBatch,
        reason: LossReason,
        size_bytes: usize,
        limit_bytes: usize,
        chunk: Bytes,
    ) {
        let name = batch.records().next();
        let name = name.map_or("", |record| record.schema().name());
        self.quarantine(Quarantined {
            record: name.into(),
            records: count(batch.len()),
            reason,
            size_bytes,
            limit_bytes,
            chunk,
        });
    }

    /// Counts what cannot be sent, and hands it to who wants to know.
    pub(super) fn quarantine(&mut self, quarantined: Quarantined) {
        let Quarantined {
            records, reason, ..
        } = quarantined;
        self.shared.ledger.lost(reason, records);
        self.shared.ledger.quarantined(records);
        self.hooks.tell(&Event::Quarantined(quarantined));
    }

    /// The hard cap of a chunk: ours or the medium's.
    pub(super) fn limit(&self) -> usize {
        let medium = self.outbox.capability().max_chunk_bytes.get();
        self.max_chunk_bytes.min(medium)
    }

    /// Records lost so far, before the collector and by it.
    fn losses(&self) -> Losses {
        let mut losses = self.shared.queues.counts().lost;
        for (code, records) in self.shared.ledger.losses().iter() {
            losses.add_code(code, records);
        }
        losses
    }

    /// Lets the outbox do what it can, and accounts for it.
    ///
    /// Returns when to call again at the latest; blocks until `by` at most.
    pub(super) fn drive(&mut self, now: Instant, by: Option<Instant>) -> Option<Instant> {
        let mut fates = std::mem::take(&mut self.fates);
        let wake_up = self.outbox.drive(now, by, &mut fates);
        for fate in fates.drain(..) {
            self.settle(fate);
        }
        self.fates = fates;
        self.types.forget_below(self.outbox.first_ticket());
        self.tell_connection();
        let told = self.seen.dropped_at;
        if told.is_none_or(|at| now.saturating_duration_since(at) >= TELL_DROPPED_EVERY) {
            self.seen.dropped_at = Some(now);
            self.tell_dropped();
        }
        wake_up
    }

    fn tell_dropped(&mut self) {
        let losses = self.shared.queues.counts().lost;
        let records = losses.total().saturating_sub(self.seen.dropped);
        if records > 0 {
            self.seen.dropped = losses.total();
            self.hooks.tell(&Event::Dropped { records, losses });
        }
    }

    fn tell_connection(&mut self) {
        let stats = self.outbox.stats();
        if stats.broken != self.seen.broken
            && let Some(error) = &stats.last_error
        {
            self.hooks.tell(&Event::Disconnected {
                error: Arc::clone(error),
                retries: stats.connection != Connection::Failed,
            });
        }
        let again = stats.broken != self.seen.broken;
        if stats.connection == Connection::Open
            && (again || self.seen.connection != Connection::Open)
        {
            let medium = self.outbox.capability().medium;
            self.hooks.tell(&Event::Connected { medium });
        }
        self.seen.connection = stats.connection;
        self.seen.broken = stats.broken;
        self.shared.ledger.outbox(stats);
    }

    fn settle(&mut self, Fate { chunk, end }: Fate) {
        let (reason, error) = match end {
            End::Confirmed => {
                let (records, bytes) = (chunk.meta.records, chunk.bytes.len());
                self.shared.ledger.delivered(records, bytes);
                return;
            }
            End::Spooled => {
                self.shared.ledger.spooled(chunk.meta.records);
                return;
            }
            End::TooLarge { max_chunk_bytes } => {
                self.encoder.list_as_lost(&chunk.meta.identity);
                self.split_chunk(&chunk, max_chunk_bytes);
                return;
            }
            End::Refused(error) => (LossReason::Refused, Some(error)),
            End::Undelivered(error) => (LossReason::Undelivered, error),
        };
        self.encoder.list_as_lost(&chunk.meta.identity);
        lose(&self.shared, &mut self.hooks, &chunk, reason, error);
    }

    /// Sends the records of a chunk anew, in smaller ones: the medium takes less than it said.
    fn split_chunk(&mut self, chunk: &Chunk, limit: usize) {
        let bytes = chunk.bytes.len();
        self.max_chunk_bytes = self.max_chunk_bytes.min(limit);
        let catalog = self.types.catalog_of(chunk.ticket);
        let mut decoder = ChunkDecoder::default().with_catalog(catalog);
        match decoder.decode(&chunk.bytes) {
            Ok(decoded) => {
                let problem = Problem::TooLarge {
                    bytes,
                    limit,
                    chunk: chunk.bytes.clone(),
                };
                // If it was the epoch's last, another one will be once its pieces have their fates.
                let header = decoded.summary.header;
                if header.is_some_and(|header| header.last_of_epoch) {
                    self.encoder.forget_last(&chunk.meta.identity);
                    self.sent_last = false;
                }
                let lane = usize::try_from(chunk.meta.identity.lane).unwrap_or_default();
                self.take_apart(lane, decoded.batch, problem, false);
                self.resent_below = self.next_ticket();
            }
            Err(_) => self.quarantine(Quarantined {
                record: "".into(),
                records: u64::from(chunk.meta.records),
                reason: LossReason::TooLarge,
                size_bytes: bytes,
                limit_bytes: limit,
                chunk: chunk.bytes.clone(),
            }),
        }
    }

    /// Says with an empty chunk in each lane that the epoch is over, unless one has said so.
    pub(super) fn ship_last(&mut self) {
        if !self.sent_last && self.encoder.container() == ContainerKind::Native {
            let empty = RecordBatch::default();
            for lane in self.encoder.without_last() {
                // A serializer that fails even now has nothing to say.
                self.ship(lane, &empty, true).unwrap_or_default();
            }
        }
        // Kieker's container says nothing of epochs.
        self.sent_last = true;
    }

    /// Tells of a panic and counts what was lost by it.
    pub(super) fn panicked(&mut self, place: &'static str, records: u64) {
        self.shared.ledger.panicked();
        self.shared.ledger.lost(LossReason::NotEncodable, records);
        self.hooks.tell(&Event::Panicked { place, records });
    }

    /// Closes the writer until `by` at most and makes the accounts final.
    pub(super) fn finish(mut self, by: Instant) {
        self.tell_dropped();
        let on_time = self.sent_last && self.outbox.is_empty();
        let mut stats = self.outbox.stats();
        let mut fates = Vec::new();
        let error = self.outbox.close(by, &mut fates);
        stats.connection = Connection::Closed;
        stats.in_flight_chunks = 0;
        stats.in_flight_bytes = 0;
        stats.unconfirmed_chunks = 0;
        stats.unconfirmed_bytes = 0;
        self.shared.ledger.outbox(stats);
        for Fate { chunk, end } in fates {
            let (reason, error) = match end {
                End::Confirmed => {
                    let (records, bytes) = (chunk.meta.records, chunk.bytes.len());
                    self.shared.ledger.delivered(records, bytes);
                    continue;
                }
                End::Spooled => {
                    self.shared.ledger.spooled(chunk.meta.records);
                    continue;
                }
                End::TooLarge { .. } => (LossReason::TooLarge, None),
                End::Refused(error) => (LossReason::Refused, Some(error)),
                End::Undelivered(error) => (LossReason::Undelivered, error),
            };
            lose(&self.shared, &mut self.hooks, &chunk, reason, error);
        }
        let error = error.map(|error| error.to_string().into());
        self.shared
            .ledger
            .finish(&self.shared.queues, on_time, error);
    }
}

/// Counts a chunk that was given up, and tells of it.
fn lose(
    shared: &Shared,
    hooks: &mut Hooks,
    chunk: &Chunk,
    reason: LossReason,
    error: Option<Arc<TransportError>>,
) {
    let records = chunk.meta.records;
    shared.ledger.lost(reason, u64::from(records));
    hooks.tell(&Event::Lost {
        sequence: chunk.meta.identity.sequence,
        records,
        reason,
        error,
    });
}

pub(super) fn count(records: usize) -> u64 {
    u64::try_from(records).unwrap_or(u64::MAX)
}
