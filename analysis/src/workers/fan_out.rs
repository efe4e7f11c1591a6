//! One reader's deliveries to several workers: for media that have only one reader.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, Delivery, ReaderCapability, ReaderCloseReport, ReaderStats, Received, RetryClass,
    Settled, Token, TransportError, Verdict,
};
use crossbeam_channel::{Receiver, Sender, unbounded};

/// How long the reader is asked to wait while nobody has anything to settle.
const IDLE_WAIT: Duration = Duration::from_millis(50);

/// How long it is asked to wait while chunks are in work: so late a verdict may reach it.
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// How long to wait after an error from which the reader recovers by itself.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

/// Splits one reader into several that work at the same time. A thread of its own drives the reader.
///
/// All chunks of a lane go to the same one, in order; a lane is a producer's where the medium says
/// who the chunk is, else the medium's own.
/// Verdicts reach the reader a little later, so that [`Settled::Stale`] is never told.
/// What is in work is bounded by the sum of the demands: one slow worker can hold up the others.
/// The medium's stats are told by the first one alone.
///
/// # Errors
///
/// The operating system refuses a thread.
pub fn fan_out(
    reader: Box<dyn ChunkReader>,
    count: NonZeroUsize,
) -> std::io::Result<Vec<Box<dyn ChunkReader>>> {
    let capability = reader.capability().clone();
    let shared = Arc::new(Shared::default());
    let (to_hub, orders) = unbounded();
    let mut parts: Vec<Box<dyn ChunkReader>> = Vec::with_capacity(count.get());
    let mut senders = Vec::with_capacity(count.get());
    for number in 0..count.get() {
        // Bounded by the demand: the reader hands out no more.
        let (sender, events) = unbounded();
        senders.push(Some(sender));
        parts.push(Box::new(Part {
            number,
            capability: capability.clone(),
            events,
            to_hub: to_hub.clone(),
            shared: Arc::clone(&shared),
            ended: false,
            left: false,
        }));
    }
    shared.lock().open_parts = count.get();
    let hub = Hub {
        reader,
        orders,
        parts: senders,
        demands: vec![0; count.get()],
        in_work: HashMap::new(),
        shared: Arc::clone(&shared),
        close_by: None,
    };
    let thread = thread::Builder::new()
        .name("baler-fan-out".to_owned())
        .spawn(move || hub.run())?;
    shared.lock().thread = Some(thread);
    Ok(parts)
}

/// What the parts and the hub both see.
#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    stats: ReaderStats,
    thread: Option<JoinHandle<ReaderCloseReport>>,
    open_parts: usize,
    /// What the reader waits for before it is at its end.
    waits_for: Option<&'static str>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a part asks of the hub.
enum Order {
    Close { part: usize, by: Instant },
    Demand { part: usize, chunks: usize },
    Settle(Token, Verdict),
}

/// Owns the reader.
struct Hub {
    reader: Box<dyn ChunkReader>,
    orders: Receiver<Order>,
    /// Where each part listens; none for those that have closed.
    parts: Vec<Option<Sender<Result<Received, TransportError>>>>,
    demands: Vec<usize>,
    /// What was handed out, and to which part.
    in_work: HashMap<Token, usize>,
    shared: Arc<Shared>,
    close_by: Option<Instant>,
}

impl Hub {
    fn run(mut self) -> ReaderCloseReport {
        let mut ended = false;
        loop {
            while let Ok(order) = self.orders.try_recv() {
                self.obey(order);
            }
            if self.parts.iter().all(Option::is_none) {
                break;
            }
            if ended {
                // Only orders can come.
                match self.orders.recv() {
                    Ok(order) => self.obey(order),
                    Err(_) => break,
                }
                continue;
            }
            ended = self.receive();
        }
        let by = self.close_by.unwrap_or_else(Instant::now);
        self.reader.close(by)
    }

    /// Waits for the reader once; says whether nothing will come any more.
    fn receive(&mut self) -> bool {
        let wait = if self.in_work.is_empty() {
            IDLE_WAIT
        } else {
            BUSY_WAIT
        };
        let received = self.reader.receive(Instant::now() + wait);
        let mut state = self.shared.lock();
        state.stats = self.reader.stats();
        state.waits_for = self.reader.waits_for();
        drop(state);
        match received {
            Ok(Received::Chunk(delivery)) => {
                let part = self.part_of(&delivery);
                self.in_work.insert(delivery.token, part);
                self.tell(part, Ok(Received::Chunk(delivery)));
                false
            }
            Ok(Received::End) => {
                for part in 0..self.parts.len() {
                    self.tell(part, Ok(Received::End));
                }
                true
            }
            Ok(Received::Idle) => false,
            // Told once, to whoever is still there.
            Ok(other) => {
                self.tell_anyone(Ok(other));
                false
            }
            Err(error) if error.is_retryable() => {
                self.tell_anyone(Err(error));
                if let Ok(order) = self.orders.recv_timeout(PAUSE_AFTER_ERROR) {
                    self.obey(order);
                }
                false
            }
            Err(error) => {
                self.tell_anyone(Err(error));
                for part in 0..self.parts.len() {
                    self.tell(part, Ok(Received::End));
                }
                true
            }
        }
    }

