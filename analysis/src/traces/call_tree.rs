//! The calls of all traces as one tree. Graphs and flame graphs are views of it.

use foldhash::HashMap;

use super::operations::{KindId, OperationId, Operations};
use super::tree::{Call, Trace};

/// The most nodes of the call tree. Calls beyond it count only in graphs.
const MAX_NODES: usize = 500_000;

/// The calls of all traces. Calls with the same callers up to the entry are added up.
#[derive(Debug, Clone)]
pub struct CallTree {
    nodes: Vec<CallTreeNode>,
    children: HashMap<(usize, OperationId), usize>,
    /// Calls from one operation to another beyond the limit of nodes.
    beyond: HashMap<(Option<OperationId>, OperationId), u64>,
}

/// Calls of one operation with the same callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTreeNode {
    /// The operation; `None` is the entry, from which traces begin.
    pub operation: Option<OperationId>,
    /// The position of the caller's node; the entry refers to itself.
    pub parent: usize,
    /// The number of calls.
    pub calls: u64,
    /// Their total time, in nanoseconds.
    pub total_ns: u64,
    /// Their own time without the calls that they made, in nanoseconds.
    pub self_ns: u64,
}

impl Default for CallTree {
    fn default() -> Self {
        let entry = CallTreeNode {
            operation: None,
            parent: 0,
            calls: 0,
            total_ns: 0,
            self_ns: 0,
        };
        Self {
            nodes: vec![entry],
            children: HashMap::default(),
            beyond: HashMap::default(),
        }
    }
}

impl CallTree {
    /// The nodes: the entry first, and each one after its caller's.
    pub fn nodes(&self) -> &[CallTreeNode] {
        &self.nodes
    }

    /// How often one operation called another, the entry included.
    pub fn calls(&self) -> impl Iterator<Item = (Option<OperationId>, OperationId, u64)> {
        let nodes = self.nodes.iter().filter_map(|node| {
            let caller = self.nodes.get(node.parent)?;
            Some((caller.operation, node.operation?, node.calls))
        });
        nodes.chain(self.beyond())
    }

    /// Returns the same tree with all hosts merged.
    #[must_use]
    pub fn without_hosts(&self, operations: &Operations) -> Self {
        let mut first: HashMap<KindId, OperationId> = HashMap::default();
        let mut same = |id: OperationId| {
            let kind = operations.get(id).map(|operation| operation.kind);
            kind.map_or(id, |kind| *first.entry(kind).or_insert(id))
        };
        let mut merged = Self::default();
        let mut places = vec![0_usize];
        for node in self.nodes.iter().skip(1) {
            let parent = places.get(node.parent).copied().unwrap_or(0);
            let place = node.operation.and_then(|id| merged.child(parent, same(id)));
            places.push(place.unwrap_or(0));
            if let Some(into) = place.and_then(|place| merged.nodes.get_mut(place)) {
                into.add(node.calls, node.total_ns, node.self_ns);
            }
        }
        for (from, to, calls) in self.beyond() {
            let from = from.map(&mut same);
            merged.merge_beyond(from, same(to), calls);
        }
        merged
    }

    /// Adds the calls of a trace below a node; returns the node of each. A call without a node gets
    /// the entry's node.
    pub(super) fn add(&mut self, trace: &Trace, base: usize) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::with_capacity(trace.calls.len());
        for (call, (caller, own)) in trace.calls.iter().zip(trace.callers()) {
            let parent = match caller {
                Some(caller) => places.get(caller).copied().unwrap_or(0),
                None => base,
            };
            // The entry cannot be a caller within the trace, so such a caller has no node.
            let has_node = caller.is_none() || parent != 0;
            let place = has_node
                .then(|| self.child(parent, call.operation))
                .flatten();
            match place.and_then(|place| self.nodes.get_mut(place)) {
                Some(node) => node.add(1, call.nanos(), own),
                None => {
                    let from = match caller {
                        Some(caller) => trace.calls.get(caller).map(|caller| caller.operation),
                        None => self.nodes.get(base).and_then(|base| base.operation),
                    };
                    self.merge_beyond(from, call.operation, 1);
                }
            }
            places.push(place.unwrap_or(0));
        }
        places
    }

    /// Adds a call with a node of its own, below its caller's in the same trace.
    pub(super) fn push(&mut self, call: &Call, caller: Option<usize>, self_ns: u64) {
        self.nodes.push(CallTreeNode {
            operation: Some(call.operation),
            parent: caller.map_or(0, |caller| caller.saturating_add(1)),
            calls: 1,
            total_ns: call.nanos(),
            self_ns,
        });
    }

    /// Adds a node of another tree below the node of its caller, and returns its position. Without
    /// that node, or without room for one more, only the calls count; `from` is the caller.
    pub(super) fn merge(
        &mut self,
        parent: Option<usize>,
        from: Option<OperationId>,
        (operation, calls, total_ns, self_ns): (OperationId, u64, u64, u64),
    ) -> Option<usize> {
        let place = parent.and_then(|parent| self.child(parent, operation));
        match place.and_then(|place| self.nodes.get_mut(place)) {
            Some(node) => node.add(calls, total_ns, self_ns),
            None => self.merge_beyond(from, operation, calls),
        }
        place
    }

    /// Adds calls without a node.
    pub(super) fn merge_beyond(&mut self, from: Option<OperationId>, to: OperationId, calls: u64) {
        let sum = self.beyond.entry((from, to)).or_default();
        *sum = sum.saturating_add(calls);
    }

    /// Calls from one operation to another without a node.
    pub(super) fn beyond(&self) -> impl Iterator<Item = (Option<OperationId>, OperationId, u64)> {
        let beyond = self.beyond.iter();
        beyond.map(|((from, to), calls)| (*from, *to, *calls))
    }

    /// Returns the node of an operation below another; `None` if there are too many nodes.
    fn child(&mut self, parent: usize, operation: OperationId) -> Option<usize> {
        if let Some(known) = self.children.get(&(parent, operation)) {
            return Some(*known);
        }
        let place = self.nodes.len();
        if place >= MAX_NODES {
            return None;
        }
        self.nodes.push(CallTreeNode {
            operation: Some(operation),
            parent,
            calls: 0,
            total_ns: 0,
            self_ns: 0,
        });
        self.children.insert((parent, operation), place);
        Some(place)
    }
}

impl CallTreeNode {
    fn add(&mut self, calls: u64, total_ns: u64, self_ns: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.self_ns = self.self_ns.saturating_add(self_ns);
    }
}
