//! Drives a writer as its owner must: offers, collects confirmations, reopens, sends again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, ChunkWriter, CloseReport, DeliveryReport, Notify, Order, Outcome, RejectReason,
    Rejected, TransportError,
};

use super::contract::{PATIENCE, within_patience};

/// Drives a writer as its owner must, and checks the contract on the way. Each ticket is confirmed
/// at most once, only if it was offered, and in order within its lane if the medium promises that.
pub struct Pump {
    writer: Option<Box<dyn ChunkWriter>>,
    notification: Arc<Notification>,
    pending: VecDeque<Chunk>,
    unconfirmed: VecDeque<Chunk>,
    confirmed: HashSet<u64>,
    spooled: usize,
    refused: Vec<(u64, TransportError)>,
    breaks: usize,
    last_confirmed: HashMap<u32, u64>,
}

impl fmt::Debug for Pump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pump")
            .field("pending", &self.pending.len())
            .field("unconfirmed", &self.unconfirmed.len())
            .field("confirmed", &self.confirmed.len())
            .field("breaks", &self.breaks)
            .finish_non_exhaustive()
    }
}

impl Pump {
    /// Opens the writer.
    ///
    /// # Panics
    ///
    /// It cannot be opened in time.
    pub fn open(mut writer: Box<dyn ChunkWriter>) -> Self {
        let notification = Arc::new(Notification::default());
        writer.set_notify(Arc::<Notification>::clone(&notification));
        within_patience("the writer opens", || {
            let opened = writer.reopen(Instant::now() + PATIENCE);
            match opened {
                Ok(()) => Some(()),
                Err(error) if error.is_retryable() => None,
                Err(error) => panic!("the writer cannot be opened: {error}"),
            }
        });
        Self {
            writer: Some(writer),
            notification,
            pending: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            confirmed: HashSet::new(),
            spooled: 0,
            refused: Vec::new(),
            breaks: 0,
            last_confirmed: HashMap::new(),
        }
    }

    /// Adds chunks after the chunks that wait to be offered.
    pub fn push(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        self.pending.extend(chunks);
    }

    /// Returns the writer.
    pub fn writer(&mut self) -> &mut dyn ChunkWriter {
        let writer = self.writer.as_mut().expect("the pump is open until closed");
        writer.as_mut()
    }

    /// Whether every chunk was offered and answered.
    pub fn is_done(&self) -> bool {
        self.pending.is_empty() && self.unconfirmed.is_empty()
    }

    /// Returns the number of chunks that wait to be offered.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the tickets that were offered and not answered, in order.
    pub fn unconfirmed(&self) -> Vec<u64> {
        self.unconfirmed.iter().map(|chunk| chunk.ticket).collect()
    }

    /// Returns the number of chunks that were confirmed, by the medium or by a spool.
    pub fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    /// Returns the number of confirmed chunks that a spool had on disk at that time.
    pub fn spooled(&self) -> usize {
        self.spooled
    }

    /// Returns the chunks that the medium refused.
    pub fn refused(&self) -> &[(u64, TransportError)] {
        &self.refused
    }

    /// Returns the number of times that the writer broke.
    pub fn breaks(&self) -> usize {
        self.breaks
    }

    /// Waits for the writer's notification. Returns whether it came.
    pub fn wait(&self, time: Duration) -> bool {
        self.notification.wait(time)
    }

    /// Offers as many chunks as the window takes, and collects confirmations. If the writer broke,
    /// reopens it and puts unconfirmed chunks in front again (go-back-N).
    ///
    /// # Panics
    ///
    /// The writer broke its contract, or failed for good.
    pub fn step(&mut self) {
        while let Some(chunk) = self.pending.pop_front() {
            let offered = chunk.clone();
            match self.writer().offer(chunk) {
                Ok(()) => self.unconfirmed.push_back(offered),
                Err(Rejected { chunk, reason }) => {
                    assert_eq!(
                        chunk.ticket, offered.ticket,
                        "another chunk was handed back"
                    );
                    assert_eq!(chunk.bytes, offered.bytes, "the chunk was altered");
                    self.pending.push_front(chunk);
                    match reason {
                        RejectReason::Full => break,
                        RejectReason::Broken(error) => return self.recover(&error),
                        RejectReason::TooLarge { max_chunk_bytes } => {
                            panic!("a chunk is above the limit of {max_chunk_bytes} bytes")
                        }
                    }
                }
            }
        }
        let mut delivery_reports = Vec::new();
        let result = self.writer().delivery_reports(&mut delivery_reports);
        self.confirm(delivery_reports);
        if let Err(error) = result {
            self.recover(&error);
        }
    }

    /// Closes the writer, and collects the confirmations that came meanwhile.
    ///
    /// # Panics
    ///
    /// The report does not add up.
    pub fn close(mut self, by: Instant) -> (Self, CloseReport) {
        let writer = self.writer.take().expect("the pump is open until closed");
        let mut report = writer.close(by);
        self.confirm(std::mem::take(&mut report.delivery_reports));
        assert_eq!(
            report.unconfirmed,
            self.unconfirmed(),
            "the writer accounts for every chunk that it took, in order"
        );
        (self, report)
    }

    fn confirm(&mut self, delivery_reports: Vec<DeliveryReport>) {
        let ordered = self
            .writer
            .as_ref()
            .is_none_or(|writer| writer.capability().order == Order::PerLane);
        for DeliveryReport { ticket, outcome } in delivery_reports {
            let index = self
                .unconfirmed
                .iter()
                .position(|chunk| chunk.ticket == ticket)
                .unwrap_or_else(|| panic!("ticket {ticket} was confirmed twice or never offered"));
            let chunk = self.unconfirmed.remove(index).expect("it was just found");
            let lane = chunk.meta.identity.lane;
            if ordered {
                let last = self.last_confirmed.insert(lane, ticket);
                assert!(
                    last.is_none_or(|last| last < ticket),
                    "lane {lane}: ticket {ticket} was confirmed after {last:?}"
                );
            }
            match outcome {
                Outcome::Confirmed => {
                    self.confirmed.insert(ticket);
                }
                Outcome::Spooled => {
                    self.confirmed.insert(ticket);
                    self.spooled += 1;
                }
                Outcome::Refused(error) => self.refused.push((ticket, error)),
            }
        }
    }

    fn recover(&mut self, error: &TransportError) {
        assert!(error.is_retryable(), "the writer failed for good: {error}");
        self.breaks += 1;
        // Chunks that were confirmed before the break still count.
        let mut delivery_reports = Vec::new();
        let broken = self.writer().delivery_reports(&mut delivery_reports);
        assert!(
            broken.is_err(),
            "a broken writer says so until it is reopened"
        );
        self.confirm(delivery_reports);
        for chunk in std::mem::take(&mut self.unconfirmed).into_iter().rev() {
            self.pending.push_front(chunk);
        }
        // A failed attempt leaves the writer broken, so the next step reopens it again.
        let by = Instant::now() + Duration::from_secs(2);
        if let Err(error) = self.writer().reopen(by) {
            assert!(
                error.is_retryable(),
                "the writer cannot be reopened: {error}"
            );
        }
    }
}

/// A notification that a thread can wait for.
#[derive(Debug, Default)]
pub struct Notification {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl Notification {
    /// Waits for a notification since the last wait. Returns whether one came.
    pub fn wait(&self, time: Duration) -> bool {
        let notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut notified, _) = self
            .changed
            .wait_timeout_while(notified, time, |notified| !*notified)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut notified)
    }
}

impl Notify for Notification {
    fn notify(&self) {
        *self.notified.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}
