//! Equivalence classes of traces.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use super::call_tree::CallNodes;
use super::counts::add_count;
use super::operations::OperationId;
use super::tree::{Call, Trace};

/// Traces with the same calls in the same order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraceClass<T = Trace> {
    /// The number of traces.
    pub traces: u64,
    /// Their total time, in nanoseconds.
    pub total_ns: u64,
    /// The trace that began first.
    pub example: T,
}

/// Classes by the operations and depths of their calls.
///
/// The key is a hash of them. If several classes have the same one, the later ones have the next free
/// keys. So no class needs a second copy of its operations and depths.
#[derive(Debug)]
pub(super) struct Classes<T> {
    by_key: HashMap<u64, Known<T>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Known<T> {
    class: TraceClass<T>,
    /// The nodes of its calls, after one of its traces was placed below the entry.
    nodes: Option<CallNodes>,
}

impl<T> Default for Classes<T> {
    fn default() -> Self {
        Self {
            by_key: HashMap::default(),
            hasher: RandomState::default(),
        }
    }
}

impl<T: Borrow<Trace>> Classes<T> {
    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TraceClass<T>> {
        self.by_key.values().map(|it| &it.class)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = TraceClass<T>> {
        self.by_key.into_values().map(|it| it.class)
    }

    /// Returns the key of the class with these calls, or the one that it will have. Operations are the
    /// same if `number` is.
    pub(super) fn key(&self, calls: &[Call], number: impl Fn(OperationId) -> usize) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for call in calls {
            hasher.write_usize(number(call.operation));
            hasher.write_i32(call.ess);
        }
        self.key_from(hasher.finish(), calls, number)
    }

    fn key_from(&self, key: u64, calls: &[Call], number: impl Fn(OperationId) -> usize) -> u64 {
        let shape = |call: &Call| (number(call.operation), call.ess);
        let is_other = |known: &Known<T>| {
            let example = known.class.example.borrow().calls.iter();
            !example.map(shape).eq(calls.iter().map(shape))
        };
        let mut key = key;
        while self.by_key.get(&key).is_some_and(is_other) {
            key = key.wrapping_add(1);
        }
        key
    }

    /// Whether there is a class with this key.
    pub(super) fn contains(&self, key: u64) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Adds traces to the class with their key, or makes it.
    pub(super) fn add(&mut self, key: u64, class: TraceClass<T>) {
        match self.by_key.get_mut(&key) {
            Some(known) => known.class.merge(class),
            None => {
                self.by_key.insert(key, Known { class, nodes: None });
            }
        }
    }

    /// Returns the nodes that the calls of a class have below the entry, and keeps them if it is known
    /// but they are not.
    pub(super) fn nodes(&mut self, key: u64, make: impl FnOnce() -> CallNodes) -> CallNodes {
        match self.by_key.get_mut(&key) {
            Some(known) => known.nodes.get_or_insert_with(make).clone(),
            None => make(),
        }
    }
}

impl<T: Borrow<Trace>> TraceClass<T> {
    /// Returns the same class with its example in another form.
    pub(super) fn with<E>(&self, example: E) -> TraceClass<E> {
        TraceClass {
            traces: self.traces,
            total_ns: self.total_ns,
            example,
        }
    }

    /// Classes with a smaller rank come first.
    pub(super) fn rank(&self) -> (Reverse<u64>, i64, i64) {
        let example = self.example.borrow();
        (Reverse(self.traces), example.start(), example.id)
    }

    fn merge(&mut self, other: Self) {
        add_count(&mut self.traces, other.traces);
        // Times come from outside.
        add_count(&mut self.total_ns, other.total_ns);
        let began = |trace: &Trace| (trace.start(), trace.id);
        if began(other.example.borrow()) < began(self.example.borrow()) {
            self.example = other.example;
        }
    }
}

#[cfg(test)]
mod tests;
