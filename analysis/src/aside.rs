//! Putting poison aside on a thread of its own: a disk that forces three files to the platter for
//! each chunk must not hold up those that are well.

use std::collections::VecDeque;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::transport::{ChunkIdentity, Origin, Token};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::quarantine::{Poison, Quarantine};

/// How many chunks may wait for the quarantine; beyond it the source waits, too.
const MAX_WAITING: usize = 64;

/// Poison on its way to the quarantine.
#[derive(Debug)]
pub(crate) struct Job {
    /// None for what the medium itself has put out of the way.
    pub(crate) token: Option<Token>,
    pub(crate) bytes: Bytes,
    pub(crate) origin: Origin,
    pub(crate) identity: Option<ChunkIdentity>,
    pub(crate) reason: Box<str>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) token: Option<Token>,
    pub(crate) origin: Origin,
    pub(crate) result: io::Result<()>,
}

/// A quarantine and, from the first poison on, its thread.
pub(crate) struct Aside {
    state: State,
    /// Handed to the thread and not answered, oldest first: it answers in order.
    waiting: VecDeque<(Option<Token>, Origin)>,
}

enum State {
    Idle(Box<dyn Quarantine>),
    Running {
        jobs: Sender<Job>,
        kept: Receiver<Kept>,
        thread: JoinHandle<()>,
    },
    /// The thread could not be started, or panicked.
    Gone,
}

impl Aside {
    pub(crate) fn new(quarantine: Box<dyn Quarantine>) -> Self {
        Self {
            state: State::Idle(quarantine),
            waiting: VecDeque::new(),
        }
    }

    /// Hands poison over; waits when too much of it waits already.
    pub(crate) fn put(&mut self, job: Job) {
        self.start();
        self.waiting.push_back((job.token, job.origin.clone()));
        if let State::Running { jobs, .. } = &self.state
            && jobs.send(job).is_err()
        {
            self.state = State::Gone;
        }
    }

    /// What has an answer by now.
    pub(crate) fn next(&mut self) -> Option<Kept> {
        let answer = match &self.state {
            State::Running { kept, .. } => kept.try_recv().map_err(|error| error.is_empty()),
            State::Idle(_) => Err(true),
            State::Gone => Err(false),
        };
        self.answered(answer)
    }

    /// Waits for an answer, `by` at most; none when nothing waits for one.
    pub(crate) fn wait(&mut self, by: Instant) -> Option<Kept> {
        let answer = match &self.state {
            State::Running { kept, .. } if !self.waiting.is_empty() => {
                kept.recv_deadline(by).map_err(|error| error.is_timeout())
            }
            State::Gone => Err(false),
            _ => Err(true),
        };
        self.answered(answer)
    }

    /// An answer, or whether there may be one later.
    fn answered(&mut self, answer: Result<Kept, bool>) -> Option<Kept> {
        match answer {
            Ok(kept) => {
                self.waiting.pop_front();
                Some(kept)
            }
            Err(true) => None,
            Err(false) => {
                self.state = State::Gone;
                let (token, origin) = self.waiting.pop_front()?;
                let result = Err(io::Error::other("the quarantine's thread has ended"));
                Some(Kept {
                    token,
                    origin,
                    result,
                })
            }
        }
    }

    fn start(&mut self) {
        let State::Idle(_) = &self.state else { return };
        let State::Idle(mut quarantine) = std::mem::replace(&mut self.state, State::Gone) else {
            return;
        };
        let (jobs, todo) = bounded::<Job>(MAX_WAITING);
        // Bounded by what waits.
        let (done, kept) = unbounded();
        let work = move || {
            for job in todo {
                let result = quarantine.put_aside(Poison {
                    bytes: &job.bytes,
                    origin: &job.origin,
                    identity: job.identity,
                    reason: &job.reason,
                });
                let Job { token, origin, .. } = job;
                let answer = Kept {
                    token,
                    origin,
                    result,
                };
                if done.send(answer).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("baler-quarantine".to_owned());
        if let Ok(thread) = thread.spawn(work) {
            self.state = State::Running { jobs, kept, thread };
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What is being kept is kept whole, and a quarantine that has a connection closes it.
        if let State::Running { jobs, kept, thread } =
            std::mem::replace(&mut self.state, State::Gone)
        {
            drop((jobs, kept));
            thread.join().ok();
        }
    }
}
