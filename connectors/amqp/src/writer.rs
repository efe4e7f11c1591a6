//! The sending end: one thread a connection publishes what is offered, and takes the answers.
//!
//! ```text
//! owner: offer -> outgoing -+               +-> broker
//!                           | writer thread |
//! owner: confirmations <----+               +<- confirms
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Failure, Notify,
    NotifyCell, Order, Outcome, Rejected, TransportError, Window, WriterStats,
};
use lapin::{Confirmation as Answer, Event};

use crate::SCHEME;
use crate::client::{self, Connected};
use crate::config::{AmqpConfig, QueueType};
use crate::error::{self, broker_limit};
use crate::headers;
use crate::publish::InFlight;

/// How long the broker may refuse everything at first.
const REFUSED_AT_MOST: Duration = Duration::from_secs(1);

/// Publishes chunks to a queue or an exchange, each as one persistent message, and confirms what
/// the broker confirmed.
///
/// A connection has one thread with a runtime in it, which publishes and takes the answers (the
/// client library has another one for the socket). Both end with the connection.
pub struct AmqpWriter {
    config: Arc<AmqpConfig>,
    endpoint: Box<str>,
    capability: Capability,
    shared: Arc<WriterState>,
    thread: Option<JoinHandle<()>>,
}

/// What happened at a writer since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpWriterCounts {
    /// Connections that were made, and everything declared on them.
    pub connections: u64,
    /// Chunks that were published, repetitions included.
    pub published: u64,
    /// Chunks that the broker confirmed.
    pub confirmed: u64,
    /// Chunks that the broker refused (`basic.nack`): to be offered again.
    pub nacked: u64,
    /// Chunks that no queue took (`basic.return`), each the end of its connection.
    pub returned: u64,
    /// How often the broker blocked the connection, because it is short of memory or disk.
    pub blocked: u64,
    /// Whether it is blocked now: the window counts as full.
    pub is_blocked: bool,
}

/// What the owner and the thread share.
#[derive(Default)]
struct WriterState {
    state: Mutex<State>,
    /// Wakes the thread: something was offered, or it is to end.
    work: tokio::sync::Notify,
    /// Wakes an owner that closes.
    answered: Condvar,
    notify: NotifyCell,
}

/// A connection and its chunks: no thread, no I/O.
struct State {
    /// Why nothing can be offered.
    failure: Option<Failure>,
    /// Whether the connection never was.
    is_unopened: bool,
    /// Offered and not published.
    outgoing: VecDeque<Chunk>,
    /// Offered and not answered, `outgoing` included.
    window: Window,
    /// What the owner has not fetched.
    confirmations: Vec<Confirmation>,
    counts: AmqpWriterCounts,
    /// Whether the broker took a chunk on this connection.
    is_proven: bool,
    /// Since when the broker refuses everything on this connection.
    refused_since: Option<Instant>,
    /// How many connections in a row were given up for that.
    fruitless: u32,
    /// While it is blocked nothing is confirmed, and that is no fault of the connection.
    unblocked_at: Option<Instant>,
    /// Whether an offer was handed back because the window was full.
    lacks_room: bool,
    /// The thread is to end, and may say good-bye until then.
    stop: Option<Instant>,
}

impl fmt::Debug for AmqpWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpWriter")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl AmqpWriter {
    /// A writer to the configured queue or exchange; like every writer it starts closed, and the
    /// broker need not be there yet.
    pub fn new(config: AmqpConfig) -> Self {
        // A confirmed message of a classic queue is on disk (it is persistent), one of the others
        // on a quorum of the nodes. Which kind an exchange leads to is its owner's to know.
        let durability = match (config.queue_type, &config.names.queue) {
            (QueueType::Quorum | QueueType::Stream, Some(_)) => Durability::Replicated,
            _ => Durability::Disk,
        };
        let mut capability = Capability::new(SCHEME, Order::PerLane, durability);
        capability.max_chunk_bytes =
            NonZeroUsize::try_from(config.max_chunk_bytes).unwrap_or(NonZeroUsize::MAX);
        config.window.apply(&mut capability);
        Self {
            endpoint: config.to_string().into(),
            config: Arc::new(config),
            capability,
            shared: Arc::default(),
            thread: None,
        }
    }

    /// What happened so far.
    pub fn counts(&self) -> AmqpWriterCounts {
        self.shared.lock().counts
    }

    /// Ends the connection, if there is one, and its thread, which may say good-bye until `by`.
    fn disconnect(&mut self, by: Instant) {
        let mut state = self.shared.lock();
        state.stop = Some(by);
        let closed = || Failure::retry("publish to", "it was closed");
        state.failure.get_or_insert_with(closed);
        drop(state);
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }

    fn connect(&mut self, by: Instant) -> Result<(), Failure> {
        self.shared.lock().reset();
        let (opened, opening) = mpsc::sync_channel(1);
        let (shared, config) = (Arc::clone(&self.shared), Arc::clone(&self.config));
        let endpoint = self.endpoint.clone();
        self.thread = Some(client::spawn("baler-amqp-send", move || async move {
            run(&shared, &config, &endpoint, &opened, by).await;
        })?);
        let left = by.saturating_duration_since(Instant::now());
        match opening.recv_timeout(left) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                Err(Failure::retry("connect to", "no answer in time"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::retry("connect to", "the connecting thread ended"))
            }
        }
    }
}

