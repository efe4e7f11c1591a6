//! The callers of Kieker's calls, which end after the calls that they make: often in a later chunk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baler_connector_kieker::types::OperationExecutionRecord;
use tokio::sync::Notify;
use tokio::time::{self, Instant};

/// The calls of all chunks that are not sent, by trace.
#[derive(Debug, Default)]
pub(super) struct Calls {
    traces: Mutex<HashMap<i64, Vec<Call>>>,
    /// Wakes chunks that wait for callers.
    changed: Notify,
}

/// A call of a chunk.
#[derive(Debug, Clone, Copy)]
struct Call {
    ticket: u64,
    eoi: i32,
    ess: i32,
    tin: i64,
    tout: i64,
}

/// Takes the calls of a chunk back when it is dropped.
#[derive(Debug)]
pub(super) struct Registered<'a> {
    calls: &'a Calls,
    ticket: u64,
    traces: HashSet<i64>,
}

impl Calls {
    /// Adds the calls of a chunk.
    pub(super) fn register(
        &self,
        ticket: u64,
        calls: &[OperationExecutionRecord],
    ) -> Registered<'_> {
        let of_traces = || calls.iter().filter(|it| has_trace(it));
        let mut traces = self.lock();
        for call in of_traces() {
            traces.entry(call.trace_id).or_default().push(Call {
                ticket,
                eoi: call.eoi,
                ess: call.ess,
                tin: call.tin,
                tout: call.tout,
            });
        }
        drop(traces);
        self.changed.notify_waiters();
        Registered {
            calls: self,
            ticket,
            traces: of_traces().map(|it| it.trace_id).collect(),
        }
    }

    /// Returns the order index of the caller of each call, by the call's own.
    pub(super) fn callers(&self, trace_id: i64) -> HashMap<i32, i32> {
        let mut trace = self.lock().get(&trace_id).cloned().unwrap_or_default();
        trace.sort_by_key(|call| call.eoi);
        let mut callers = HashMap::new();
        // The last call at each size of the stack.
        let mut stack: BTreeMap<i32, Call> = BTreeMap::new();
        for call in trace {
            drop(stack.split_off(&call.ess));
            let below = stack.last_key_value();
            let caller = below.filter(|(ess, _)| **ess + 1 == call.ess);
            // If the caller is not known, an earlier call may stand where it stood.
            let caller = caller.filter(|(_, it)| it.tin <= call.tin && call.tout <= it.tout);
            callers.extend(caller.map(|(_, it)| (call.eoi, it.eoi)));
            stack.insert(call.ess, call);
        }
        callers
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Vec<Call>>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered<'_> {
    /// Whether the first call of each of the chunk's traces is known, which ends last.
    pub(super) fn is_complete(&self) -> bool {
        let traces = self.calls.lock();
        let known = |it| traces.get(it).into_iter().flatten();
        let mut own = self.traces.iter();
        own.all(|it| known(it).any(|call: &Call| call.ess == 0))
    }

    /// Waits until they are, until `by` at most.
    pub(super) async fn completed(&self, by: Instant) {
        let completed = async {
            loop {
                let changed = self.calls.changed.notified();
                if self.is_complete() {
                    return;
                }
                changed.await;
            }
        };
        time::timeout_at(by, completed).await.ok();
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut traces = self.calls.lock();
        for id in &self.traces {
            let trace = traces.get_mut(id);
            let is_empty = trace.is_some_and(|it| {
                it.retain(|call| call.ticket != self.ticket);
                it.is_empty()
            });
            if is_empty {
                traces.remove(id);
            }
        }
    }
}

/// Whether a call belongs to a trace.
pub(super) fn has_trace(call: &OperationExecutionRecord) -> bool {
    call.trace_id != -1 && call.eoi >= 0 && call.ess >= 0
}
