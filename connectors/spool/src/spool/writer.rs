//! The spool as a writer, as its owner sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Notify, RejectReason, Rejected,
    RetryClass, TransportError, WriterStats,
};

use super::{DISK_GRACE, Spool};
use crate::shared::{Diverted, Stop};
use crate::watch::SpoolRoute;

impl ChunkWriter for Spool {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.pick_up();
        if let Some(error) = &self.broken {
            return Err(Rejected::broken(chunk, error.again()));
        }
        let Some(direct) = &mut self.direct else {
            return self.offer_detour(chunk);
        };
        match direct.offer(chunk) {
            Err(Rejected {
                chunk,
                reason: RejectReason::Broken(error),
            }) => {
                self.divert(*error, Instant::now());
                self.offer_detour(chunk)
            }
            taken => taken,
        }
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        self.pick_up();
        out.append(&mut self.early);
        if let Some(error) = &self.broken {
            return Err(error.again());
        }
        if let Some(direct) = &mut self.direct {
            match direct.confirmations(out) {
                Ok(()) => {
                    if self.shared.look.load(Ordering::Relaxed) {
                        self.shared.look.store(false, Ordering::Relaxed);
                        self.look();
                    }
                }
                Err(broken) => self.leave(broken),
            }
            out.append(&mut self.early);
            return self
                .broken
                .as_ref()
                .map_or(Ok(()), |error| Err(error.again()));
        }
        let mut state = self.shared.lock();
        out.append(&mut state.outcomes);
        match &state.verdict {
            _ if !self.started => Err(self.not_open()),
            None => Err(self.not_open()),
            Some(Err(error)) => Err(error.again()),
            Some(Ok(())) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.shared.owner.set(Arc::clone(&notify));
        if let Some(direct) = &mut self.direct {
            direct.inner.set_notify(notify);
        }
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.awaited = awaited;
        // On the detour the writer is the thread's, which tells of what is on disk as ever.
        if let Some(direct) = &mut self.direct {
            direct.inner.set_awaited(awaited);
        }
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.broken = None;
        self.early.clear();
        let mut inner = match self.direct.take() {
            Some(direct) => Some(direct.into_parts().0),
            None => self.fresh.take(),
        };
        if let Some(inner) = &mut inner {
            self.give_to_thread(inner.as_mut());
        }
        self.shared.order(|state| {
            state.generation = state.generation.wrapping_add(1);
            state.take_pending();
            state.outcomes.clear();
            state.attempt = true;
            state.verdict = None;
            // One that came back meanwhile and was not picked up is as good as any.
            if let Some(inner) = inner.or_else(|| state.returned.take()) {
                state.diverted = Some(Diverted {
                    inner,
                    since: Instant::now(),
                    error: None,
                    worked: false,
                });
            }
        });
        if !self.started {
            self.start()?;
        }
        let state = self
            .shared
            .wait(by, |state| state.verdict.is_some() || state.ended);
        if let Some(capability) = &state.capability {
            self.capability = capability.clone();
        }
        let verdict = state.verdict.clone();
        drop(state);
        match verdict {
            Some(Ok(())) => {
                self.pick_up();
                Ok(())
            }
            Some(Err(error)) => Err(error.again()),
            None => Err(self.error(
                "open",
                RetryClass::Retry,
                "neither the medium nor the disk answered in time",
            )),
        }
    }

    fn stats(&self) -> WriterStats {
        let mut stats = match &self.direct {
            Some(direct) => direct.inner.stats(),
            None => {
                let mut stats = WriterStats::default();
                stats.blocked = self.shared.lock().blocked;
                stats
            }
        };
        stats.spool = self.shared.watch.stats();
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let mut report = CloseReport::default();
        if !self.started {
            return match self.fresh.take() {
                Some(inner) => inner.close(by),
                None => report,
            };
        }
        self.pick_up();
        report.confirmations.append(&mut self.early);
        if let Some(direct) = self.direct.take() {
            self.close_direct(direct, by, &mut report);
        }
        self.shared.order(|state| state.stop = Stop::Close(by));
        let patience = by.max(Instant::now()) + DISK_GRACE * 2;
        let mut state = self.shared.wait(patience, |state| state.ended);
        report.confirmations.append(&mut state.outcomes);
        let unconfirmed = state.take_pending();
        report.unconfirmed = unconfirmed.iter().map(|chunk| chunk.ticket).collect();
        report.error = report.error.or_else(|| state.end_error.take());
        if report.unconfirmed.is_empty() {
            // That the medium is away is no failure of the spool's.
            report.error = None;
        }
        // A thread that hangs in the disk finds nothing to do when it comes back.
        state.stop = Stop::Drop;
        drop(state);
        self.shared
            .watch
            .update(|status| status.route = SpoolRoute::Closed);
        report
    }
}
