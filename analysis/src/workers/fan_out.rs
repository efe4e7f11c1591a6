//! Passes the deliveries of one reader to several workers. For media that have only one reader.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::mutex::lock;
use baler_common::transport::{
    ChunkReader, Delivery, ReaderCapability, ReaderCloseReport, ReaderStats, Received, RetryClass,
    Settled, Token, TransportError, Verdict,
};
use crossbeam_channel::{Receiver, Sender, unbounded};

/// How long the reader may wait while nothing is in work.
const IDLE_WAIT: Duration = Duration::from_millis(50);

/// How long the reader may wait while chunks are in work. A verdict may reach it later by this
/// time.
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// How long to wait after an error from which the reader recovers by itself.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

/// Splits one reader into several that work at the same time. A thread of its own drives the reader.
///
/// All chunks of a lane go to the same part, in order. It is the producer's lane if the medium
/// knows the chunk's identity, otherwise the medium's own lane. Verdicts reach the reader a little
/// later, so no part ever returns [`Settled::Stale`]. The sum of the demands limits the chunks in
/// work: one slow worker can delay the others. Only the first part returns the medium's stats.
///
/// # Errors
///
/// The operating system cannot start a thread.
pub fn fan_out(
    reader: Box<dyn ChunkReader>,
    count: NonZeroUsize,
) -> std::io::Result<Vec<Box<dyn ChunkReader>>> {
    let capability = reader.capability().clone();
    let state = Arc::new(Mutex::new(FanOutState {
        open_parts: count.get(),
        ..FanOutState::default()
    }));
    let (to_hub, requests) = unbounded();
    let mut parts: Vec<Box<dyn ChunkReader>> = Vec::with_capacity(count.get());
    let mut senders = Vec::with_capacity(count.get());
    for number in 0..count.get() {
        // The demand limits it: the reader delivers no more.
        let (sender, events) = unbounded();
        senders.push(Some(sender));
        parts.push(Box::new(FanOutReader {
            number,
            capability: capability.clone(),
            events,
            to_hub: to_hub.clone(),
            state: Arc::clone(&state),
            ended: false,
            left: false,
        }));
    }
    let hub = FanOutHub {
        reader,
        requests,
        parts: senders,
        demands: vec![0; count.get()],
        in_work: HashMap::new(),
        state: Arc::clone(&state),
        close_by: None,
    };
    let thread = thread::Builder::new().name("baler-fan-out".to_owned());
    lock(&state).thread = Some(thread.spawn(move || hub.run())?);
    Ok(parts)
}

/// The state shared by the parts and the hub.
#[derive(Debug, Default)]
struct FanOutState {
    stats: ReaderStats,
    thread: Option<JoinHandle<ReaderCloseReport>>,
    open_parts: usize,
    /// The result of the reader's [`ChunkReader::waits_for`].
    waits_for: Option<&'static str>,
}

/// A request of a part to the hub.
enum FanOutRequest {
    Close { part: usize, by: Instant },
    Demand { part: usize, chunks: usize },
    Settle(Token, Verdict),
}

/// Owns the reader.
struct FanOutHub {
    reader: Box<dyn ChunkReader>,
    requests: Receiver<FanOutRequest>,
    /// The channel to each part; `None` for closed parts.
    parts: Vec<Option<Sender<Result<Received, TransportError>>>>,
    demands: Vec<usize>,
    /// The chunks in work, and damage that must be settled, with the part of each.
    in_work: HashMap<Token, usize>,
    state: Arc<Mutex<FanOutState>>,
    close_by: Option<Instant>,
}

impl FanOutHub {
    fn run(mut self) -> ReaderCloseReport {
        let mut ended = false;
        loop {
            while let Ok(request) = self.requests.try_recv() {
                self.handle(request);
            }
            if self.parts.iter().all(Option::is_none) {
                break;
            }
            if !ended {
                ended = self.receive();
            } else if let Ok(request) = self.requests.recv() {
                // Only requests can arrive now.
                self.handle(request);
            } else {
                break;
            }
        }
        let by = self.close_by.unwrap_or_else(Instant::now);
        self.reader.close(by)
    }

