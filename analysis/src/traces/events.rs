//! Converts the events of one trace to calls, and repairs missing ends.

use serde::{Deserialize, Serialize};

use super::operations::{KindId, OperationId};
use super::tree::{Call, Reason};

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Event {
    /// Its number in the trace, from 0.
    pub(super) order: i32,
    pub(super) kind: EventKind,
    /// Nanoseconds since the Unix epoch.
    pub(super) time: i64,
    pub(super) operation: KindId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    After,
    AfterFailed,
    Before,
    /// It has a number, but is neither the start nor the end of a call.
    Other,
}

/// The calls of a trace.
#[derive(Debug, Default)]
pub(super) struct EventCalls {
    pub(super) calls: Vec<Call>,
    /// For each event, the position of the call that is open after it.
    pub(super) event_calls: Vec<u32>,
    /// The number of added ends of calls.
    pub(super) added: usize,
    open: Vec<usize>,
}

impl EventCalls {
    /// Makes calls of events, which are in order and without copies.
    ///
    /// An end is missing where a number is missing, or at the end of the trace. With `repair` it
    /// counts as the end of the innermost open call, at the time of the next event. The result is
    /// used only if everything after it fits.
    pub(super) fn of(
        events: &[Event],
        repair: bool,
        operation: impl FnMut(KindId) -> OperationId,
    ) -> Result<Self, Reason> {
        let mut made = Self::default();
        match made.replay(events, repair, operation) {
            Ok(()) => Ok(made),
            // A repair that leads to a contradiction does not count.
            Err(_) if made.added > 0 => Err(Reason::EventMissing),
            Err(reason) => Err(reason),
        }
    }

    fn replay(
        &mut self,
        events: &[Event],
        repair: bool,
        mut operation: impl FnMut(KindId) -> OperationId,
    ) -> Result<(), Reason> {
        let mut kinds: Vec<KindId> = Vec::new();
        let mut expected = 0_i32;
        for event in events {
            if event.order < expected {
                return Err(Reason::OrderRepeated);
            }
            while expected < event.order {
                if !repair || self.open.is_empty() {
                    return Err(Reason::EventMissing);
                }
                self.close(event.time, false);
                self.added += 1;
                self.note_event();
                expected += 1;
            }
            match event.kind {
                EventKind::Before => {
                    kinds.push(event.operation);
                    self.enter(event.time, operation(event.operation));
                }
                EventKind::Other => {}
                EventKind::After | EventKind::AfterFailed => {
                    let kind = self.open.last().map(|call| kinds[*call]);
                    if kind != Some(event.operation) {
                        return Err(Reason::AfterMismatch);
                    }
                    self.close(event.time, event.kind == EventKind::AfterFailed);
                }
            }
            self.note_event();
            // It is at most the number of events and of calls.
            expected += 1;
        }
        if self.open.is_empty() {
            return Ok(());
        }
        if !repair {
            return Err(Reason::AfterMissing);
        }
        let last = events.last().map_or(0, |event| event.time);
        while !self.open.is_empty() {
            self.close(last, false);
            self.added += 1;
        }
        Ok(())
    }

    fn enter(&mut self, time: i64, operation: OperationId) {
        let number = |count| i32::try_from(count).expect("a trace has fewer than 2^31 calls");
        let call = Call {
            eoi: number(self.calls.len()),
            ess: number(self.open.len()),
            tin: time,
            tout: time,
            operation,
            failed: false,
            asynchronous: false,
        };
        self.open.push(self.calls.len());
        self.calls.push(call);
    }

    fn close(&mut self, time: i64, failed: bool) {
        let position = self.open.pop().expect("a call is open");
        let call = &mut self.calls[position];
        call.tout = time;
        call.failed = failed;
    }

    /// Notes the innermost open call for an event; without one, the first call.
    fn note_event(&mut self) {
        let position = self.open.last().map_or(0, |call| *call);
        let position = u32::try_from(position).expect("a trace has fewer than 2^31 calls");
        self.event_calls.push(position);
    }
}

#[cfg(test)]
mod tests;
