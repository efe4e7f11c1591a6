//! The results of traces: one call tree of all, equivalence classes, response times, sessions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet, VecDeque};

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::assemble::ClosedTrace;
use super::call_tree::{CallNodes, CallTree, ENTRY};
use super::classes::{Classes, TraceClass};
use super::counts::{TraceCounts, add_count};
use super::operations::{KindId, OperationId, Operations};
use super::tree::{Outcome, Trace, nanos_between, widen};
use crate::filters::Durations;

/// The most operations with response times of their own; further ones are measured together.
const MAX_TIMED: usize = 10_000;

/// The most calls in the shapes of all classes together; traces of further classes are only
/// counted.
const MAX_CLASS_CALLS: usize = 1_000_000;

/// The most sessions; traces of further sessions belong to none.
const MAX_SESSIONS: usize = 100_000;

/// The number of slowest traces that are kept.
const SLOWEST: usize = 50;

/// The most remembered calls of closed traces, to place the traces that they called.
const MAX_PLACED_CALLS: usize = 2_000_000;

/// The most calls of traces that wait for their calling traces.
const MAX_WAITING_CALLS: usize = 1_000_000;

/// Valid traces of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The number of traces.
    pub traces: u64,
    /// The start of the first trace and the end of the last one, in nanoseconds since the Unix
    /// epoch.
    pub span: (i64, i64),
}

/// The response times of an operation on all hosts.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) durations: Durations,
    pub(super) failed: u64,
}

/// Response times by operation.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// By the numbers of the operations.
    by_kind: Vec<Option<Box<Timed>>>,
    count: usize,
}

/// The results of valid traces.
#[derive(Debug, Default)]
pub struct Profile {
    pub(super) counts: TraceCounts,
    pub(super) tree: CallTree,
    pub(super) times: Times,
    pub(super) classes: Classes<Trace>,
    class_calls: usize,
    pub(super) sessions: BTreeMap<Box<str>, Session>,
    pub(super) slowest: Vec<Trace>,
    /// The time of the fastest trace of them once there are [`SLOWEST`], in nanoseconds.
    slow_ns: u64,
    pub(super) span: Option<(i64, i64)>,
    pub(super) links: Links,
}

/// The data for finding the caller of a trace in another one.
#[derive(Debug, Default)]
pub(super) struct Links {
    placed: HashMap<i64, Placed>,
    placed_order: VecDeque<i64>,
    placed_cost: usize,
    /// Traces by the ids of the traces for which they wait.
    pub(super) waiting: BTreeMap<i64, Vec<Trace>>,
    waiting_calls: usize,
}

/// The nodes of a trace's calls in the call tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Placed {
    pub(super) nodes: CallNodes,
    event_calls: Box<[u32]>,
}

impl Profile {
    /// Returns the counts.
    pub fn counts(&self) -> &TraceCounts {
        &self.counts
    }

    /// Returns the calls of all valid traces. Operations on different hosts are distinct.
    pub fn call_tree(&self) -> &CallTree {
        &self.tree
    }

    /// Returns the equivalence classes; classes with the most traces come first. Operations on
    /// different hosts are distinct.
    pub fn classes(&self) -> Vec<&TraceClass> {
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_cached_key(|class| class.rank());
        classes
    }

    /// Returns the equivalence classes without distinguishing hosts.
    pub fn classes_without_hosts(&self, operations: &Operations) -> Vec<TraceClass<&Trace>> {
        let mut merged = Classes::<&Trace>::default();
        for class in self.classes.iter() {
            let calls = &class.example.calls;
            let key = merged.key(calls, |id| operations.kind_of(id).position());
            merged.add(key, class.with(&class.example));
        }
        let mut classes: Vec<_> = merged.into_iter().collect();
        classes.sort_by_cached_key(TraceClass::rank);
        classes
    }

    /// The sessions of valid traces, by name.
    pub fn sessions(&self) -> &BTreeMap<Box<str>, Session> {
        &self.sessions
    }

    /// The slowest valid traces, the slowest first.
    pub fn slowest(&self) -> &[Trace] {
        &self.slowest
    }

