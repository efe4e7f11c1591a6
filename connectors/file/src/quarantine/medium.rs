//! A quarantine in a topic, a queue, or any other medium with a writer.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::random::random;
use baler_common::record::BatchBuilder;
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, ContainerKind, End, Epoch, Notify, Outbox,
    OutboxSettings, ProducerId,
};

use super::poison::{Poison, PutAside, Quarantine};
use super::record::Quarantined;

/// How long to wait for the medium by default. This is longer than a broker's restart.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(30);

/// The time limit for closing when nothing is left to be confirmed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends each chunk as a record of type [`Quarantined`], in a native chunk of its own, and returns
/// when the medium has confirmed it. A group is sent without waiting for each chunk.
///
/// While the medium is away it waits and retries with pauses, until its patience is over. A chunk
/// whose record is above the medium's limit cannot be kept there.
pub struct MediumQuarantine {
    /// `None` only while it is dropped.
    outbox: Option<Outbox>,
    notification: Arc<WriterNotification>,
    patience: Duration,
    serializer: NativeSerializer,
    next: ChunkIdentity,
}

impl fmt::Debug for MediumQuarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediumQuarantine")
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}

impl MediumQuarantine {
    /// Creates a quarantine over this writer, which is opened with the first chunk.
    pub fn new(writer: Box<dyn ChunkWriter>) -> Self {
        let notification = Arc::new(WriterNotification::default());
        let mut settings = OutboxSettings::default();
        settings.retry.seed = random();
        let outbox = Outbox::new(
            writer,
            settings,
            Arc::<WriterNotification>::clone(&notification),
        );
        Self {
            outbox: Some(outbox),
            notification,
            patience: DEFAULT_PATIENCE,
            serializer: NativeSerializer::default(),
            next: ChunkIdentity::first(ProducerId::random(), Epoch::at(SystemTime::now()), 0),
        }
    }

    /// Sets the time limit for the confirmation of a chunk, or of a group; default 30 s.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn outbox(&mut self) -> &mut Outbox {
        self.outbox.as_mut().expect("it is taken by the drop only")
    }

    /// Passes a poison message to the outbox; returns its ticket.
    fn send(&mut self, poison: Poison<'_>) -> io::Result<u64> {
        let chunk = self.wrap(poison)?;
        let ticket = chunk.ticket;
        self.next.sequence = ticket + 1;
        self.outbox().push(chunk, Instant::now());
        Ok(ticket)
    }

    /// Waits for fates and records them; returns `false` when the time is over.
    fn drive(
        &mut self,
        open: &mut BTreeMap<u64, usize>,
        results: &mut [Option<io::Result<PutAside>>],
        by: Instant,
    ) -> bool {
        let mut fates = Vec::new();
        let now = Instant::now();
        let wake_up = self.outbox().drive(now, Some(by), &mut fates);
        // A chunk that was given up here may be confirmed only now. It is ignored.
        let before = open.len();
        for fate in fates {
            if let Some(position) = open.remove(&fate.chunk.ticket) {
                results[position] = Some(concluded(fate.end));
            }
        }
        if open.len() == before {
            if now >= by {
                return false;
            }
            self.notification
                .wait(wake_up.map_or(by, |wake_up| wake_up.min(by)));
        }
        true
    }

    fn late(&mut self) -> io::Error {
        let error = self.outbox().stats().last_error;
        let why = error.map_or_else(|| "it does not confirm".to_owned(), |it| it.to_string());
        let message = format!("not confirmed within {:?}: {why}", self.patience);
        io::Error::new(io::ErrorKind::TimedOut, message)
    }

    /// Wraps the poison message in a chunk of its own.
    fn wrap(&mut self, poison: Poison<'_>) -> io::Result<Chunk> {
        let mut batch = BatchBuilder::new();
        batch
            .push(&Quarantined::new(poison))
            .map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        self.serializer
            .serialize(batch.batch(), &ChunkHeader::new(self.next), &mut bytes)
            .map_err(io::Error::other)?;
        Ok(Chunk {
            ticket: self.next.sequence,
            meta: ChunkMeta {
                container: ContainerKind::Native,
                records: 1,
                identity: self.next,
            },
            bytes: bytes.into(),
        })
    }
}

impl Quarantine for MediumQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        let mut results = self.put_group_aside(&[poison]);
        results.pop().expect("there is a result for each chunk")
    }

    /// The medium may confirm all of them at once, so the group has the patience of one chunk.
    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        let by = Instant::now() + self.patience;
        let mut results: Vec<Option<io::Result<PutAside>>> = Vec::new();
        // Chunks that wait for their fates: the ticket, and the position in the results.
        let mut open = BTreeMap::new();
        for poison in group {
            while !open.is_empty() && !self.outbox().has_room() {
                if !self.drive(&mut open, &mut results, by) {
                    break;
                }
            }
            results.push(match self.send(*poison) {
                Ok(ticket) => {
                    open.insert(ticket, results.len());
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        while !open.is_empty() && self.drive(&mut open, &mut results, by) {}
        let mut late = || Err(self.late());
        let results = results.into_iter();
        results.map(|it| it.unwrap_or_else(&mut late)).collect()
    }
}

fn concluded(end: End) -> io::Result<PutAside> {
    match end {
        End::Confirmed | End::Spooled => Ok(PutAside::Kept),
        End::Refused(error) => Err(io::Error::other(error)),
        End::TooLarge { max_chunk_bytes } => Err(io::Error::other(format!(
            "the quarantine's medium takes at most {max_chunk_bytes} bytes"
        ))),
        End::Undelivered(error) => Err(match error {
            Some(error) => io::Error::other(error),
            None => io::Error::other("it was given up"),
        }),
    }
}

impl Drop for MediumQuarantine {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            // All chunks that were reported as safe are confirmed already.
            drop(outbox.close(Instant::now() + CLOSE_TIMEOUT, &mut Vec::new()));
        }
    }
}

/// Remembers a notification of the writer until a caller waits for it.
#[derive(Debug, Default)]
struct WriterNotification {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl WriterNotification {
    fn wait(&self, until: Instant) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(rung, left, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl Notify for WriterNotification {
    fn notify(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
