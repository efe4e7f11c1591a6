//! Results as a JSON file, so that an analysis goes on after a restart, and the results of several
//! consumers add up.
//!
//! Operations, nodes and traces are named by their positions in the lists of the same file. README.md
//! describes the file, under "Saved results".

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use baler_common::transport::ChunkIdentity;
use serde::{Deserialize, Serialize};

use super::TraceAnalysis;
use super::assemble::Metadata;
use super::events::Event;
use super::operations::{KindId, OperationId, Operations};
use super::profile::{Placed, Session, TraceClass, TraceCounts, widen};
use super::tree::{Call, Trace};
use crate::lanes::LaneKey;
use crate::lanes::sequences::Sequences;

/// The value of `format`. Another one cannot be read.
const FORMAT: &str = "baler-traces/1";

/// How many lanes of producers are remembered, those of the lowest producers are forgotten first; and
/// how many ranges of chunks they have together.
const MAX_LANES: usize = 65_536;
const MAX_RANGES: usize = 1 << 18;

/// What [`TraceAnalysis::save`] wrote.
#[derive(Debug)]
pub struct SavedTraces(Saved<'static>);

/// A file has no results that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedTracesError {
    /// It has another format: written by another version, perhaps.
    #[error("its format is `{0}`, not `{FORMAT}`")]
    Format(Box<str>),
    /// It is not the JSON document that is expected, or is not whole.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It names something by a number that it does not have.
    #[error("{what} names {named} {number}, which the file does not have")]
    Number {
        /// What names it.
        what: &'static str,
        /// What is named.
        named: &'static str,
        /// By which number.
        number: usize,
    },
}

/// The chunks that are in the results.
#[derive(Debug, Default)]
pub(super) struct SeenChunks {
    lanes: BTreeMap<LaneKey, Sequences>,
    ranges: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved<'a> {
    format: Cow<'a, str>,
    /// Component and signature.
    kinds: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Host, and position in `kinds`.
    operations: Vec<(Cow<'a, str>, KindId)>,
    counts: TraceCounts,
    span: Option<(i64, i64)>,
    newest: i64,
    tree: Vec<Node>,
    /// Caller, called, count.
    beyond: Vec<(Option<OperationId>, OperationId, u64)>,
    times: Vec<SavedTimes>,
    classes: Vec<Cow<'a, TraceClass>>,
    sessions: Cow<'a, BTreeMap<Box<str>, Session>>,
    slowest: Cow<'a, [Trace]>,
    /// Traces by their ids, and where their calls are in `tree`.
    placed: Vec<(i64, Cow<'a, Placed>)>,
    waiting: Vec<Cow<'a, Trace>>,
    /// Closed traces, and whether a record came late.
    closed: Vec<(i64, bool)>,
    open: Vec<SavedOpen<'a>>,
    /// First chunk and last sequence number of each range.
    chunks: Vec<(String, u64)>,
}

/// Operation, position of the caller's node (0 is the entry, 1 the first of the list), calls, their
/// time and their own time in nanoseconds.
type Node = (OperationId, usize, u64, u64, u64);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTimes {
    kind: KindId,
    failed: u64,
    total_ns: u128,
    /// Nanoseconds, exact to 1 %, and calls.
    counts: Vec<(u64, u64)>,
}

/// The records of a trace that may get more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedOpen<'a> {
    id: i64,
    session: Option<Cow<'a, str>>,
    /// Of a trace with metadata.
    host: Option<Cow<'a, str>>,
    /// The trace and the order of the call that called this trace.
    parent: Option<(i64, i32)>,
    calls: Cow<'a, [Call]>,
    events: Cow<'a, [Event]>,
}

impl TraceAnalysis {
    /// Writes all that was found as one JSON document, open traces included. Call it before
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn save(&self, output: impl io::Write) -> io::Result<()> {
        let (assembler, profile) = (&self.assembler, &self.profile);
        let operations = &assembler.operations;
        let text = |text| Cow::Owned(String::from(&*operations.text_of(text)));
        let kinds = operations.kinds().iter();
        let nodes = profile.tree.nodes().iter().filter_map(|node| {
            Some((
                node.operation?,
                node.parent,
                node.calls,
                node.total_ns,
                node.self_ns,
            ))
        });
        let times = profile.times.iter().map(|(kind, timed)| SavedTimes {
            kind: *kind,
            failed: timed.failed,
            total_ns: timed.durations.total_ns(),
            counts: timed.durations.counts().collect(),
        });
        let placed = profile.links.placed_order.iter();
        let open = assembler.open.iter().map(|(id, trace)| SavedOpen {
            id: *id,
            session: trace
                .session
                .map(|session| Cow::Owned((*assembler.sessions.get(session)).into())),
            host: trace.metadata.map(|it| text(it.host)),
            parent: trace.metadata.and_then(|it| it.parent),
            calls: Cow::Borrowed(&trace.calls),
            events: Cow::Borrowed(&trace.events),
        });
        let saved = Saved {
            format: FORMAT.into(),
            kinds: kinds
                .map(|it| ((*it.component).into(), (*it.signature).into()))
                .collect(),
            operations: operations
                .all()
                .iter()
                .map(|it| ((*it.host).into(), it.kind))
                .collect(),
            counts: profile.counts.clone().with_records(&assembler.counts),
            span: profile.span,
            newest: assembler.newest,
            tree: nodes.collect(),
            beyond: profile.tree.beyond().collect(),
            times: times.collect(),
            classes: profile.classes.values().map(Cow::Borrowed).collect(),
            sessions: Cow::Borrowed(&profile.sessions),
            slowest: Cow::Borrowed(&profile.slowest),
            placed: placed
                .filter_map(|id| Some((*id, Cow::Borrowed(profile.links.placed.get(id)?))))
                .collect(),
            waiting: profile
                .links
                .waiting
                .values()
                .flatten()
                .map(Cow::Borrowed)
                .collect(),
            closed: assembler.closed.iter().collect(),
            open: open.collect(),
            chunks: self.chunks.iter().flat_map(SeenChunks::ranges).collect(),
        };
        serde_json::to_writer(output, &saved).map_err(io::Error::from)
    }