    /// Receives once and passes the event on. Returns whether nothing more will arrive.
    fn receive(&mut self) -> bool {
        let wait = match self.in_work.is_empty() {
            true => IDLE_WAIT,
            false => BUSY_WAIT,
        };
        let received = self.reader.receive(Instant::now() + wait);
        let mut state = lock(&self.state);
        state.stats = self.reader.stats();
        state.waits_for = self.reader.waits_for();
        drop(state);
        let is_final = matches!(&received, Err(error) if !error.is_retryable());
        let ends = is_final || matches!(received, Ok(Received::End));
        match received {
            Ok(Received::Chunk(delivery)) => {
                let part = self.part_of(&delivery);
                self.in_work.insert(delivery.token, part);
                self.send(part, Ok(Received::Chunk(delivery)));
            }
            Ok(Received::Damaged(damaged)) => {
                let part = self.first_open();
                // With a token, the medium waits for the verdict on it, too.
                self.in_work
                    .extend(damaged.token.map(|token| (token, part)));
                self.send(part, Ok(Received::Damaged(damaged)));
            }
            Ok(Received::End | Received::Idle) => {}
            // One of the open parts gets it.
            other => {
                let pauses = other.is_err() && !is_final;
                self.send_to_any(other);
                if pauses {
                    if let Ok(request) = self.requests.recv_timeout(PAUSE_AFTER_ERROR) {
                        self.handle(request);
                    }
                }
            }
        }
        if ends {
            for part in 0..self.parts.len() {
                self.send(part, Ok(Received::End));
            }
        }
        ends
    }

    /// Returns the part for a chunk: the same for all chunks of a lane while that part is open.
    fn part_of(&self, delivery: &Delivery) -> usize {
        let mut hasher = DefaultHasher::new();
        match delivery.meta.map(|meta| meta.identity) {
            Some(identity) => {
                (identity.producer, identity.epoch, identity.lane).hash(&mut hasher);
            }
            None => delivery.origin.lane.hash(&mut hasher),
        }
        let open = || (0..).zip(&self.parts).filter(|(_, it)| it.is_some());
        let position = usize::try_from(hasher.finish() % open().count() as u64);
        let found = open().nth(position.expect("it is less than their number"));
        found.expect("a part is open").0
    }

    fn first_open(&self) -> usize {
        let open = self.parts.iter().position(Option::is_some);
        open.expect("a part is open")
    }

    fn send_to_any(&self, event: Result<Received, TransportError>) {
        self.send(self.first_open(), event);
    }

    fn send(&self, part: usize, event: Result<Received, TransportError>) {
        if let Some(sender) = &self.parts[part] {
            // A dropped part has requested to be closed.
            sender.send(event).ok();
        }
    }

    fn handle(&mut self, request: FanOutRequest) {
        match request {
            FanOutRequest::Settle(token, verdict) => self.settle(token, verdict),
            FanOutRequest::Demand { part, chunks } => {
                self.demands[part] = chunks;
                // A part may ask for any number.
                let all = self.demands.iter().copied().fold(0, usize::saturating_add);
                self.reader.set_demand(all);
            }
            FanOutRequest::Close { part, by } => {
                self.close_by = Some(self.close_by.map_or(by, |other| other.max(by)));
                self.parts[part] = None;
                // Its unsettled chunks go to the other parts.
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
            // A delivery that could not be settled comes again, and is then recognised as a copy.
            self.send_to_any(Err(error));
        }
    }
}

/// One of the readers of a fan-out.
struct FanOutReader {
    number: usize,
    capability: ReaderCapability,
    events: Receiver<Result<Received, TransportError>>,
    to_hub: Sender<FanOutRequest>,
    state: Arc<Mutex<FanOutState>>,
    ended: bool,
    /// Whether this part has closed.
    left: bool,
}

impl ChunkReader for FanOutReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        let part = self.number;
        self.to_hub
            .send(FanOutRequest::Demand { part, chunks })
            .ok();
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
            .send(FanOutRequest::Settle(token, verdict))
            .map_err(|_| gone())?;
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        lock(&self.state).waits_for
    }

    fn stats(&self) -> ReaderStats {
        if self.number == 0 {
            return lock(&self.state).stats.clone();
        }
        ReaderStats::default()
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        // The last part to leave waits for the reader's end.
        let thread = self.leave(by).then(|| lock(&self.state).thread.take());
        match thread.flatten().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            Some(Err(_)) => ReaderCloseReport {
                unsettled: 0,
                error: Some(gone()),
                unreported: 0,
            },
            None => ReaderCloseReport::default(),
        }
    }
}

impl FanOutReader {
    /// Closes this part; returns whether it was the last one.
    fn leave(&mut self, by: Instant) -> bool {
        if std::mem::replace(&mut self.left, true) {
            return false;
        }
        let part = self.number;
        self.to_hub.send(FanOutRequest::Close { part, by }).ok();
        let mut state = lock(&self.state);
        state.open_parts -= 1;
        state.open_parts == 0
    }
}

impl Drop for FanOutReader {
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
