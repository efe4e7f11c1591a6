//! Takes chunks from a reader and checks them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, ContainerKind, Damaged, Delivery, ReaderCloseReport, Received, Settled, Token,
    Verdict,
};

use super::chunks::{Label, read_label};
use super::contract::PATIENCE;
use super::pump::Pump;

/// Takes chunks from a reader and checks them: bytes, identity, demand.
pub struct Tap {
    reader: Option<Box<dyn ChunkReader>>,
    demand: usize,
    acknowledges: bool,
    received: Vec<Label>,
    /// Whether each of them was flagged as redelivered.
    redelivered: Vec<bool>,
    unsettled: Vec<(Label, Delivery)>,
    damaged: Vec<Damaged>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap")
            .field("received", &self.received.len())
            .field("unsettled", &self.unsettled.len())
            .finish_non_exhaustive()
    }
}

impl Tap {
    /// Creates a tap that acknowledges everything that it receives.
    pub fn new(reader: Box<dyn ChunkReader>) -> Self {
        Self::with(reader, 1 << 20, true)
    }

    /// Creates a tap that holds up to `demand` chunks until the test settles them.
    pub fn holding(reader: Box<dyn ChunkReader>, demand: usize) -> Self {
        Self::with(reader, demand, false)
    }

    fn with(mut reader: Box<dyn ChunkReader>, demand: usize, acknowledges: bool) -> Self {
        reader.set_demand(demand);
        Self {
            reader: Some(reader),
            demand,
            acknowledges,
            received: Vec::new(),
            redelivered: Vec::new(),
            unsettled: Vec::new(),
            damaged: Vec::new(),
        }
    }

    /// Returns the reader.
    pub fn reader(&mut self) -> &mut dyn ChunkReader {
        let reader = self.reader.as_mut().expect("the tap is open until closed");
        reader.as_mut()
    }

