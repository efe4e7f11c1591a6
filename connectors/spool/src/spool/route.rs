//! Which way chunks go: straight through or to the thread, and when that changes.

use std::sync::Arc;
use std::time::Instant;

use baler_common::transport::{
    Chunk, ChunkWriter, CloseReport, Confirmation, NotifyCell, Outcome, RejectReason, Rejected,
    RetryClass, TransportError,
};

use super::{DISK_GRACE, Spool};
use crate::direct::{Broken, Direct};
use crate::shared::{Diverted, SpoolNotification};

/// When the medium last confirmed anything, as far as looks at it tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    confirmed: u64,
    since: Instant,
    blocked_since: Option<Instant>,
}

impl Progress {
    pub(super) fn begin() -> Self {
        Self {
            confirmed: 0,
            since: Instant::now(),
            blocked_since: None,
        }
    }
}

impl Spool {
    /// Takes the writer of the medium back when the thread has no more use for it.
    pub(super) fn pick_up(&mut self) {
        if self.direct.is_some() || !self.started {
            return;
        }
        let mut state = self.shared.lock();
        let Some(mut inner) = state.returned.take() else {
            return;
        };
        let backlog = state.take_pending();
        self.early.append(&mut state.outcomes);
        drop(state);
        // The thread's bell must not ring for chunks that go straight through.
        inner.set_notify(Arc::<NotifyCell>::clone(&self.shared.owner));
        inner.set_awaited(self.awaited);
        self.capability = inner.capability().clone();
        self.progress = Progress::begin();
        let mut direct = Direct::new(inner, backlog);
        let offered = direct.offer_backlog();
        self.direct = Some(direct);
        if let Err(broken) = offered {
            self.leave(broken);
        }
    }

    /// Ends the direct way.
    pub(super) fn leave(&mut self, broken: Broken) {
        match broken {
            Broken::Away(error) => self.divert(error, Instant::now()),
            Broken::Shrunk(error) => self.broken = Some(error),
        }
    }

    /// Gives the writer of the medium and what it has not confirmed to the thread.
    pub(super) fn divert(&mut self, error: TransportError, since: Instant) {
        let Some(mut direct) = self.direct.take() else {
            return;
        };
        // What was confirmed before the break still counts; that it broke is known.
        let known = direct.confirmations(&mut self.early);
        drop(known);
        let worked = direct.confirmed > 0;
        let (mut inner, chunks) = direct.into_parts();
        self.give_to_thread(inner.as_mut());
        self.shared.order(|state| {
            chunks.into_iter().for_each(|chunk| state.push(chunk));
            state.verdict = Some(Ok(()));
            state.diverted = Some(Diverted {
                inner,
                since,
                error: Some(error),
                worked,
            });
        });
    }

    /// Lets the medium's writer tell the thread, and of everything: the thread goes by that alone.
    pub(super) fn give_to_thread(&self, inner: &mut dyn ChunkWriter) {
        inner.set_notify(Arc::new(SpoolNotification(Arc::downgrade(&self.shared))));
        inner.set_awaited(true);
    }

    /// Whether the medium has stopped answering; asked now and then.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let Some(direct) = &self.direct else {
            return;
        };
        let progress = &mut self.progress;
        if direct.is_idle() || direct.confirmed != progress.confirmed {
            progress.confirmed = direct.confirmed;
            progress.since = now;
        }
        match direct.inner.stats().blocked {
            true => {
                progress.blocked_since.get_or_insert(now);
            }
            false => progress.blocked_since = None,
        }
        let lasts = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        let (since, why) = match progress.blocked_since {
            Some(since) if lasts(since, self.config.spool_after) && !direct.is_idle() => {
                (since, "it asks to wait")
            }
            _ if lasts(progress.since, self.config.stall_after) => {
                (progress.since, "it confirms nothing of what it has")
            }
            _ => return,
        };
        let error = self.error("write to", RetryClass::Retry, why);
        self.divert(error, since);
    }

    /// Offers a chunk to the thread.
    pub(super) fn offer_detour(&self, chunk: Chunk) -> Result<(), Rejected> {
        let max_chunk_bytes = self.capability.max_chunk_bytes.get();
        if chunk.bytes.len() > max_chunk_bytes {
            let reason = RejectReason::TooLarge { max_chunk_bytes };
            return Err(Rejected { chunk, reason });
        }
        let mut state = self.shared.lock();
        let broken = match &state.verdict {
            _ if !self.started => Some(self.not_open()),
            None => Some(self.not_open()),
            Some(Err(error)) => Some(error.again()),
            Some(Ok(())) => None,
        };
        if let Some(error) = broken {
            let reason = RejectReason::Broken(Box::new(error));
            return Err(Rejected { chunk, reason });
        }
        let bytes = state.pending_bytes.saturating_add(chunk.bytes.len());
        let is_full = state.pending.len() >= self.capability.window_chunks.get()
            || (!state.pending.is_empty() && bytes > self.capability.window_bytes.get());
        if is_full {
            let reason = RejectReason::Full;
            return Err(Rejected { chunk, reason });
        }
        state.push(chunk);
        drop(state);
        self.shared.order(|_| ());
        Ok(())
    }

    pub(super) fn not_open(&self) -> TransportError {
        self.error("write to", RetryClass::Retry, "the spool is not open")
    }

    /// Closes the medium's writer; what it did not confirm goes to the thread.
    pub(super) fn close_direct(&self, direct: Direct, by: Instant, report: &mut CloseReport) {
        let left = by.saturating_duration_since(Instant::now());
        let (inner, mut chunks) = direct.into_parts();
        let closed = inner.close(by - DISK_GRACE.min(left / 2));
        for Confirmation { ticket, outcome } in closed.confirmations {
            // A refusal for now would be one for ever at this point; the disk keeps the chunk.
            if matches!(&outcome, Outcome::Refused(error) if error.class != RetryClass::Final) {
                continue;
            }
            chunks.retain(|chunk| chunk.ticket != ticket);
            report.confirmations.push(Confirmation { ticket, outcome });
        }
        report.error = closed.error;
        self.shared.order(|state| {
            chunks.into_iter().for_each(|chunk| state.push(chunk));
        });
    }
}
