//! Passes chunks to the outbox, and accounts for their fates.
//!
//! Next: `encoder`, which makes the bytes of a chunk, and `Outbox` in `baler_common::transport`, which hands
//! chunks to the writer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::container::{LossReason, Losses};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::RecordBatch;
use baler_common::transport::{Chunk, Connection, ContainerKind, End, Fate, Outbox};
use bytes::Bytes;

use super::closing::ClosedBy;
use super::controller_state::ControllerState;
use super::encoder::{EncodeProblem, Encoder};
use super::event::{Event, Hooks, Quarantined};
use super::splitting::{ChunkTypes, apart, halves, versions};
use crate::clock::monotonic;

/// Makes chunks of batches, and drives the outbox that holds them.
///
/// Records that cannot be sent go to quarantine. The ledger accounts for every record.
pub(super) struct Dispatch {
    pub(super) shared: Arc<ControllerState>,
    pub(super) outbox: Outbox,
    pub(super) encoder: Encoder,
    pub(super) max_chunk_bytes: usize,
    /// The application's callbacks.
    pub(super) hooks: Hooks,
    /// Whether every lane has its last chunk.
    pub(super) sent_last: bool,
    /// All pieces of chunks that were too large for the medium have tickets below this one.
    resent_below: u64,
    pub(super) types: ChunkTypes,
    fates: Vec<Fate>,
    seen: ReportedEvents,
}

/// The shortest time between two reports of dropped records.
const REPORT_DROPPED_EVERY: Duration = Duration::from_secs(1);

/// The reports already made to the application's hooks.
#[derive(Debug, Default)]
struct ReportedEvents {
    dropped: u64,
    /// When dropped records were last reported.
    dropped_at: Option<Instant>,
    connection: Connection,
    broken: u64,
}

impl Dispatch {
    pub(super) fn new(
        shared: Arc<ControllerState>,
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
            seen: ReportedEvents::default(),
        }
    }

    /// Whether the records of all chunks below this ticket have their fates.
    pub(super) fn has_settled(&self, below: u64) -> bool {
        let below = below.max(self.resent_below);
        self.outbox
            .first_ticket()
            .is_none_or(|first| first >= below)
    }

    /// Makes one chunk of these records and passes it to the outbox; returns its length in bytes.
    pub(super) fn ship(
        &mut self,
        lane: usize,
        batch: &RecordBatch,
        closed_by: ClosedBy,
        last: bool,
    ) -> Result<usize, EncodeProblem> {
        let (losses, limit) = (self.losses(), self.limit());
        let chunk = self.encoder.encode(lane, batch, losses, last, limit)?;
        let bytes = chunk.bytes.len();
        self.shared.ledger.encoded(bytes, closed_by);
        if chunk.meta.container != ContainerKind::Native {
            self.types.remember(chunk.ticket, batch);
        }
        self.outbox.push(chunk, monotonic());
        Ok(bytes)
    }

    /// Sends an empty chunk in each lane that marks the end of the epoch, unless a chunk has done
    /// so.
    pub(super) fn ship_last(&mut self) {
        if !self.sent_last && self.encoder.container() == ContainerKind::Native {
            let empty = RecordBatch::default();
            for lane in self.encoder.without_last() {
                // If the serializer fails even here, nothing more can be sent.
                self.ship(lane, &empty, ClosedBy::Flush, true).ok();
            }
        }
        // Kieker's container has no mark for the end of an epoch.
        self.sent_last = true;
    }

    /// The hard limit of a chunk's size: ours or the medium's, whichever is lower.
    pub(super) fn limit(&self) -> usize {
        let medium = self.outbox.capability().max_chunk_bytes.get();
        self.max_chunk_bytes.min(medium)
    }

    /// Records lost so far, before they reached the collector and in it.
    fn losses(&self) -> Losses {
        let mut losses = self.shared.queues.counts().lost;
        for (code, records) in self.shared.ledger.losses().iter() {
            losses.add_code(code, records);
        }
        losses
    }

    /// Drives the outbox, and accounts for the fates of its chunks.
    ///
    /// Returns when to call again at the latest. Blocks until `by` at most.
    pub(super) fn drive(&mut self, now: Instant, by: Option<Instant>) -> Option<Instant> {
        let mut fates = std::mem::take(&mut self.fates);
        let wake_up = self.outbox.drive(now, by, &mut fates);
        for fate in fates.drain(..) {
            self.take_fate(fate);
        }
        self.fates = fates;
        self.types.forget_below(self.outbox.first_ticket());
        self.report_connection();
        let reported = self.seen.dropped_at;
        if reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORT_DROPPED_EVERY) {
            self.seen.dropped_at = Some(now);
            self.report_dropped();
        }
        wake_up
    }

    fn report_dropped(&mut self) {
        let losses = self.shared.queues.counts().lost;
        let records = losses.total() - self.seen.dropped;
        if records > 0 {
            self.seen.dropped = losses.total();
            self.hooks.report(&Event::Dropped { records, losses });
        }
    }

    fn report_connection(&mut self) {
        let stats = self.outbox.stats();
        if stats.broken != self.seen.broken {
            if let Some(error) = &stats.last_error {
                self.hooks.report(&Event::Disconnected {
                    error: Arc::clone(error),
                    retries: stats.connection != Connection::Failed,
                });
            }
        }
        let again = stats.broken != self.seen.broken;
        if stats.connection == Connection::Open
            && (again || self.seen.connection != Connection::Open)
        {
            let medium = self.outbox.capability().medium;
            self.hooks.report(&Event::Connected { medium });
        }
        self.seen.connection = stats.connection;
        self.seen.broken = stats.broken;
        self.shared.ledger.outbox(stats);
    }

    /// Reports a panic and counts the records that it lost.
    pub(super) fn panicked(&mut self, place: &'static str, records: u64) {
        self.shared.ledger.panicked();
        self.shared.ledger.lost(LossReason::NotEncodable, records);
        self.hooks.report(&Event::Panicked { place, records });
    }

    /// Closes the writer, until `by` at most, and makes the accounts final.
    pub(super) fn finish(mut self, by: Instant) {
        self.report_dropped();
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
            account(&self.shared, &mut self.hooks, &chunk, end);
        }
        let error = error.map(|error| error.to_string().into());
        self.shared
            .ledger
            .finish(&self.shared.queues, on_time, error);
    }
}