    /// Returns the reason why the reader is not at the end of its medium, if it is not.
    pub fn waits_for(&self) -> Option<&'static str> {
        self.reader.as_ref().and_then(|reader| reader.waits_for())
    }

    /// Sets the number of chunks that may be held.
    pub fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
        self.reader().set_demand(chunks);
    }

    /// Acknowledges the held chunks, and everything from now on.
    pub fn acknowledge(&mut self) {
        self.acknowledges = true;
        while !self.unsettled.is_empty() {
            self.settle_at(0, Verdict::Ack);
        }
    }

    /// Returns the received chunks, in order, repetitions included.
    pub fn received(&self) -> &[Label] {
        &self.received
    }

    /// Returns the number of different chunks that were received.
    pub fn distinct(&self) -> usize {
        self.received.iter().collect::<HashSet<_>>().len()
    }

    /// Returns the held chunks.
    pub fn unsettled(&self) -> Vec<Label> {
        self.unsettled.iter().map(|(label, _)| *label).collect()
    }

    /// Returns the held chunks, as delivered.
    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.unsettled.iter().map(|(_, delivery)| delivery)
    }

    /// Returns the damage that the reader reported.
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    /// Settles a chunk that is held. Returns its token and the result.
    ///
    /// # Panics
    ///
    /// The chunk is not held.
    pub fn settle(&mut self, label: Label, verdict: Verdict) -> (Token, Settled) {
        let index = self
            .unsettled
            .iter()
            .position(|(held, _)| *held == label)
            .unwrap_or_else(|| panic!("{label:?} is not held"));
        self.settle_at(index, verdict)
    }

    fn settle_at(&mut self, index: usize, verdict: Verdict) -> (Token, Settled) {
        let (label, delivery) = self.unsettled.remove(index);
        let settled = self
            .reader()
            .settle(delivery.token, verdict)
            .unwrap_or_else(|error| panic!("{label:?} cannot be settled: {error}"));
        (delivery.token, settled)
    }

    /// Receives for `time` at most. Returns whether a chunk or damage came.
    ///
    /// # Panics
    ///
    /// The reader broke its contract, or failed for good.
    pub fn poll(&mut self, time: Duration) -> bool {
        match self.reader().receive(Instant::now() + time) {
            Ok(Received::Chunk(delivery)) => {
                self.take(delivery);
                true
            }
            Ok(Received::Damaged(damaged)) => {
                self.damaged.push(damaged);
                true
            }
            Ok(_) => false,
            Err(error) => {
                assert!(error.is_retryable(), "the reader failed for good: {error}");
                false
            }
        }
    }

    /// Closes the reader.
    pub fn close(mut self, by: Instant) -> (Self, ReaderCloseReport) {
        let reader = self.reader.take().expect("the tap is open until closed");
        let report = reader.close(by);
        (self, report)
    }

    fn take(&mut self, delivery: Delivery) {
        let label = read_label(&delivery.bytes);
        let meta = delivery
            .meta
            .unwrap_or_else(|| panic!("{label:?}: the identity was not carried beside it"));
        assert_eq!(meta.container, ContainerKind::Kieker);
        let identity = meta.identity;
        assert_eq!(
            (
                identity.producer.as_u128(),
                identity.lane,
                identity.sequence
            ),
            (u128::from(label.producer), label.lane, label.sequence),
            "another chunk's identity was carried beside it"
        );
        assert_eq!(u64::from(meta.records), 1 + label.sequence % 100);
        let token = delivery.token;
        assert!(
            self.unsettled.iter().all(|(_, held)| held.token != token),
            "{token:?} names two deliveries"
        );
        self.received.push(label);
        self.redelivered.push(delivery.redelivered);
        self.unsettled.push((label, delivery));
        assert!(
            self.unsettled.len() <= self.demand,
            "{} chunks were handed out, {} demanded",
            self.unsettled.len(),
            self.demand
        );
        if self.acknowledges {
            self.settle_at(self.unsettled.len() - 1, Verdict::Ack);
        }
    }

    /// Checks that the first delivery of each chunk came in the order of its lane.
    ///
    /// # Panics
    ///
    /// A chunk came late.
    pub fn assert_ordered(&self) {
        let late: Vec<_> = self.late().collect();
        assert!(
            late.is_empty(),
            "came when another was due, and whether they had come before: {late:?}"
        );
    }

    /// Checks that the first delivery of each chunk came in the order of its lane. Excepts chunks
    /// that the medium had handed out before, over a lost connection.
    ///
    /// # Panics
    ///
    /// A chunk came late that was not flagged as redelivered.
    pub fn assert_only_redelivered_are_late(&self) {
        for (label, due, redelivered) in self.late() {
            assert!(
                redelivered,
                "{label:?} came when {due} was due, as a new one"
            );
        }
    }

    /// Returns the chunks whose first delivery came after a later chunk of their lane. Also returns
    /// the number that was due, and whether they were flagged as redelivered.
    fn late(&self) -> impl Iterator<Item = (Label, u64, bool)> {
        let mut seen = HashSet::new();
        let mut next: HashMap<(u64, u32), u64> = HashMap::new();
        let received = self.received.iter().zip(&self.redelivered);
        received.filter_map(move |(label, redelivered)| {
            if !seen.insert(*label) {
                return None;
            }
            let next = next.entry((label.producer, label.lane)).or_default();
            let due = *next;
            *next = due.max(label.sequence + 1);
            (label.sequence < due).then_some((*label, due, *redelivered))
        })
    }
}

/// Steps the pumps and polls the taps in turn until `done`.
///
/// # Panics
///
/// `done` does not return true within [`PATIENCE`]; the message names `what`.
pub fn drive(
    what: &str,
    pumps: &mut [Pump],
    taps: &mut [Tap],
    done: impl Fn(&[Pump], &[Tap]) -> bool,
) {
    let by = Instant::now() + PATIENCE;
    while !done(pumps, taps) {
        assert!(
            Instant::now() < by,
            "not within {PATIENCE:?}: {what}\n{pumps:#?}\n{taps:#?}"
        );
        for pump in &mut *pumps {
            pump.step();
        }
        let mut busy = false;
        for tap in &mut *taps {
            // Poll a bounded number of times, so that the pumps get their turn.
            for _ in 0..64 {
                if !tap.poll(Duration::from_millis(1)) {
                    break;
                }
                busy = true;
            }
        }
        if let (false, Some(pump)) = (busy, pumps.first()) {
            pump.wait(Duration::from_millis(1));
        }
    }
}

/// Calls [`drive`] with one pump and one tap.
///
/// # Panics
///
/// `done` does not return true within [`PATIENCE`]; the message names `what`.
pub fn drive_pair(what: &str, pump: &mut Pump, tap: &mut Tap, done: impl Fn(&Pump, &Tap) -> bool) {
    drive(
        what,
        slice::from_mut(pump),
        slice::from_mut(tap),
        |pumps, taps| pumps.iter().zip(taps).all(|(pump, tap)| done(pump, tap)),
    );
}