impl ChunkWriter for AmqpWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let mut state = self.shared.lock();
        if let Some(failure) = &state.failure {
            return Err(Rejected::broken(chunk, failure.at(&self.endpoint)));
        }
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        state.offer(chunk, &self.capability)?;
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        let mut state = self.shared.lock();
        out.append(&mut state.confirmations);
        match &state.failure {
            None => Ok(()),
            Some(failure) => Err(failure.at(&self.endpoint)),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.shared.notify.set(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.shared.notify.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // The broker tells its limit only by closing the channel over a message above it, and not
        // which one that was: from now on such chunks are handed back as too large.
        let failure = self.shared.lock().failure.clone();
        let limit = failure.and_then(|failure| broker_limit(&failure.message));
        if let Some(limit) = limit.and_then(NonZeroUsize::new) {
            let known = self.capability.max_chunk_bytes;
            self.capability.max_chunk_bytes = known.min(limit);
        }
        self.disconnect(Instant::now());
        self.connect(by).map_err(|failure| {
            let error = failure.at(&self.endpoint);
            self.shared.fail(failure);
            error
        })
    }

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.blocked = self.shared.lock().counts.is_blocked;
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let error = self.shared.drain(by);
        // What was not confirmed in time is not worth waiting for a good-bye.
        self.disconnect(if error.is_none() { by } else { Instant::now() });
        let mut state = self.shared.lock();
        let report = CloseReport {
            confirmations: std::mem::take(&mut state.confirmations),
            unconfirmed: state.window.tickets().collect(),
            error: error.map(|failure| failure.at(&self.endpoint)),
        };
        drop(state);
        report
    }
}

impl Drop for AmqpWriter {
    fn drop(&mut self) {
        self.disconnect(Instant::now());
    }
}

/// Connects before `by` and says so; serves the connection until it is gone or stopped.
async fn run(
    shared: &WriterState,
    config: &AmqpConfig,
    endpoint: &str,
    opened: &SyncSender<Result<(), Failure>>,
    by: Instant,
) {
    let connected = match client::connect_to_publish(config, "baler writer", by).await {
        Ok(connected) => connected,
        Err(failure) => {
            // An owner that gave up waiting is not told.
            opened.send(Err(failure)).ok();
            return;
        }
    };
    let mut in_flight = InFlight::new(connected.channel.clone(), config);
    shared.lock().open();
    opened.send(Ok(())).ok();
    let served = serve(shared, config, endpoint, &connected, &mut in_flight).await;
    match served {
        // Everything that can be told was told.
        Ok(by) => drop(connected.close(by).await),
        Err(failure) => {
            // Earlier answers still count. The first error is reported.
            drop(shared.settle(None, &mut in_flight, endpoint));
            shared.fail(failure);
        }
    }
}

/// Publishes and takes answers until it is stopped; yields until when to say good-bye.
async fn serve(
    shared: &WriterState,
    config: &AmqpConfig,
    endpoint: &str,
    connected: &Connected,
    in_flight: &mut InFlight,
) -> Result<Instant, Failure> {
    let mut events = connected.connection.events_listener();
    loop {
        let (chunks, overdue) = {
            let mut state = shared.lock();
            if let Some(by) = state.stop {
                return Ok(by);
            }
            let chunks = state.take_outgoing();
            (chunks, state.overdue_at(in_flight.oldest(), config))
        };
        if !chunks.is_empty() {
            for chunk in chunks {
                in_flight.publish(chunk.bytes, headers::properties(&chunk.meta));
            }
            continue;
        }
        tokio::select! {
            () = shared.work.notified() => {}
            answer = in_flight.next_answer() => {
                shared.settle(Some(answer), in_flight, endpoint)?;
            }
            event = client::next(&mut events) => match event {
                Some(Event::ConnectionBlocked(_)) => shared.set_blocked(true),
                Some(Event::ConnectionUnblocked) => shared.set_blocked(false),
                Some(Event::Error(error)) => return Err(error::of_use("publish to", &error)),
                Some(_) => {}
                None => return Err(Failure::retry("publish to", "the connection ended")),
            },
            () = client::at(overdue) => {
                let time = config.confirm_timeout;
                let message = format!("nothing was confirmed for {time:?}");
                return Err(Failure::retry("publish to", message));
            }
        }
    }
}