    /// Returns the start of the first valid trace and the end of the last one, in nanoseconds since
    /// the Unix epoch.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// Adds a closed trace.
    pub(super) fn add(&mut self, closed: ClosedTrace, operations: &Operations) {
        let add = |counts: &mut BTreeMap<_, u64>, reason| *counts.entry(reason).or_default() += 1;
        match closed.outcome {
            Outcome::Incomplete(reason) => return add(&mut self.counts.incomplete, reason),
            Outcome::Invalid(reason) => return add(&mut self.counts.invalid, reason),
            Outcome::Repaired => self.counts.repaired += 1,
            Outcome::Valid => {}
        }
        self.counts.valid += 1;
        self.link(closed.trace, operations);
    }

    /// Places a valid trace, or lets it wait for its calling trace.
    pub(super) fn link(&mut self, trace: Trace, operations: &Operations) {
        let Some((parent, position)) = trace.parent else {
            return self.place(trace, ENTRY, operations);
        };
        if let Some(placed) = self.links.placed.get(&parent) {
            let base = placed.node(position);
            return self.place_below(trace, base, operations);
        }
        let calls = self.links.waiting_calls + trace.calls.len();
        if calls > MAX_WAITING_CALLS {
            return self.place_below(trace, None, operations);
        }
        self.links.waiting_calls = calls;
        self.links.waiting.entry(parent).or_default().push(trace);
    }

    /// Ends: traces that still wait for their callers get none.
    pub(super) fn finish(&mut self, operations: &Operations, counts: &TraceCounts) {
        let waiting = self.links.waiting.values().flatten();
        let waiting: HashSet<i64> = waiting.map(|it| it.id).collect();
        // Others wait for traces that wait themselves. Traces that wait for each other come last.
        let is_outermost = |id: &i64| !waiting.contains(id);
        let outermost = self.links.waiting.keys().copied().filter(is_outermost);
        let mut next = outermost.collect::<Vec<_>>().into_iter();
        let first_waiting = |links: &Links| links.waiting.keys().next().copied();
        while let Some(parent) = next.next().or_else(|| first_waiting(&self.links)) {
            for trace in self.links.take_waiting(parent).into_iter().flatten() {
                self.place_below(trace, None, operations);
            }
        }
        self.counts = std::mem::take(&mut self.counts).with_records(counts);
    }

    /// Places a trace that another one called: below the node of the call, if it was found.
    fn place_below(&mut self, trace: Trace, base: Option<usize>, operations: &Operations) {
        let base = self.counted(base);
        self.place(trace, base, operations);
    }

    /// Counts whether the calling node of a trace is known; returns it, or the entry.
    fn counted(&mut self, base: Option<usize>) -> usize {
        match base {
            Some(_) => self.counts.linked += 1,
            None => self.counts.parent_missing += 1,
        }
        base.unwrap_or(ENTRY)
    }

    /// Places a trace below a node, and then the traces that waited for it.
    fn place(&mut self, trace: Trace, base: usize, operations: &Operations) {
        let mut ready = Vec::new();
        let mut next = Some((trace, base));
        while let Some((mut trace, base)) = next {
            let span = trace.span();
            let (id, total_ns) = (trace.id, nanos_between(span.0, span.1));
            self.measure(&trace, span, operations);
            self.compare(&trace, total_ns);
            let event_calls = std::mem::take(&mut trace.event_calls);
            let key = self.classes.key(&trace.calls, OperationId::position);
            let callers = trace.callers();
            let mut place = || self.tree.place(&trace.calls, &callers, base);
            let nodes = match base {
                ENTRY => self.classes.nodes(key, place),
                _ => place(),
            };
            self.tree.add(&trace.calls, &callers, base, &nodes);
            let class = TraceClass {
                traces: 1,
                total_ns,
                example: trace,
            };
            self.add_class(key, class);
            let placed = Placed {
                nodes,
                event_calls: event_calls.into(),
            };
            for child in self.links.take_waiting(id).into_iter().flatten() {
                let base = child.parent.and_then(|(_, position)| placed.node(position));
                ready.push((child, self.counted(base)));
            }
            self.links.remember(id, placed);
            next = ready.pop();
        }
    }

    fn measure(&mut self, trace: &Trace, span: (i64, i64), operations: &Operations) {
        self.counts.asynchronous += trace.asynchronous() as u64;
        for call in &trace.calls {
            let timed = self.times.of(operations.kind_of(call.operation));
            timed.durations.add(call.nanos());
            timed.failed += u64::from(call.failed);
        }
        self.span = Some(widen(self.span, span));
        if let Some(name) = &trace.session {
            self.add_session(name, Session { traces: 1, span });
        }
    }

