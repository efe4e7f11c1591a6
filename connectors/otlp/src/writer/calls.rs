//! The callers of calls, which end after the calls that they make: often in a later chunk.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{self, Instant};

/// The most traces from other processes whose origins are known. A trace that lasts longer than as
/// many others need to begin loses its origin.
const MAX_ORIGINS: usize = 65_536;

/// The calls of all chunks that are not sent, and the origins of their traces.
#[derive(Debug, Default)]
pub(super) struct Calls {
    traces: Mutex<Traces>,
    /// Wakes chunks that wait for callers.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Traces {
    calls: HashMap<i64, Vec<(u64, Place)>>,
    origins: HashMap<i64, Origin>,
    /// The traces in `origins`, the oldest first.
    order: VecDeque<i64>,
}

/// The place of a call in its trace, as in Kieker's records, and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) trace_id: i64,
    pub(super) eoi: i32,
    pub(super) ess: i32,
    pub(super) tin: i64,
    pub(super) tout: i64,
    /// Whether only its place tells its caller.
    pub(super) awaits_caller: bool,
}

/// Where a trace from another process comes from, by W3C's ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) trace: u128,
    /// The calling span; 0 if it is not known.
    pub(super) span: u64,
}

/// Takes the calls of a chunk back when it is dropped.
#[derive(Debug)]
pub(super) struct Registered<'a> {
    calls: &'a Calls,
    ticket: u64,
    traces: HashSet<i64>,
    /// Those that have calls whose callers only their places tell.
    awaited: HashSet<i64>,
}

impl Calls {
    /// Adds the calls of a chunk, and the origins of traces by Kieker's ids.
    pub(super) fn register(
        &self,
        ticket: u64,
        places: &[Place],
        origins: &[(i64, Origin)],
    ) -> Registered<'_> {
        let mut traces = self.lock();
        for place in places {
            let calls = traces.calls.entry(place.trace_id).or_default();
            calls.push((ticket, *place));
        }
        for (trace_id, origin) in origins {
            if traces.origins.insert(*trace_id, *origin).is_none() {
                traces.order.push_back(*trace_id);
            }
            if traces.order.len() > MAX_ORIGINS {
                let oldest = traces.order.pop_front();
                oldest.and_then(|it| traces.origins.remove(&it));
            }
        }
        drop(traces);
        self.changed.notify_waiters();
        let awaits = places.iter().filter(|it| it.awaits_caller);
        Registered {
            calls: self,
            ticket,
            traces: places.iter().map(|it| it.trace_id).collect(),
            awaited: awaits.map(|it| it.trace_id).collect(),
        }
    }

    /// Returns where a trace comes from, if that is another process.
    pub(super) fn origin(&self, trace_id: i64) -> Option<Origin> {
        self.lock().origins.get(&trace_id).copied()
    }

    /// Returns the order index of the caller of each call, by the call's own.
    pub(super) fn callers(&self, trace_id: i64) -> HashMap<i32, i32> {
        let mut trace = self
            .lock()
            .calls
            .get(&trace_id)
            .cloned()
            .unwrap_or_default();
        trace.sort_by_key(|(_, call)| call.eoi);
        let mut callers = HashMap::new();
        // The last call at each size of the stack.
        let mut stack: BTreeMap<i32, Place> = BTreeMap::new();
        for (_, call) in trace {
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

    fn lock(&self) -> MutexGuard<'_, Traces> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered<'_> {
    /// Whether the first call of each trace is known whose calls await their callers. It ends last.
    pub(super) fn is_complete(&self) -> bool {
        let traces = self.calls.lock();
        let known = |it| traces.calls.get(it).into_iter().flatten();
        let mut awaited = self.awaited.iter();
        awaited.all(|it| known(it).any(|(_, call): &(_, Place)| call.ess == 0))
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
            let trace = traces.calls.get_mut(id);
            let is_empty = trace.is_some_and(|it| {
                it.retain(|(ticket, _)| *ticket != self.ticket);
                it.is_empty()
            });
            if is_empty {
                traces.calls.remove(id);
            }
        }
    }
}
