//! One message a record over a connector's own writer: the client alone where Baler is the client.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, ContainerKind, Epoch, Notify, Outcome,
    ProducerId, RejectReason,
};
use bytes::Bytes;

use super::program::PlainWriter;
use crate::failure::Failure;

/// How long to wait for room before looking again.
const LOOK: Duration = Duration::from_millis(1);

/// How long to connect.
const PATIENCE: Duration = Duration::from_secs(30);

/// Offers rows as chunks of one record to a connector's writer, without a controller: there is
/// nothing between the thread that makes them and the connection.
pub struct Offering {
    writer: Box<dyn ChunkWriter>,
    awaiting: bool,
    sent: u64,
    confirmed: u64,
    confirmations: Vec<baler_common::transport::Confirmation>,
}

impl std::fmt::Debug for Offering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offering")
            .field("sent", &self.sent)
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}

/// Wakes the thread that offers.
#[derive(Debug)]
struct Wake(Thread);

impl Notify for Wake {
    fn notify(&self) {
        self.0.unpark();
    }
}

impl Offering {
    /// Opens the writer; it belongs to the calling thread. `awaiting`: each message before the next.
    ///
    /// # Errors
    ///
    /// The medium cannot be reached.
    pub fn open(mut writer: Box<dyn ChunkWriter>, awaiting: bool) -> Result<Self, Failure> {
        writer.set_notify(Arc::new(Wake(thread::current())));
        let opened = writer.reopen(Instant::now() + PATIENCE);
        opened.map_err(Failure::cannot("open the writer"))?;
        Ok(Self {
            writer,
            awaiting,
            sent: 0,
            confirmed: 0,
            confirmations: Vec::new(),
        })
    }

    fn offer(&mut self, row: &[u8]) -> Result<(), Failure> {
        let mut chunk = Chunk {
            ticket: self.sent,
            meta: ChunkMeta {
                container: ContainerKind::Native,
                records: 1,
                identity: ChunkIdentity {
                    producer: ProducerId::new(1),
                    epoch: Epoch {
                        start_unix_ns: 1,
                        random: 1,
                    },
                    lane: 0,
                    sequence: self.sent,
                },
            },
            bytes: Bytes::copy_from_slice(row),
        };
        while let Err(rejected) = self.writer.offer(chunk) {
            match rejected.reason {
                RejectReason::Full => {}
                other => return Err(Failure::new(format!("a message is refused: {other:?}"))),
            }
            chunk = rejected.chunk;
            self.look()?;
            thread::park_timeout(LOOK);
        }
        self.sent += 1;
        Ok(())
    }

    fn look(&mut self) -> Result<(), Failure> {
        let told = self.writer.confirmations(&mut self.confirmations);
        for confirmation in self.confirmations.drain(..) {
            if !matches!(confirmation.outcome, Outcome::Confirmed) {
                let outcome = confirmation.outcome;
                return Err(Failure::new(format!("a message is refused: {outcome:?}")));
            }
            self.confirmed += 1;
        }
        told.map_err(Failure::cannot("write"))
    }
}

impl PlainWriter for Offering {
    fn publish(&mut self, rows: &[Vec<u8>]) -> Result<(), Failure> {
        for row in rows {
            self.offer(row)?;
            if self.awaiting {
                self.settle(Instant::now() + PATIENCE)?;
            }
        }
        self.look()
    }

    fn confirmed(&self) -> u64 {
        self.confirmed
    }

    fn settle(&mut self, by: Instant) -> Result<(), Failure> {
        loop {
            self.look()?;
            if self.confirmed == self.sent {
                return Ok(());
            }
            if Instant::now() >= by {
                return Err(Failure::new("not everything was confirmed in time"));
            }
            thread::park_timeout(LOOK);
        }
    }
}