    /// Adds saved results to what was found: those of an earlier life, or those of several consumers.
    ///
    /// All of them go in one call: a trace of which records are in several of them is put together
    /// from all, unless one of them had closed it.
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

    /// Adds everything but what may still change.
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
        let mut places = vec![Some(0)];
        for (operation, parent, calls, total_ns, self_ns) in &part.tree {
            let caller = parent
                .checked_sub(1)
                .and_then(|caller| part.tree.get(caller));
            let from = caller.map(|(operation, ..)| operations.operation(*operation));
            let node = (
                operations.operation(*operation),
                *calls,
                *total_ns,
                *self_ns,
            );
            let parent = places.get(*parent).copied().flatten();
            places.push(profile.tree.merge(parent, from, node));
        }
        for (from, to, calls) in part.beyond {
            let from = from.map(|from| operations.operation(from));
            profile
                .tree
                .merge_beyond(from, operations.operation(to), calls);
        }
        for times in part.times {
            if let Some(timed) = profile.timed(operations.kind(times.kind)) {
                timed.durations.add_all(&times.counts, times.total_ns);
                timed.failed = timed.failed.saturating_add(times.failed);
            }
        }
        for class in part.classes {
            let mut class = class.into_owned();
            class.example = operations.trace(class.example);
            profile.add_class(class);
        }
        for (name, session) in part.sessions.iter() {
            profile.add_session(name, *session);
        }
        for trace in part.slowest.into_owned() {
            profile.compare(&operations.trace(trace));
        }
        for (id, placed) in part.placed {
            let mut placed = placed.into_owned();
            for node in &mut placed.nodes {
                *node = places.get(*node).copied().flatten().unwrap_or(0);
            }
            profile.links.remember(id, placed);
        }
        for (id, is_late) in part.closed {
            assembler.closed.add(id, is_late);
        }
        let chunks = self.chunks.get_or_insert_default();
        for (first, last) in part.chunks {
            let Ok(first) = first.parse::<ChunkIdentity>() else {
                continue;
            };
            let shared = chunks.insert(first, last);
            let counted = &mut assembler.counts.shared_chunks;
            *counted = counted.saturating_add(shared);
        }
        (part.waiting, part.open, operations)
    }

    /// Adds the records of a trace that was open.
    fn reopen(&mut self, saved: SavedOpen<'_>, operations: &Numbers) {
        let assembler = &mut self.assembler;
        // They were counted when they came.
        let counted = assembler.counts.records;
        let session = saved.session.map(|session| assembler.sessions.id(&session));
        let metadata = saved.host.map(|host| Metadata {
            host: assembler.operations.text(&host),
            parent: saved.parent,
        });
        if metadata.is_some()
            && let Some(trace) = assembler.trace(saved.id, i64::MAX, i64::MIN)
        {
            trace.metadata = metadata;
            trace.session = trace.session.or(session);
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
        assembler.counts.records = counted;
    }
}

impl SavedTraces {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`SavedTracesError`], also where reading fails.
    pub fn read(input: impl io::Read) -> Result<Self, SavedTracesError> {
        let saved: Saved<'static> = serde_json::from_reader(io::BufReader::new(input))?;
        saved.check()?;
        Ok(Self(saved))
    }
}

