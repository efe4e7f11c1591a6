//! What the owner of a writer and its two threads share.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, Confirmation, Failure, Notify, NotifyCell, Outcome, Rejected, Window,
};

use super::threads;
use crate::client::{Connected, Socket};
use crate::error::failed;

/// What the owner of a writer and its two threads share.
#[derive(Debug)]
pub(super) struct WriterState {
    state: Mutex<State>,
    /// Wakes the thread that writes.
    work: Condvar,
    /// Wakes an owner that closes.
    answered: Condvar,
    notify: NotifyCell,
}

#[derive(Debug)]
struct State {
    socket: Option<Socket>,
    /// Why nothing can be offered.
    failure: Option<Failure>,
    /// Whether the connection never was.
    unopened: bool,
    /// Offered and not yet given to the thread that writes.
    queue: VecDeque<Chunk>,
    /// What was offered and not acknowledged, `queue` included.
    window: Window,
    /// How many chunks of this connection are acknowledged.
    acknowledged: u64,
    /// Tickets that the owner has not fetched.
    confirmed: Vec<u64>,
    /// Nothing more will be offered.
    closing: bool,
    /// An offer was handed back since the window was full.
    lacks_room: bool,
    /// The thread that writes has nothing to do and must be woken.
    sender_waits: bool,
}

/// What the thread that writes is to do.
#[derive(Debug)]
pub(super) enum Work {
    Bye,
    Heartbeat,
    Stop,
    Write,
}

impl Default for WriterState {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                socket: None,
                failure: Some(Failure::retry("write to", "it was not opened")),
                unopened: true,
                queue: VecDeque::new(),
                window: Window::default(),
                acknowledged: 0,
                confirmed: Vec::new(),
                closing: false,
                lacks_room: false,
                sender_waits: false,
            }),
            work: Condvar::new(),
            answered: Condvar::new(),
            notify: NotifyCell::default(),
        }
    }
}

/// Starts the two threads of a new connection.
pub(super) fn start(
    state: &Arc<WriterState>,
    connected: &Connected,
    heartbeat: Duration,
) -> Result<Vec<JoinHandle<()>>, Failure> {
    state.open(connected.socket.clone());
    let spawn = |name: &str, run: fn(&WriterState, Socket, Duration), time: Duration| {
        let (state, socket) = (Arc::clone(state), connected.socket.clone());
        let builder = thread::Builder::new().name(name.into());
        builder
            .spawn(move || run(&state, socket, time))
            .map_err(|error| failed("set up", &error))
    };
    Ok(vec![
        spawn("baler-tcp-send", threads::send, heartbeat)?,
        spawn("baler-tcp-acks", threads::receive, connected.silence)?,
    ])
}

impl WriterState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, socket: Socket) {
        let mut state = self.lock();
        state.socket = Some(socket);
        state.failure = None;
        state.unopened = false;
        state.acknowledged = 0;
    }

    /// Why nothing can be offered.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Takes a chunk unless the window is full, or hands it back.
    pub(super) fn offer(&self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        let mut state = self.lock();
        state.lacks_room = !state.window.take(&chunk, capability);
        if state.lacks_room {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        // A wake-up costs a system call; a thread that is writing looks again when it is done.
        let waits = std::mem::take(&mut state.sender_waits);
        drop(state);
        if waits {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Appends what was confirmed; yields why the connection is gone, if it is.
    pub(super) fn confirmations(&self, out: &mut Vec<Confirmation>) -> Option<Failure> {
        let mut state = self.lock();
        out.extend(state.confirmed.drain(..).map(|ticket| Confirmation {
            ticket,
            outcome: Outcome::Confirmed,
        }));
        state.failure.clone()
    }

    pub(super) fn set_notify(&self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    pub(super) fn set_awaited(&self, awaited: bool) {
        self.notify.set_awaited(awaited);
    }

    /// Waits until there is work, or for a heartbeat's time; puts it into `chunks`.
    pub(super) fn wait_for_work(&self, heartbeat: Duration, chunks: &mut VecDeque<Chunk>) -> Work {
        let mut state = self.lock();
        state.sender_waits = true;
        let idle = |state: &mut State| {
            let done = state.closing && state.window.is_empty();
            state.failure.is_none() && state.queue.is_empty() && !done
        };
        let (mut state, _) = self
            .work
            .wait_timeout_while(state, heartbeat, idle)
            .unwrap_or_else(PoisonError::into_inner);
        state.sender_waits = false;
        if state.failure.is_some() {
            Work::Stop
        } else if !state.queue.is_empty() {
            std::mem::swap(chunks, &mut state.queue);
            Work::Write
        } else if state.closing && state.window.is_empty() {
            Work::Bye
        } else {
            Work::Heartbeat
        }
    }

    /// The receiver has settled this many chunks of the connection; whether that is more than
    /// before. [`WriterState::tell_confirmed`] follows.
    ///
    /// # Errors
    ///
    /// It cannot have: the least and the most that it can have settled.
    pub(super) fn acknowledge(&self, settled: u64) -> Result<bool, (u64, u64)> {
        let mut state = self.lock();
        let low = state.acknowledged;
        let unacknowledged = u64::try_from(state.window.len() - state.queue.len());
        let high = low.saturating_add(unacknowledged.unwrap_or(u64::MAX));
        if !(low..=high).contains(&settled) {
            return Err((low, high));
        }
        for _ in low..settled {
            let ticket = state.window.remove_oldest();
            state.confirmed.extend(ticket);
        }
        state.acknowledged = settled;
        Ok(settled > low)
    }

    /// Wakes the owner and the thread that waits for the last confirmation.
    pub(super) fn tell_confirmed(&self) {
        let state = self.lock();
        let done = state.closing && state.window.is_empty();
        let tells = state.lacks_room || self.notify.is_awaited();
        drop(state);
        if done {
            self.work.notify_one();
            self.answered.notify_all();
        }
        if tells {
            self.notify.notify();
        }
    }

    /// The connection is gone. The first reason stays.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        state.failure = Some(failure);
        state.hang_up();
        drop(state);
        self.work.notify_all();
        self.answered.notify_all();
        self.notify.notify();
    }

    /// Ends the connection for the owner.
    pub(super) fn hang_up(&self) {
        let mut state = self.lock();
        state.hang_up();
        if state.failure.is_none() {
            state.failure = Some(Failure::retry("write to", "it was closed"));
        }
        drop(state);
        self.work.notify_all();
    }

    /// Forgets what was not confirmed.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.queue.clear();
        state.window.clear();
        state.confirmed.clear();
    }

    /// Waits until everything is acknowledged, the connection is gone, or `by`; yields why it is
    /// gone, if it is.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let mut state = self.lock();
        if state.failure.is_some() {
            return state.failure.clone().filter(|_| !state.unopened);
        }
        state.closing = true;
        self.work.notify_all();
        // After the bye the receiver closes the connection, which is no failure.
        while !state.window.is_empty() {
            if state.failure.is_some() {
                return state.failure.clone();
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = "not everything was acknowledged in time";
                return Some(Failure::retry("close", message));
            }
            let waited = self.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// Tickets that are not acknowledged, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}

impl State {
    /// Wakes both threads out of what they wait for.
    fn hang_up(&mut self) {
        if let Some(socket) = self.socket.take() {
            socket.shut_down();
        }
    }
}