impl WriterState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settles the oldest chunks with this answer and those that are there, and tells the owner.
    fn settle(
        &self,
        first: Option<lapin::Result<Answer>>,
        in_flight: &mut InFlight,
        endpoint: &str,
    ) -> Result<(), Failure> {
        let mut state = self.lock();
        let refused_before = state.counts.nacked;
        let mut settled = Ok(());
        let mut next = first;
        while settled.is_ok()
            && let Some(answer) = next.take().or_else(|| in_flight.answer())
        {
            settled = state.settle(answer, endpoint);
        }
        let settled = settled.and_then(|()| state.refused_too_long());
        let is_urgent = state.lacks_room || state.counts.nacked > refused_before;
        drop(state);
        self.answered.notify_all();
        if is_urgent || self.notify.is_awaited() {
            self.notify.notify();
        }
        settled
    }

    /// The broker blocks the connection, or does so no longer.
    fn set_blocked(&self, is_blocked: bool) {
        let mut state = self.lock();
        let counts = &mut state.counts;
        counts.blocked += u64::from(is_blocked && !counts.is_blocked);
        counts.is_blocked = is_blocked;
        if !is_blocked {
            state.unblocked_at = Some(Instant::now());
        }
        drop(state);
        self.notify.notify();
    }

    /// The connection is gone, or could not be made.
    fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.failure = Some(failure);
        state.counts.is_blocked = false;
        drop(state);
        self.answered.notify_all();
        self.notify.notify();
    }

    /// Waits until everything is answered, the connection is gone, or `by`; yields why not
    /// everything was answered.
    fn drain(&self, by: Instant) -> Option<Failure> {
        let waits = |state: &mut State| state.failure.is_none() && !state.window.is_empty();
        let left = by.saturating_duration_since(Instant::now());
        let waited = self.answered.wait_timeout_while(self.lock(), left, waits);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match &state.failure {
            Some(_) if state.is_unopened => None,
            Some(failure) => Some(failure.clone()),
            None if state.window.is_empty() => None,
            None if state.counts.is_blocked => {
                Some(Failure::retry("close", "the broker blocks the connection"))
            }
            None => Some(Failure::retry(
                "close",
                "not everything was confirmed in time",
            )),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            failure: Some(Failure::retry("publish to", "it was not opened")),
            is_unopened: true,
            outgoing: VecDeque::new(),
            window: Window::default(),
            confirmations: Vec::new(),
            counts: AmqpWriterCounts::default(),
            is_proven: false,
            refused_since: None,
            fruitless: 0,
            unblocked_at: None,
            lacks_room: false,
            stop: None,
        }
    }
}

impl State {
    /// Forgets what was not confirmed: a new connection is about to be made.
    fn reset(&mut self) {
        *self = Self {
            failure: Some(Failure::retry("publish to", "it is being opened")),
            is_unopened: self.is_unopened,
            counts: self.counts,
            fruitless: self.fruitless,
            ..Self::default()
        };
        self.counts.is_blocked = false;
    }

    fn open(&mut self) {
        // An owner that has given up waiting has stopped it.
        if self.stop.is_none() {
            self.failure = None;
        }
        self.is_unopened = false;
        self.counts.connections += 1;
    }

    /// Takes a chunk, or hands it back if the window is full or the broker blocks.
    fn offer(&mut self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        self.lacks_room = self.counts.is_blocked || !self.window.take(&chunk, capability);
        if self.lacks_room {
            return Err(Rejected::full(chunk));
        }
        self.outgoing.push_back(chunk);
        Ok(())
    }

    /// Takes the chunks that may be published now.
    ///
    /// The first chunk of a connection goes alone. A queue may have no leader yet, after a restart
    /// or while somebody else declares it: the broker then refuses some chunks and takes those that
    /// follow, which would have overtaken them.
    fn take_outgoing(&mut self) -> VecDeque<Chunk> {
        let chunks = match self.is_proven {
            true => std::mem::take(&mut self.outgoing),
            false if self.outgoing.len() == self.window.len() => {
                self.outgoing.drain(..self.outgoing.len().min(1)).collect()
            }
            false => VecDeque::new(),
        };
        let count = u64::try_from(chunks.len()).unwrap_or(u64::MAX);
        self.counts.published = self.counts.published.saturating_add(count);
        chunks
    }