    /// Adds traces of a session.
    pub(super) fn add_session(&mut self, name: &str, more: Session) {
        let has_room = self.sessions.len() < MAX_SESSIONS;
        match self.sessions.get_mut(name) {
            Some(session) => {
                add_count(&mut session.traces, more.traces);
                session.span = widen(Some(session.span), more.span);
            }
            None if has_room => {
                self.sessions.insert(name.into(), more);
            }
            None => add_count(&mut self.counts.without_session, more.traces),
        }
    }

    /// Keeps a trace that takes this time if it is one of the slowest.
    pub(super) fn compare(&mut self, trace: &Trace, nanos: u64) {
        let is_full = self.slowest.len() >= SLOWEST;
        if is_full && nanos < self.slow_ns {
            return;
        }
        let rank = |trace: &Trace| (Reverse(trace.nanos()), trace.start(), trace.id);
        let position = self.slowest.partition_point(|it| rank(it) < rank(trace));
        if position < SLOWEST {
            self.slowest.insert(position, trace.clone());
            self.slowest.truncate(SLOWEST);
            self.slow_ns = self.slowest.last().map_or(0, Trace::nanos);
        }
    }

    /// Adds traces of a class with its key.
    pub(super) fn add_class(&mut self, key: u64, mut class: TraceClass) {
        if !self.classes.contains(key) {
            let calls = &mut class.example.calls;
            if self.class_calls + calls.len() > MAX_CLASS_CALLS {
                return add_count(&mut self.counts.without_class, class.traces);
            }
            self.class_calls += calls.len();
            calls.shrink_to_fit();
        }
        self.classes.add(key, class);
    }
}

impl Times {
    /// Returns the figures to which an operation's times are added.
    pub(super) fn of(&mut self, kind: KindId) -> &mut Timed {
        let known = self.by_kind.get(kind.position());
        let is_known = known.is_some_and(Option::is_some);
        let position = match is_known || self.count < MAX_TIMED {
            true => kind.position(),
            false => 0,
        };
        if position >= self.by_kind.len() {
            self.by_kind.resize_with(position + 1, || None);
        }
        self.by_kind[position].get_or_insert_with(|| {
            self.count += 1;
            Box::default()
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (KindId, &Timed)> {
        let times = (0..).map(KindId).zip(&self.by_kind);
        times.filter_map(|(kind, timed)| Some((kind, timed.as_deref()?)))
    }
}

impl Links {
    pub(super) fn remember(&mut self, id: i64, placed: Placed) {
        self.placed_cost += placed.cost();
        match self.placed.insert(id, placed) {
            Some(before) => self.placed_cost -= before.cost(),
            None => self.placed_order.push_back(id),
        }
        while self.placed_cost > MAX_PLACED_CALLS {
            let oldest = self.placed_order.pop_front();
            let removed = oldest.and_then(|oldest| self.placed.remove(&oldest));
            self.placed_cost -= removed.expect("each id in the order has its nodes").cost();
        }
    }

    /// Returns the ids of closed traces with the nodes of their calls, the oldest first.
    pub(super) fn placed(&self) -> impl Iterator<Item = (i64, &Placed)> {
        self.placed_order.iter().map(|id| (*id, &self.placed[id]))
    }

    /// Takes the traces that wait for this one, if there are any.
    fn take_waiting(&mut self, parent: i64) -> Option<Vec<Trace>> {
        let traces = self.waiting.remove(&parent)?;
        self.waiting_calls -= traces.iter().map(|trace| trace.calls.len()).sum::<usize>();
        Some(traces)
    }
}

impl Placed {
    /// Measured in calls: the overhead of a trace is about eight calls.
    fn cost(&self) -> usize {
        self.nodes.len() + self.event_calls.len() + 8
    }

    /// Returns the node of a call by its position in the trace; for an unknown position, the node of
    /// the first call.
    fn node(&self, position: i32) -> Option<usize> {
        let position = usize::try_from(position.max(0)).ok()?;
        let call = match self.event_calls.is_empty() {
            true => position,
            false => usize::try_from(*self.event_calls.get(position)?).ok()?,
        };
        self.nodes.get(call)
    }
}
