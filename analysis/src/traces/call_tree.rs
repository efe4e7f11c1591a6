//! The calls of all traces as one tree. Graphs and flame graphs are views of it.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::counts::add_count;
use super::operations::{KindId, OperationId, Operations};
use super::tree::Call;

/// The most nodes of the call tree. Calls beyond it count only in graphs.
const MAX_NODES: usize = 500_000;

/// The position of the entry.
pub(super) const ENTRY: usize = 0;

/// The nodes of a trace's calls, by the positions of the calls. Many traces share them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CallNodes(Arc<[u32]>);

/// Stands for a node beyond the limit. No call has the entry's node.
const NO_NODE: u32 = 0;

/// The calls of all traces. Calls with the same callers up to the entry are added up.
#[derive(Debug, Clone)]
pub struct CallTree {
    nodes: Vec<CallTreeNode>,
    children: HashMap<(u32, OperationId), u32>,
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

/// Calls of one operation that are added to a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddedCalls {
    pub(super) operation: OperationId,
    pub(super) calls: u64,
    pub(super) total_ns: u64,
    pub(super) self_ns: u64,
}

impl Default for CallTree {
    fn default() -> Self {
        Self {
            nodes: vec![CallTreeNode::new(None, ENTRY)],
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
            let caller = self.nodes[node.parent].operation;
            Some((caller, node.operation?, node.calls))
        });
        nodes.chain(self.beyond())
    }

    /// Returns the same tree with all hosts merged.
    #[must_use]
    pub fn without_hosts(&self, operations: &Operations) -> Self {
        let mut first: HashMap<KindId, OperationId> = HashMap::default();
        let mut same = |id: OperationId| {
            let kind = operations.kind_of(id);
            *first.entry(kind).or_insert(id)
        };
        let mut merged = Self::default();
        let mut positions = vec![ENTRY];
        for node in self.nodes.iter().skip(1) {
            let child = merged.child(positions[node.parent], same(node.called()));
            let position = child.expect("merging makes no more nodes");
            merged.nodes[position].add(node.calls, node.total_ns, node.self_ns);
            positions.push(position);
        }
        for (from, to, calls) in self.beyond() {
            let from = from.map(&mut same);
            merged.merge_beyond(from, same(to), calls);
        }
        merged
    }

    /// Returns the nodes of a trace's calls below a node. `callers` is the output of
    /// [`Trace::callers`](super::Trace::callers).
    pub(super) fn place(
        &mut self,
        calls: &[Call],
        callers: &[(Option<usize>, u64)],
        base: usize,
    ) -> CallNodes {
        let mut nodes = Vec::with_capacity(calls.len());
        for (call, (caller, _)) in calls.iter().zip(callers) {
            let parent = caller.map_or(Some(base), |caller| node(nodes[caller]));
            let child = parent.and_then(|parent| self.child(parent, call.operation));
            nodes.push(child.map_or(NO_NODE, number));
        }
        CallNodes(nodes.into())
    }

    /// Adds the calls of a trace to their nodes. `callers` is as for [`Self::place`].
    pub(super) fn add(
        &mut self,
        calls: &[Call],
        callers: &[(Option<usize>, u64)],
        base: usize,
        nodes: &CallNodes,
    ) {
        for ((call, (caller, self_ns)), node) in calls.iter().zip(callers).zip(nodes.iter()) {
            match node {
                Some(node) => self.nodes[node].add(1, call.nanos(), *self_ns),
                None => {
                    let from = match caller {
                        Some(caller) => Some(calls[*caller].operation),
                        None => self.nodes[base].operation,
                    };
                    self.merge_beyond(from, call.operation, 1);
                }
            }
        }
    }

    /// Adds a call with a node of its own, below its caller's in the same trace.
    pub(super) fn push(&mut self, call: &Call, caller: Option<usize>, self_ns: u64) {
        self.nodes.push(CallTreeNode {
            operation: Some(call.operation),
            parent: caller.map_or(ENTRY, |caller| caller + 1),
            calls: 1,
            total_ns: call.nanos(),
            self_ns,
        });
    }

    /// Adds calls below the node of their caller, and returns the position of their node. Without
    /// the caller's node, or without room for one more, only the calls count; `from` is the caller.
    pub(super) fn merge(
        &mut self,
        parent: Option<usize>,
        from: Option<OperationId>,
        added: AddedCalls,
    ) -> Option<usize> {
        let position = parent.and_then(|parent| self.child(parent, added.operation));
        match position {
            Some(it) => self.nodes[it].add(added.calls, added.total_ns, added.self_ns),
            None => self.merge_beyond(from, added.operation, added.calls),
        }
        position
    }

    /// Adds calls without a node.
    pub(super) fn merge_beyond(&mut self, from: Option<OperationId>, to: OperationId, calls: u64) {
        add_count(self.beyond.entry((from, to)).or_default(), calls);
    }

    /// Calls from one operation to another without a node.
    pub(super) fn beyond(&self) -> impl Iterator<Item = (Option<OperationId>, OperationId, u64)> {
        let beyond = self.beyond.iter();
        beyond.map(|((from, to), calls)| (*from, *to, *calls))
    }

    /// Returns the node of an operation below another; `None` if there are too many nodes.
    fn child(&mut self, parent: usize, operation: OperationId) -> Option<usize> {
        let key = (number(parent), operation);
        if let Some(known) = self.children.get(&key) {
            return Some(*known as usize);
        }
        let position = self.nodes.len();
        if position >= MAX_NODES {
            return None;
        }
        let node = CallTreeNode::new(Some(operation), parent);
        self.nodes.push(node);
        self.children.insert(key, number(position));
        Some(position)
    }
}

impl CallNodes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the node of a call; `None` if the call is not there, or has no node.
    pub(super) fn get(&self, call: usize) -> Option<usize> {
        self.0.get(call).and_then(|number| node(*number))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        self.0.iter().map(|number| node(*number))
    }
}

impl FromIterator<Option<usize>> for CallNodes {
    fn from_iter<I: IntoIterator<Item = Option<usize>>>(nodes: I) -> Self {
        let nodes = nodes.into_iter();
        Self(nodes.map(|node| node.map_or(NO_NODE, number)).collect())
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).expect("the limit of nodes has 32 bits")
}

fn node(number: u32) -> Option<usize> {
    (number != NO_NODE).then_some(number as usize)
}

impl CallTreeNode {
    fn new(operation: Option<OperationId>, parent: usize) -> Self {
        Self {
            operation,
            parent,
            calls: 0,
            total_ns: 0,
            self_ns: 0,
        }
    }

    /// Returns the operation of a node that is not the entry.
    pub(super) fn called(&self) -> OperationId {
        self.operation.expect("only the entry has no operation")
    }

    /// Adds calls. Their times come from outside.
    fn add(&mut self, calls: u64, total_ns: u64, self_ns: u64) {
        add_count(&mut self.calls, calls);
        add_count(&mut self.total_ns, total_ns);
        add_count(&mut self.self_ns, self_ns);
    }
}
