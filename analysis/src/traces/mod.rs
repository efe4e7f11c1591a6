//! Traces: the calls of operations, assembled from records in any order.
//!
//! ```text
//! parcels -> Assembler (records of a trace -> calls, validity) -> Profile (call tree, classes, counts)
//!                                                                    -> graphs, diagrams, document, report
//! ```
//!
//! There are two kinds of records, as in Kieker. An execution is one finished call with its place
//! in the trace: `eoi`, its number in the order of entries, and `ess`, its depth. Events mark the
//! start and the end of a call. `orderIndex` numbers them. The rules of validity come from Kieker's
//! `TraceReconstructionFilter` and `EventRecordTraceReconstructionFilter` (van Hoorn et al.,
//! "Kieker: A Framework for Application Performance Monitoring and Dynamic Software Analysis",
//! section 2).
//!
//! Only the records define the time: the newest time so far is the present.

mod assemble;
mod call_tree;
mod diagram;
mod document;
mod events;
mod graph;
mod layout;
mod merge;
mod operations;
mod profile;
// Files come from outside.
#[deny(clippy::expect_used, clippy::indexing_slicing)]
mod saved;
mod tree;

pub use assemble::{Assembler, ClosedTrace, TraceSettings};
pub use call_tree::{CallTree, CallTreeNode};
pub use diagram::SequenceDiagram;
pub use document::report;
pub use graph::{Graph, GraphEdge, GraphNode, Level};
pub use operations::{Operation, OperationId, Operations};
pub use profile::{Profile, Session, TraceClass};
pub use saved::{SavedTraces, SavedTracesError};
pub use tree::{Call, Outcome, Reason, Trace};

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::error::AnalysisError;
use super::parcel::Parcel;
use super::stage::Stage;
use saved::SeenChunks;

/// The complete analysis of traces: an [`Assembler`] and the [`Profile`] that it fills.
#[derive(Debug, Default)]
pub struct TraceAnalysis {
    assembler: Assembler,
    profile: Profile,
    chunks: Option<SeenChunks>,
}

impl TraceAnalysis {
    /// Creates an analysis that has seen nothing.
    pub fn new(settings: TraceSettings) -> Self {
        Self {
            chunks: settings.chunks_once.then(SeenChunks::default),
            assembler: Assembler::new(settings),
            profile: Profile::default(),
        }
    }

    /// Takes the records of a parcel. `each` is called with every trace that they close.
    pub fn accept(&mut self, parcel: &Parcel, mut each: impl FnMut(&ClosedTrace, &Operations)) {
        if let (Some(chunks), Some(identity)) = (&mut self.chunks, parcel.identity()) {
            if chunks.insert(identity, identity.sequence) > 0 {
                self.assembler.counts.chunk_copies += 1;
                return;
            }
        }
        let profile = &mut self.profile;
        self.assembler.accept(parcel, &mut |closed, operations| {
            each(&closed, operations);
            profile.add(closed, operations);
        });
    }

    /// Closes all open traces. `each` is called with every one of them.
    pub fn finish(&mut self, mut each: impl FnMut(&ClosedTrace, &Operations)) {
        let profile = &mut self.profile;
        self.assembler.finish(&mut |closed, operations| {
            each(&closed, operations);
            profile.add(closed, operations);
        });
        profile.finish(self.assembler.operations(), self.assembler.counts());
    }

    /// Returns the results. They are complete after [`finish`](Self::finish).
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the operations to which the numbers in the profile refer.
    pub fn operations(&self) -> &Operations {
        self.assembler.operations()
    }
}

/// A stage that feeds a [`TraceAnalysis`]. Clones share the analysis.
#[derive(Debug, Clone, Default)]
pub struct TraceStage(Arc<Mutex<StageState>>);

#[derive(Default)]
struct StageState {
    analysis: TraceAnalysis,
    /// The output for the list of closed traces, and its name.
    list: Option<(Box<dyn Write + Send>, Box<str>)>,
}

impl TraceStage {
    /// Creates a stage with an analysis of its own.
    pub fn new(settings: TraceSettings) -> Self {
        let analysis = TraceAnalysis::new(settings);
        let list = None;
        Self(Arc::new(Mutex::new(StageState { analysis, list })))
    }

    /// Writes every closed trace as a line of JSON to an output of this name.
    #[must_use]
    pub fn with_list(self, output: impl Write + Send + 'static, name: impl Into<Box<str>>) -> Self {
        self.lock().list = Some((Box::new(output), name.into()));
        self
    }