    /// The oldest published chunk is answered.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more: it is lost, or leads to no queue.
    fn settle(&mut self, answer: lapin::Result<Answer>, endpoint: &str) -> Result<(), Failure> {
        match answer.map_err(|error| error::of_use("publish to", &error))? {
            Answer::Ack(None) => {
                self.counts.confirmed += 1;
                self.is_proven = true;
                self.refused_since = None;
                self.fruitless = 0;
                self.answer(Outcome::Confirmed);
            }
            // An unroutable message is returned first and confirmed then. It is no longer this
            // chunk's matter: the queue is gone. Another connection declares it again.
            Answer::Ack(Some(returned)) | Answer::Nack(Some(returned)) => {
                self.counts.returned += 1;
                let message = format!(
                    "no queue takes the chunk ({} {}); it is sent again, until a queue is declared \
                     or bound",
                    returned.reply_code, returned.reply_text
                );
                return Err(Failure::retry("publish to", message));
            }
            // Without confirms nothing is known, which must never count as confirmed.
            Answer::Nack(None) | Answer::NotRequested => {
                self.counts.nacked += 1;
                self.refused_since.get_or_insert_with(Instant::now);
                let refused = |message| Failure::retry("publish to", message).at(endpoint);
                self.answer(Outcome::Refused(refused(
                    "the broker refused it (basic.nack)",
                )));
                if !self.is_proven {
                    // Else the chunks that wait behind it would go first.
                    self.outgoing.clear();
                    let message = "the broker refused one before it (basic.nack)";
                    while self.answer(Outcome::Refused(refused(message))) {}
                }
            }
        }
        Ok(())
    }

    /// Tells what became of the oldest chunk, if there is one.
    fn answer(&mut self, outcome: Outcome) -> bool {
        let Some(ticket) = self.window.remove_oldest() else {
            return false;
        };
        let confirmation = Confirmation { ticket, outcome };
        self.confirmations.push(confirmation);
        true
    }

    /// Gives up a connection on which the broker has refused everything for too long.
    ///
    /// A channel of RabbitMQ 3.10 that was opened while a quorum queue had no leader can go on
    /// refusing for ever, although the queue has long had one and takes chunks from other channels.
    /// A queue that is full refuses as well, so the patience grows from connection to connection.
    fn refused_too_long(&mut self) -> Result<(), Failure> {
        let patience = REFUSED_AT_MOST.saturating_mul(1 << self.fruitless.min(5));
        match self.refused_since.map(|since| since.elapsed()) {
            Some(refused) if refused >= patience => {
                self.fruitless = self.fruitless.saturating_add(1);
                let message = format!("the broker refused everything for {refused:?} (basic.nack)");
                Err(Failure::retry("publish to", message))
            }
            _ => Ok(()),
        }
    }

    /// When the connection counts as lost because its oldest message is not answered.
    fn overdue_at(&self, oldest: Option<Instant>, config: &AmqpConfig) -> Option<Instant> {
        let since = oldest.filter(|_| !self.counts.is_blocked)?;
        let since = self.unblocked_at.map_or(since, |at| since.max(at));
        since.checked_add(config.confirm_timeout)
    }
}

#[cfg(test)]
mod tests {
    use baler_connector_testkit::ChunkSource;

    use super::*;

    fn opened(chunks: usize) -> State {
        let mut state = State::default();
        state.reset();
        state.open();
        let capability = Capability::new(SCHEME, Order::PerLane, Durability::Disk);
        for chunk in ChunkSource::new(1).take(chunks) {
            state.offer(chunk, &capability).unwrap();
        }
        state
    }

    fn published(state: &mut State) -> Vec<u64> {
        state
            .take_outgoing()
            .iter()
            .map(|chunk| chunk.ticket)
            .collect()
    }

    #[test]
    fn first_chunk_of_a_connection_goes_alone_and_nothing_overtakes_it() {
        let mut state = opened(3);
        assert_eq!(published(&mut state), [0]);
        assert_eq!(
            published(&mut state),
            [0; 0],
            "the others wait for its answer"
        );
        state.settle(Ok(Answer::Nack(None)), "there").unwrap();
        assert_eq!(published(&mut state), [0; 0]);
        let refused = std::mem::take(&mut state.confirmations);
        let tickets: Vec<_> = refused.iter().map(|it| it.ticket).collect();
        assert_eq!(tickets, [0, 1, 2]);
        for Confirmation { outcome, .. } in refused {
            assert!(matches!(outcome, Outcome::Refused(error) if error.is_retryable()));
        }

        let mut state = opened(3);
        assert_eq!(published(&mut state), [0]);
        state.settle(Ok(Answer::Ack(None)), "there").unwrap();
        assert_eq!(published(&mut state), [1, 2]);
        // The next connection begins anew.
        state.reset();
        assert!(!state.is_proven && state.window.is_empty());
    }
}