impl Saved<'_> {
    /// Checks that every number names something.
    fn check(&self) -> Result<(), SavedTracesError> {
        if self.format != FORMAT {
            return Err(SavedTracesError::Format((*self.format).into()));
        }
        let below = |number: usize, bound: usize, what, named| match number < bound {
            true => Ok(()),
            false => Err(SavedTracesError::Number {
                what,
                named,
                number,
            }),
        };
        let kind = |kind: KindId, what| below(kind.position(), self.kinds.len(), what, "kind");
        let operation =
            |id: OperationId, what| below(id.position(), self.operations.len(), what, "operation");
        for (_, it) in &self.operations {
            kind(*it, "an operation")?;
        }
        for (position, (it, parent, ..)) in self.tree.iter().enumerate() {
            operation(*it, "a node")?;
            // Each node comes after its caller's.
            below(*parent, position + 1, "a node", "node")?;
        }
        for (from, to, _) in &self.beyond {
            from.iter()
                .chain([to])
                .try_for_each(|it| operation(*it, "a dependency"))?;
        }
        for times in &self.times {
            kind(times.kind, "a list of times")?;
        }
        let examples = self.classes.iter().map(|class| &class.example);
        let waiting = self.waiting.iter().map(AsRef::as_ref);
        let traces = examples.chain(waiting).chain(self.slowest.iter());
        let calls = traces.flat_map(|trace| &trace.calls);
        let open = self.open.iter().flat_map(|trace| trace.calls.iter());
        for call in calls.chain(open) {
            operation(call.operation, "a call")?;
        }
        for event in self.open.iter().flat_map(|trace| trace.events.iter()) {
            kind(event.operation, "an event")?;
        }
        for (_, placed) in &self.placed {
            let nodes = placed.nodes.iter();
            let mut nodes = nodes.map(|node| below(*node, self.tree.len() + 1, "a trace", "node"));
            nodes.try_for_each(|it| it)?;
        }
        Ok(())
    }
}

/// The numbers of this analysis for those of a file.
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
            let kind = kinds.get(kind.position()).copied();
            known.id(host, kind.unwrap_or(KindId(0)))
        });
        let operations = operations.collect();
        Self { kinds, operations }
    }

    fn operation(&self, id: OperationId) -> OperationId {
        let known = self.operations.get(id.position());
        known.copied().unwrap_or(OperationId(0))
    }

    fn kind(&self, kind: KindId) -> KindId {
        let known = self.kinds.get(kind.position());
        known.copied().unwrap_or(KindId(0))
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

impl SeenChunks {
    /// Adds the chunks from this one to that sequence number; how many of them it had.
    pub(super) fn insert(&mut self, first: ChunkIdentity, last: u64) -> u64 {
        let key = LaneKey::from(first);
        if self.lanes.len() >= MAX_LANES && !self.lanes.contains_key(&key) {
            let forgotten = self.lanes.pop_first();
            let ranges = forgotten.map_or(0, |(_, lane)| lane.ranges());
            self.ranges = self.ranges.saturating_sub(ranges);
        }
        let lane = self.lanes.entry(key).or_default();
        let known = lane.within(first.sequence, last);
        let known = known.fold(0_u64, |sum, (from, to)| {
            sum.saturating_add(to.saturating_sub(from))
                .saturating_add(1)
        });
        let before = lane.ranges();
        lane.insert(first.sequence, last);
        self.ranges = self
            .ranges
            .saturating_sub(before)
            .saturating_add(lane.ranges());
        if self.ranges > MAX_RANGES && lane.forget_lowest().is_some() {
            self.ranges = self.ranges.saturating_sub(1);
        }
        known
    }

    fn ranges(&self) -> impl Iterator<Item = (String, u64)> {
        self.lanes.iter().flat_map(|(key, sequences)| {
            sequences.iter().map(|(sequence, last)| {
                let first = ChunkIdentity {
                    producer: key.producer,
                    epoch: key.epoch,
                    lane: key.lane,
                    sequence,
                };
                (first.to_string(), last)
            })
        })
    }
}