    /// Adds saved results: see [`TraceAnalysis::add_saved`].
    pub fn add_saved(&self, parts: Vec<SavedTraces>) {
        self.lock().analysis.add_saved(parts);
    }

    /// Reads the analysis.
    pub fn read<R>(&self, read: impl FnOnce(&TraceAnalysis) -> R) -> R {
        read(&self.lock().analysis)
    }

    fn lock(&self) -> MutexGuard<'_, StageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage for TraceStage {
    fn name(&self) -> &'static str {
        "traces"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.lock()
            .run(|analysis, list| analysis.accept(&parcel, list))
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        let mut state = self.lock();
        state.run(|analysis, list| analysis.finish(list))?;
        match &mut state.list {
            Some((output, name)) => output
                .flush()
                .map_err(|error| AnalysisError::output(name.clone(), error)),
            None => Ok(()),
        }
    }
}

impl StageState {
    /// Runs one step of the analysis, and lists the traces that it closes.
    fn run(
        &mut self,
        step: impl FnOnce(&mut TraceAnalysis, &mut dyn FnMut(&ClosedTrace, &Operations)),
    ) -> Result<(), AnalysisError> {
        let mut written = Ok(());
        let list = &mut self.list;
        step(&mut self.analysis, &mut |closed, operations| {
            if let (Ok(()), Some((output, name))) = (&written, list.as_mut()) {
                let line = writeln!(output, "{}", closed.document(operations));
                written = line.map_err(|error| AnalysisError::output(name.clone(), error));
            }
        });
        written
    }
}

impl fmt::Debug for StageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageState")
            .field("analysis", &self.analysis)
            .finish_non_exhaustive()
    }
}

/// The counts. Every trace is in one of `valid`, `invalid` and `incomplete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceCounts {
    /// Records of traces, including late ones and copies.
    pub records: u64,
    /// Executions outside traces.
    pub untraced: u64,
    /// Records that came twice; the second one is dropped.
    pub copies: u64,
    /// Traces with records that came after they had been closed.
    pub late: u64,
    /// The number of these late records.
    pub late_records: u64,
    /// Valid traces, including repaired ones.
    pub valid: u64,
    /// Traces that are valid because missing ends of calls were added.
    pub repaired: u64,
    /// Chunks that came again, and were skipped.
    pub chunk_copies: u64,
    /// Chunks that are in two merged results. For traces that were still open, copies are dropped;
    /// other traces of such chunks count twice.
    pub shared_chunks: u64,
    /// Traces that contradict themselves.
    pub invalid: BTreeMap<Reason, u64>,
    /// Traces that lack records.
    pub incomplete: BTreeMap<Reason, u64>,
    /// Traces whose caller was found in another trace.
    pub linked: u64,
    /// Traces whose caller is in a trace that was not found, or is not valid.
    pub parent_missing: u64,
    /// Valid traces beyond the limit of classes.
    pub without_class: u64,
    /// Valid traces beyond the limit of sessions.
    pub without_session: u64,
}

impl TraceCounts {
    /// Returns these counts, with an assembler's counts of records.
    #[must_use]
    fn with_records(self, records: &Self) -> Self {
        Self {
            records: records.records,
            untraced: records.untraced,
            copies: records.copies,
            late: records.late,
            late_records: records.late_records,
            chunk_copies: records.chunk_copies,
            shared_chunks: records.shared_chunks,
            ..self
        }
    }

    /// Adds other counts.
    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.records, other.records),
            (&mut self.untraced, other.untraced),
            (&mut self.copies, other.copies),
            (&mut self.late, other.late),
            (&mut self.late_records, other.late_records),
            (&mut self.chunk_copies, other.chunk_copies),
            (&mut self.shared_chunks, other.shared_chunks),
            (&mut self.valid, other.valid),
            (&mut self.repaired, other.repaired),
            (&mut self.linked, other.linked),
            (&mut self.parent_missing, other.parent_missing),
            (&mut self.without_class, other.without_class),
            (&mut self.without_session, other.without_session),
        ] {
            add_count(sum, more);
        }
        let reasons = [
            (&mut self.invalid, &other.invalid),
            (&mut self.incomplete, &other.incomplete),
        ];
        for (sums, more) in reasons {
            for (reason, count) in more {
                add_count(sums.entry(*reason).or_default(), *count);
            }
        }
    }
}

/// Adds a count. Saved results may have any count, so the sum stays below 2^63: what is counted one
/// by one after that fits, too.
fn add_count(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more).min(u64::MAX >> 1);
}
