//! Results as a JSON file. So an analysis can continue after a restart, and the results of several
//! consumers can be added.
//!
//! Operations, nodes and traces are named by their positions in the lists of the same file.
//! README.md describes the file, under "Saved results".

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::TraceAnalysis;
use super::classes::TraceClass;
use super::counts::TraceCounts;
use super::events::Event;
use super::operations::{KindId, OperationId};
use super::profile::{Placed, Session};
use super::seen_chunks::{ChunkRange, SeenChunks};
use super::spans::Span;
use super::tree::{Call, Trace};

/// The value of `format`. Another one cannot be read.
const FORMAT: &str = "baler-traces/1";

/// The output of [`TraceAnalysis::save`].
#[derive(Debug)]
pub struct SavedTraces(pub(super) Saved<'static>);

/// The file has no usable results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedTracesError {
    /// It has another format, perhaps of another version.
    #[error("its format is `{0}`, not `{FORMAT}`")]
    Format(Box<str>),
    /// It is not the expected JSON document, or is not complete.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It uses a number that does not exist.
    #[error("{what} names {named} {number}, which the file does not have")]
    Number {
        /// The item with the number.
        what: &'static str,
        /// The kind of item to which the number refers.
        named: &'static str,
        /// The number.
        number: usize,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved<'a> {
    pub(super) format: Cow<'a, str>,
    /// Component and signature.
    pub(super) kinds: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Host, and position in `kinds`.
    pub(super) operations: Vec<(Cow<'a, str>, KindId)>,
    pub(super) counts: TraceCounts,
    pub(super) span: Option<(i64, i64)>,
    pub(super) newest: i64,
    pub(super) tree: Vec<Node>,
    /// Caller, called, count.
    pub(super) beyond: Vec<(Option<OperationId>, OperationId, u64)>,
    pub(super) times: Vec<SavedTimes>,
    pub(super) classes: Vec<TraceClass<Cow<'a, Trace>>>,
    pub(super) sessions: Cow<'a, BTreeMap<Box<str>, Session>>,
    pub(super) slowest: Cow<'a, [Trace]>,
    /// Traces by their ids, and the positions of their calls in `tree`.
    pub(super) placed: Vec<(i64, Cow<'a, Placed>)>,
    pub(super) waiting: Vec<Cow<'a, Trace>>,
    /// Closed traces, and whether a record came late.
    pub(super) closed: Vec<(i64, bool)>,
    pub(super) open: Vec<SavedOpen<'a>>,
    pub(super) chunks: Vec<ChunkRange>,
}

/// Operation, position of the caller's node (0 is the entry, 1 the first of the list), calls, their
/// time and their own time in nanoseconds.
type Node = (OperationId, usize, u64, u64, u64);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedTimes {
    pub(super) kind: KindId,
    pub(super) failed: u64,
    pub(super) total_ns: u128,
    /// Nanoseconds, exact to 1 %, and calls.
    pub(super) counts: Vec<(u64, u64)>,
}

/// The records of a trace that may get more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedOpen<'a> {
    pub(super) id: i64,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) metadata: Option<SavedMetadata<'a>>,
    pub(super) calls: Cow<'a, [Call]>,
    pub(super) events: Cow<'a, [Event]>,
    /// Absent without spans, as in files of earlier versions.
    #[serde(default, skip_serializing_if = "<[Span]>::is_empty")]
    pub(super) spans: Cow<'a, [Span]>,
}

/// The content of the trace's metadata record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedMetadata<'a> {
    pub(super) host: Cow<'a, str>,
    /// The trace that called it, and the place in that trace.
    pub(super) parent: Option<(i64, i32)>,
}

impl TraceAnalysis {
    /// Writes all results as one JSON document, including open traces. Call it before
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn save(&self, output: impl io::Write) -> io::Result<()> {
        let (assembler, profile) = (&self.assembler, &self.profile);
        let operations = &assembler.operations;
        let text = |text| Cow::Borrowed(operations.text_of(text));
        let (kinds, all) = (operations.kinds(), operations.all());
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
            kind,
            failed: timed.failed,
            total_ns: timed.durations.total_ns(),
            counts: timed.durations.counts(),
        });
        let classes = profile.classes.iter();
        let placed = profile.links.placed();
        let waiting = profile.links.waiting.values().flatten();
        let open = assembler.open.iter().map(|(id, trace)| SavedOpen {
            id: *id,
            session: trace
                .session
                .map(|session| Cow::Borrowed(assembler.sessions.get(session))),
            metadata: trace.metadata.map(|it| SavedMetadata {
                host: text(it.host),
                parent: it.parent,
            }),
            calls: Cow::Borrowed(&trace.calls),
            events: Cow::Borrowed(&trace.events),
            spans: Cow::Borrowed(&trace.spans),
        });
        let saved = Saved {
            format: FORMAT.into(),
            kinds: kinds
                .map(|it| (it.component.into(), it.signature.into()))
                .collect(),
            operations: all.map(|(host, kind)| (host.into(), kind)).collect(),
            counts: profile.counts.clone().with_records(&assembler.counts),
            span: profile.span,
            newest: assembler.newest,
            tree: nodes.collect(),
            beyond: profile.tree.beyond().collect(),
            times: times.collect(),
            classes: classes
                .map(|it| it.with(Cow::Borrowed(&it.example)))
                .collect(),
            sessions: Cow::Borrowed(&profile.sessions),
            slowest: Cow::Borrowed(&profile.slowest),
            placed: placed.map(|(id, it)| (id, Cow::Borrowed(it))).collect(),
            waiting: waiting.map(Cow::Borrowed).collect(),
            closed: assembler.closed.iter().collect(),
            open: open.collect(),
            chunks: self.chunks.iter().flat_map(SeenChunks::ranges).collect(),
        };
        serde_json::to_writer(output, &saved).map_err(io::Error::from)
    }
}

impl SavedTraces {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`SavedTracesError`], also if reading fails.
    pub fn read(input: impl io::Read) -> Result<Self, SavedTracesError> {
        let saved: Saved<'static> = serde_json::from_reader(io::BufReader::new(input))?;
        saved.check()?;
        Ok(Self(saved))
    }
}

impl Saved<'_> {
    /// Checks that every number refers to an item, and that traces are valid.
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
        let examples = self.classes.iter().map(|class| &*class.example);
        let waiting = self.waiting.iter().map(AsRef::as_ref);
        let traces = examples.chain(waiting).chain(self.slowest.iter());
        let is_valid = |trace: &&Trace| trace.check_sorted().is_ok();
        if let Some(trace) = traces.clone().find(|trace| !is_valid(trace)) {
            let message = format!("the trace {} is not valid", trace.id);
            return Err(serde_json::Error::custom(message).into());
        }
        let calls = traces.flat_map(|trace| &trace.calls);
        let open = self.open.iter().flat_map(|trace| trace.calls.iter());
        for call in calls.chain(open) {
            operation(call.operation, "a call")?;
        }
        for span in self.open.iter().flat_map(|trace| trace.spans.iter()) {
            operation(span.operation, "a span")?;
        }
        for event in self.open.iter().flat_map(|trace| trace.events.iter()) {
            kind(event.operation, "an event")?;
        }
        let placed = self.placed.iter();
        for node in placed.flat_map(|(_, placed)| placed.nodes.iter().flatten()) {
            below(node, self.tree.len() + 1, "a trace", "node")?;
        }
        Ok(())
    }
}
