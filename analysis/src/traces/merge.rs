//! Adds saved results.
//!
//! A file has its own numbers for operations, nodes and traces. They are mapped to the numbers of
//! the analysis. [`SavedTraces::read`] has checked that each number refers to an item.

use std::borrow::Cow;

use super::TraceAnalysis;
use super::assemble::Metadata;
use super::call_tree::{AddedCalls, ENTRY};
use super::classes::TraceClass;
use super::counts::add_count;
use super::events::Event;
use super::operations::{KindId, OperationId, Operations};
use super::saved::{Saved, SavedOpen, SavedTraces};
use super::spans::Span;
use super::tree::{Call, Trace, widen};

impl TraceAnalysis {
    /// Adds saved results to this analysis: of an earlier life, or of several consumers.
    ///
    /// Pass all of them in one call. A trace with records in several of them is assembled from all,
    /// unless one of them had closed it.
    pub fn add_saved(&mut self, parts: Vec<SavedTraces>) {
        let mut unfinished = Vec::with_capacity(parts.len());
        for SavedTraces(part) in parts {
            let operations = Numbers::of(&part, &mut self.assembler.operations);
            unfinished.push(self.add_finished(part, operations));
        }
        for (waiting, open, operations) in unfinished {
            for trace in waiting {
                let trace = operations.trace(trace.into_owned());
                self.profile.link(trace, &self.assembler.operations);
            }
            for trace in open {
                self.reopen(trace, &operations);
            }
        }
    }

    /// Adds everything except traces that may still change.
    fn add_finished<'a>(
        &mut self,
        part: Saved<'a>,
        operations: Numbers,
    ) -> (Vec<Cow<'a, Trace>>, Vec<SavedOpen<'a>>, Numbers) {
        let (assembler, profile) = (&mut self.assembler, &mut self.profile);
        assembler.counts.add(&part.counts);
        profile.counts.add(&part.counts);
        assembler.newest = assembler.newest.max(part.newest);
        if let Some(span) = part.span {
            profile.span = Some(widen(profile.span, span));
        }
        // By the positions in the file: the nodes here, as far as there is room.
        let mut nodes = vec![Some(ENTRY)];
        for &(operation, parent, calls, total_ns, self_ns) in &part.tree {
            let caller = parent.checked_sub(1);
            let from = caller.map(|caller| operations.operation(part.tree[caller].0));
            let added = AddedCalls {
                operation: operations.operation(operation),
                calls,
                total_ns,
                self_ns,
            };
            nodes.push(profile.tree.merge(nodes[parent], from, added));
        }
        for (from, to, calls) in part.beyond {
            let from = from.map(|from| operations.operation(from));
            profile
                .tree
                .merge_beyond(from, operations.operation(to), calls);
        }
        for times in part.times {
            let timed = profile.times.of(operations.kind(times.kind));
            timed.durations.add_all(&times.counts, times.total_ns);
            add_count(&mut timed.failed, times.failed);
        }
        for class in part.classes {
            let example = operations.trace(class.example.into_owned());
            let key = profile.classes.key(&example.calls, OperationId::position);
            let class = TraceClass {
                traces: class.traces,
                total_ns: class.total_ns,
                example,
            };
            profile.add_class(key, class);
        }
        for (name, session) in part.sessions.iter() {
            profile.add_session(name, *session);
        }
        for trace in part.slowest.into_owned() {
            let trace = operations.trace(trace);
            profile.compare(&trace, trace.nanos());
        }
        for (id, placed) in part.placed {
            let mut placed = placed.into_owned();
            let moved = placed.nodes.iter().map(|node| nodes[node?]);
            placed.nodes = moved.collect();
            profile.links.remember(id, placed);
        }
        for (id, is_late) in part.closed {
            assembler.closed.add(id, is_late);
        }
        let chunks = self.chunks.get_or_insert_default();
        for range in part.chunks {
            let shared = chunks.insert(range.first, range.last_sequence);
            add_count(&mut assembler.counts.shared_chunks, shared);
        }
        (part.waiting, part.open, operations)
    }

    /// Adds the records of a trace that was open.
    fn reopen(&mut self, saved: SavedOpen<'_>, operations: &Numbers) {
        let assembler = &mut self.assembler;
        // They were counted when they arrived.
        let counted = assembler.counts.records;
        let session = saved.session.map(|session| assembler.sessions.id(&session));
        let metadata = saved.metadata.map(|it| Metadata {
            host: assembler.operations.text(&it.host),
            parent: it.parent,
        });
        if metadata.is_some() {
            if let Some(trace) = assembler.trace(saved.id, i64::MAX, i64::MIN) {
                trace.metadata = metadata;
                trace.session = trace.session.or(session);
            }
        }
        for call in saved.calls.iter() {
            if let Some(trace) = assembler.trace(saved.id, call.tin, call.tout) {
                trace.calls.push(operations.call(*call));
                trace.session = trace.session.or(session);
            }
        }
        for event in saved.events.iter() {
            if let Some(trace) = assembler.trace(saved.id, event.time, event.time) {
                let operation = operations.kind(event.operation);
                trace.events.push(Event {
                    operation,
                    ..*event
                });
                trace.session = trace.session.or(session);
            }
        }
        for span in saved.spans.iter() {
            if let Some(trace) = assembler.trace(saved.id, span.start, span.end) {
                let operation = operations.operation(span.operation);
                trace.spans.push(Span { operation, ..*span });
                trace.session = trace.session.or(session);
            }
        }
        assembler.counts.records = counted;
    }
}

/// Maps the numbers of a file to the numbers of this analysis.
struct Numbers {
    kinds: Vec<KindId>,
    operations: Vec<OperationId>,
}

impl Numbers {
    fn of(part: &Saved<'_>, known: &mut Operations) -> Self {
        let kinds = part.kinds.iter().map(|(component, signature)| {
            let (component, signature) = (known.text(component), known.text(signature));
            known.kind(Some(component), signature)
        });
        let kinds: Vec<_> = kinds.collect();
        let operations = part.operations.iter().map(|(host, kind)| {
            let host = known.text(host);
            known.id(host, kinds[kind.position()])
        });
        let operations = operations.collect();
        Self { kinds, operations }
    }

    fn operation(&self, id: OperationId) -> OperationId {
        self.operations[id.position()]
    }

    fn kind(&self, kind: KindId) -> KindId {
        self.kinds[kind.position()]
    }

    fn call(&self, call: Call) -> Call {
        Call {
            operation: self.operation(call.operation),
            ..call
        }
    }

    fn trace(&self, mut trace: Trace) -> Trace {
        trace
            .calls
            .iter_mut()
            .for_each(|call| *call = self.call(*call));
        trace
    }
}