impl Dispatch {
    fn take_fate(&mut self, Fate { chunk, end }: Fate) {
        if !matches!(end, End::Confirmed | End::Spooled) {
            self.encoder.list_as_lost(&chunk.meta.identity);
        }
        match end {
            End::TooLarge { max_chunk_bytes } => {
                self.shared.ledger.given_up();
                self.split_chunk(&chunk, max_chunk_bytes);
            }
            end => account(&self.shared, &mut self.hooks, &chunk, end),
        }
    }

    /// Sends the records of a chunk again in smaller chunks, because the medium's real limit is
    /// lower than it had said.
    fn split_chunk(&mut self, chunk: &Chunk, limit: usize) {
        let bytes = chunk.bytes.len();
        self.max_chunk_bytes = self.max_chunk_bytes.min(limit);
        let catalog = self.types.catalog_of(chunk.ticket);
        match self.encoder.decode(&chunk.bytes, &catalog) {
            Ok(decoded) => {
                let problem = EncodeProblem::TooLarge {
                    bytes,
                    limit,
                    chunk: chunk.bytes.clone(),
                };
                // If it was the epoch's last chunk, another last one follows after its pieces have
                // their fates.
                let header = decoded.summary.header;
                if header.is_some_and(|header| header.last_of_epoch) {
                    self.encoder.forget_last(&chunk.meta.identity);
                    self.sent_last = false;
                }
                let lane = to_usize(chunk.meta.identity.lane);
                self.take_apart(lane, decoded.batch, problem, ClosedBy::Bytes, false);
                self.resent_below = self.encoder.next_ticket();
            }
            Err(_) => self.quarantine(Quarantined {
                record: "".into(),
                records: u64::from(chunk.meta.records),
                reason: LossReason::TooLarge,
                problem: "".into(),
                size_bytes: bytes,
                limit_bytes: limit,
                chunk: chunk.bytes.clone(),
            }),
        }
    }