    /// Which part a chunk goes to: the same one for all of its lane, as long as that one is there.
    fn part_of(&self, delivery: &Delivery) -> usize {
        let mut hasher = DefaultHasher::new();
        match delivery.meta.map(|meta| meta.identity) {
            Some(identity) => {
                (identity.producer, identity.epoch, identity.lane).hash(&mut hasher);
            }
            None => delivery.origin.lane.hash(&mut hasher),
        }
        let open = || (0..).zip(&self.parts).filter(|(_, it)| it.is_some());
        let count = u64::try_from(open().count()).unwrap_or(u64::MAX).max(1);
        let place = usize::try_from(hasher.finish() % count).unwrap_or(0);
        open().nth(place).map_or(0, |(number, _)| number)
    }

    fn tell_anyone(&self, event: Result<Received, TransportError>) {
        let open = self.parts.iter().position(Option::is_some);
        self.tell(open.unwrap_or(0), event);
    }

    fn tell(&self, part: usize, event: Result<Received, TransportError>) {
        if let Some(Some(sender)) = self.parts.get(part) {
            // A part that is gone without closing has its orders behind this.
            sender.send(event).ok();
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Settle(token, verdict) => self.settle(token, verdict),
            Order::Demand { part, chunks } => {
                if let Some(demand) = self.demands.get_mut(part) {
                    *demand = chunks;
                }
                let all = self
                    .demands
                    .iter()
                    .fold(0, |sum: usize, it| sum.saturating_add(*it));
                self.reader.set_demand(all);
            }
            Order::Close { part, by } => {
                self.close_by = Some(self.close_by.map_or(by, |other| other.max(by)));
                if let Some(place) = self.parts.get_mut(part) {
                    *place = None;
                }
                // What it did not settle goes to the others.
                let left: Vec<Token> = self
                    .in_work
                    .iter()
                    .filter(|(_, owner)| **owner == part)
                    .map(|(token, _)| *token)
                    .collect();
                if self.parts.iter().any(Option::is_some) {
                    left.into_iter()
                        .for_each(|token| self.settle(token, Verdict::Retry));
                }
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) {
        if self.in_work.remove(&token).is_none() {
            return;
        }
        if let Err(error) = self.reader.settle(token, verdict) {
            // A delivery that could not be settled comes again, and is then known as a copy.
            self.tell_anyone(Err(error));
        }
    }
}

/// One of the readers that a fan-out makes.
struct Part {
    number: usize,
    capability: ReaderCapability,
    events: Receiver<Result<Received, TransportError>>,
    to_hub: Sender<Order>,
    shared: Arc<Shared>,
    ended: bool,
    /// Whether the hub was told that this part has closed.
    left: bool,
}

impl ChunkReader for Part {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        let part = self.number;
        self.to_hub.send(Order::Demand { part, chunks }).ok();
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if self.ended {
            return Ok(Received::End);
        }
        match self.events.recv_deadline(by) {
            Ok(event) => {
                self.ended = matches!(event, Ok(Received::End));
                event
            }
            Err(error) if error.is_timeout() => Ok(Received::Idle),
            Err(_) => Err(gone()),
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.to_hub
            .send(Order::Settle(token, verdict))
            .map_err(|_| gone())?;
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.shared.lock().waits_for
    }

    fn stats(&self) -> ReaderStats {
        if self.number == 0 {
            return self.shared.lock().stats.clone();
        }
        ReaderStats::default()
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        // The last one to go waits for the reader's end.
        let thread = self.leave(by).then(|| self.shared.lock().thread.take());
        match thread.flatten().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            Some(Err(_)) => ReaderCloseReport {
                unsettled: 0,
                error: Some(gone()),
            },
            None => ReaderCloseReport::default(),
        }
    }
}

impl Part {
    /// Tells that this part wants no more; says whether it was the last one.
    fn leave(&mut self, by: Instant) -> bool {
        if std::mem::replace(&mut self.left, true) {
            return false;
        }
        let part = self.number;
        self.to_hub.send(Order::Close { part, by }).ok();
        let mut state = self.shared.lock();
        state.open_parts = state.open_parts.saturating_sub(1);
        state.open_parts == 0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.leave(Instant::now());
    }
}

fn gone() -> TransportError {
    TransportError::new(
        "receive from",
        "a reader that several workers share",
        RetryClass::Final,
        "its thread has ended",
    )
}
