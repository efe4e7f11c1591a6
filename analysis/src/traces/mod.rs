//! Traces: which call made which, put together from records that come in any order.
//!
//! ```text
//! parcels -> Assembler (records of a trace -> calls, validity) -> Profile (call tree, classes, counts)
//!                                                                    -> graphs, diagrams, document, report
//! ```
//!
//! Records are of two kinds, as in Kieker.
//! An execution is one finished call with its place in the trace: `eoi`, its number in the order of
//! entries, and `ess`, its depth.
//! Events tell the beginning and the end of a call, numbered by `orderIndex`.
//! The rules of validity are those of Kieker's `TraceReconstructionFilter` and
//! `EventRecordTraceReconstructionFilter` (van Hoorn et al., "Kieker: A Framework for Application
//! Performance Monitoring and Dynamic Software Analysis", section 2).
//!
//! Time comes from the records alone: the newest time that was seen is the present.

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

/// Everything that records tell about traces: an [`Assembler`] and the [`Profile`] that it fills.
#[derive(Debug, Default)]
pub struct TraceAnalysis {
    assembler: Assembler,
    profile: Profile,
    chunks: Option<SeenChunks>,
}

impl TraceAnalysis {
    /// An analysis that has seen nothing.
    pub fn new(settings: TraceSettings) -> Self {
        Self {
            chunks: settings.chunks_once.then(SeenChunks::default),
            assembler: Assembler::new(settings),
            profile: Profile::default(),
        }
    }

    /// Takes the records of a parcel. `each` is called with every trace that is closed by them.
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

    /// Closes the traces that are still open. `each` is called with every one of them.
    pub fn finish(&mut self, mut each: impl FnMut(&ClosedTrace, &Operations)) {
        let profile = &mut self.profile;
        self.assembler.finish(&mut |closed, operations| {
            each(&closed, operations);
            profile.add(closed, operations);
        });
        profile.finish(self.assembler.operations(), self.assembler.counts());
    }

    /// What was found. Complete after [`finish`](Self::finish).
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The operations that the profile names by numbers.
    pub fn operations(&self) -> &Operations {
        self.assembler.operations()
    }
}

/// A stage that feeds a [`TraceAnalysis`]. Cloning shares the analysis.
#[derive(Debug, Clone, Default)]
pub struct TraceStage(Arc<Mutex<StageState>>);

#[derive(Default)]
struct StageState {
    analysis: TraceAnalysis,
    /// Where closed traces are listed, and its name.
    list: Option<(Box<dyn Write + Send>, Box<str>)>,
}

impl TraceStage {
    /// A stage that feeds an analysis of its own.
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

/// What was counted. Every trace is in one of `valid`, `invalid` and `incomplete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceCounts {
    /// Records of traces, late ones and copies included.
    pub records: u64,
    /// Executions outside of traces.
    pub untraced: u64,
    /// Records that were there twice; the second one is dropped.
    pub copies: u64,
    /// Traces of which records came after they had been closed.
    pub late: u64,
    /// These records.
    pub late_records: u64,
    /// Valid traces, repaired ones included.
    pub valid: u64,
    /// Traces that are valid because missing ends of calls were added.
    pub repaired: u64,
    /// Chunks that came again, and were passed over.
    pub chunk_copies: u64,
    /// Chunks that are in two results that were added up. Of traces that were still open there copies
    /// are dropped; other traces of such chunks count twice.
    pub shared_chunks: u64,
    /// Traces that contradict themselves.
    pub invalid: BTreeMap<Reason, u64>,
    /// Traces that lack records.
    pub incomplete: BTreeMap<Reason, u64>,
    /// Traces whose caller is in another trace that was found.
    pub linked: u64,
    /// Traces whose caller is in another trace that was not found, or is not valid.
    pub parent_missing: u64,
    /// Valid traces beyond the bound of classes.
    pub without_class: u64,
    /// Valid traces beyond the bound of sessions.
    pub without_session: u64,
}

impl TraceCounts {
    /// These counts, with those of records from an assembler.
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
            *sum = sum.saturating_add(more);
        }
        let reasons = [
            (&mut self.invalid, &other.invalid),
            (&mut self.incomplete, &other.incomplete),
        ];
        for (sums, more) in reasons {
            for (reason, count) in more {
                let sum = sums.entry(*reason).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    fn add_copies(&mut self, copies: usize) {
        self.copies = self
            .copies
            .saturating_add(u64::try_from(copies).unwrap_or(u64::MAX));
    }
}