    /// Makes as many chunks as possible of a batch that cannot be one chunk.
    pub(super) fn take_apart(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: EncodeProblem,
        closed_by: ClosedBy,
        last: bool,
    ) {
        let mut todo = Vec::new();
        self.reduce(lane, batch, problem, &mut todo);
        while let Some(batch) = todo.pop() {
            let last = last && todo.is_empty();
            if let Err(problem) = self.ship(lane, &batch, closed_by, last) {
                self.reduce(lane, batch, problem, &mut todo);
            }
        }
    }

    /// Pushes the parts to try next, the first one on top; puts the rest into quarantine.
    fn reduce(
        &mut self,
        lane: usize,
        batch: RecordBatch,
        problem: EncodeProblem,
        todo: &mut Vec<RecordBatch>,
    ) {
        match problem {
            EncodeProblem::TooLarge {
                bytes,
                limit,
                chunk,
            } => {
                let halves = (batch.len() > 1).then(|| halves(&batch));
                if let Some(Ok((first, second))) = halves {
                    self.shared.ledger.split();
                    todo.push(second);
                    todo.push(first);
                } else {
                    let why = (LossReason::TooLarge, "".into());
                    self.put_aside(&batch, why, bytes, limit, chunk);
                }
            }
            EncodeProblem::Unsupported { record, message } => match apart(&batch, &record) {
                Ok((others, of_type)) if !of_type.is_empty() => {
                    let chunk = self.encoder.for_inspection(lane, &of_type);
                    let (size, limit) = (chunk.len(), self.limit());
                    let why = (LossReason::NotEncodable, message);
                    self.put_aside(&of_type, why, size, limit, chunk);
                    if !others.is_empty() {
                        todo.push(others);
                    }
                }
                _ => self.put_all_aside(&batch, message),
            },
            EncodeProblem::Ambiguous { record } => match versions(&batch, &record) {
                Ok((first, others)) if !others.is_empty() => {
                    todo.push(others);
                    todo.push(first);
                }
                _ => {
                    let message = format!("one chunk cannot hold two versions of {record}");
                    self.put_all_aside(&batch, message.into());
                }
            },
            EncodeProblem::Failed(message) => self.put_all_aside(&batch, message),
            EncodeProblem::Panicked => {
                self.put_all_aside(&batch, "the serializer panicked".into());
                self.shared.ledger.panicked();
                let (place, records) = ("the serializer", to_u64(batch.len()));
                self.hooks.report(&Event::Panicked { place, records });
            }
        }
    }

    fn put_all_aside(&mut self, batch: &RecordBatch, problem: Box<str>) {
        let (limit, why) = (self.limit(), (LossReason::NotEncodable, problem));
        self.put_aside(batch, why, 0, limit, Bytes::new());
    }

    fn put_aside(
        &mut self,
        batch: &RecordBatch,
        (reason, problem): (LossReason, Box<str>),
        size_bytes: usize,
        limit_bytes: usize,
        chunk: Bytes,
    ) {
        let name = batch.records().next();
        let name = name.map_or("", |record| record.schema().name());
        self.quarantine(Quarantined {
            record: name.into(),
            records: to_u64(batch.len()),
            reason,
            problem,
            size_bytes,
            limit_bytes,
            chunk,
        });
    }

    /// Counts records that cannot be sent, and passes them to the application's hook.
    pub(super) fn quarantine(&mut self, quarantined: Quarantined) {
        let Quarantined {
            records, reason, ..
        } = quarantined;
        self.shared.ledger.lost(reason, records);
        self.shared.ledger.quarantined(records);
        self.hooks.report(&Event::Quarantined(quarantined));
    }
}

/// Enters the fate of a chunk into the ledger, and reports one that was given up.
fn account(shared: &ControllerState, hooks: &mut Hooks, chunk: &Chunk, end: End) {
    let records = chunk.meta.records;
    let (reason, error) = match end {
        End::Confirmed => return shared.ledger.delivered(records, chunk.bytes.len()),
        End::Spooled => return shared.ledger.spooled(records),
        End::TooLarge { .. } => (LossReason::TooLarge, None),
        End::Refused(error) => (LossReason::Refused, Some(error)),
        End::Undelivered(error) => (LossReason::Undelivered, error),
    };
    shared.ledger.given_up();
    shared.ledger.lost(reason, u64::from(records));
    hooks.report(&Event::Lost {
        sequence: chunk.meta.identity.sequence,
        records,
        reason,
        error,
    });
}
