//! Putting poison aside on a thread of its own, in groups: a disk that forces files to the platter must
//! not hold up chunks that are well, and forces those of many chunks in little more time than those
//! of one.

use std::collections::VecDeque;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::transport::{ChunkMeta, Origin, Token};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::quarantine::{Poison, Quarantine};

/// How many chunks may wait for the quarantine; beyond it the source waits, too.
const MAX_WAITING: usize = 1_024;

/// How many bytes of them; one chunk always may.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// How many chunks the quarantine gets at a time, at most: a folder has two files of each open.
const MAX_GROUP: usize = 64;

/// Poison on its way to the quarantine.
#[derive(Debug)]
pub(crate) struct Job {
    /// None for what the medium itself has put out of the way.
    pub(crate) token: Option<Token>,
    pub(crate) bytes: Bytes,
    pub(crate) origin: Origin,
    pub(crate) meta: Option<ChunkMeta>,
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
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Answers that came while there was too much to take more.
    early: VecDeque<Kept>,
}

struct Waiting {
    token: Option<Token>,
    origin: Origin,
    bytes: usize,
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
            waiting_bytes: 0,
            early: VecDeque::new(),
        }
    }

    /// Whether an answer is yet to come.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands poison over; waits when too much of it waits already.
    pub(crate) fn put(&mut self, job: Job) {
        self.start();
        let bytes = job.bytes.len();
        while self.waiting.len() >= MAX_WAITING
            || self.is_waiting() && self.waiting_bytes.saturating_add(bytes) > MAX_WAITING_BYTES
        {
            let answer = match &self.state {
                State::Running { kept, .. } => kept.recv().map_err(|_| false),
                State::Idle(_) | State::Gone => Err(false),
            };
            let Some(kept) = self.answered(answer) else {
                break;
            };
            self.early.push_back(kept);
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting {
            token: job.token,
            origin: job.origin.clone(),
            bytes,
        });
        if let State::Running { jobs, .. } = &self.state
            && jobs.send(job).is_err()
        {
            self.state = State::Gone;
        }
    }

    /// What has an answer by now.
    pub(crate) fn next(&mut self) -> Option<Kept> {
        if let Some(kept) = self.early.pop_front() {
            return Some(kept);
        }
        let answer = match &self.state {
            State::Running { kept, .. } => kept.try_recv().map_err(|error| error.is_empty()),
            State::Idle(_) => Err(true),
            State::Gone => Err(false),
        };
        self.answered(answer)
    }

    /// Waits for an answer, `by` at most; none when nothing waits for one.
    pub(crate) fn wait(&mut self, by: Instant) -> Option<Kept> {
        if let Some(kept) = self.early.pop_front() {
            return Some(kept);
        }
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
                self.answer_next();
                Some(kept)
            }
            Err(true) => None,
            Err(false) => {
                self.state = State::Gone;
                let Waiting { token, origin, .. } = self.answer_next()?;
                let result = Err(io::Error::other("the quarantine's thread has ended"));
                Some(Kept {
                    token,
                    origin,
                    result,
                })
            }
        }
    }

    fn answer_next(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.bytes);
        Some(waiting)
    }

    fn start(&mut self) {
        let State::Idle(_) = &self.state else { return };
        let State::Idle(mut quarantine) = std::mem::replace(&mut self.state, State::Gone) else {
            return;
        };
        // Both are bounded by what may wait.
        let (jobs, todo) = unbounded::<Job>();
        let (done, kept) = unbounded();
        let work = move || {
            while let Ok(first) = todo.recv() {
                let mut group = vec![first];
                group.extend(todo.try_iter().take(MAX_GROUP.saturating_sub(1)));
                let results = put_aside(&mut *quarantine, &group);
                for (Job { token, origin, .. }, result) in group.into_iter().zip(results) {
                    let answer = Kept {
                        token,
                        origin,
                        result,
                    };
                    if done.send(answer).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("baler-quarantine".to_owned());
        if let Ok(thread) = thread.spawn(work) {
            self.state = State::Running { jobs, kept, thread };
        }
    }
}

/// As many results as there are jobs, whatever the quarantine says.
fn put_aside(
    quarantine: &mut dyn Quarantine,
    group: &[Job],
) -> impl Iterator<Item = io::Result<()>> + use<> {
    let group: Vec<Poison<'_>> = group
        .iter()
        .map(|job| Poison {
            bytes: &job.bytes,
            origin: &job.origin,
            meta: job.meta,
            reason: &job.reason,
        })
        .collect();
    let results = quarantine.put_group_aside(&group);
    let unknown = || {
        Err(io::Error::other(
            "the quarantine does not say what became of it",
        ))
    };
    results.into_iter().chain(std::iter::repeat_with(unknown))
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
