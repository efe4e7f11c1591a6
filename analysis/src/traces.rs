//! Traces: the calls of operations, assembled from records in any order.
//!
//! ```text
//! parcels -> Assembler (records of a trace -> calls, validity) -> Profile (call tree, classes, counts)
//!                                                                    -> graphs, diagrams, document, report
//! ```
//!
//! There are three kinds of records, two of them as in Kieker. An execution is one finished call with its place
//! in the trace: `eoi`, its number in the order of entries, and `ess`, its depth. Events mark the
//! start and the end of a call. `orderIndex` numbers them. Spans of OpenTelemetry name their parents.
//! The calls of all of them can be written as executions. The rules of validity come from Kieker's
//! `TraceReconstructionFilter` and `EventRecordTraceReconstructionFilter` (van Hoorn et al.,
//! "Kieker: A Framework for Application Performance Monitoring and Dynamic Software Analysis",
//! section 2).
//!
//! Only the records define the time: the newest time so far is the present.

mod assemble;
mod call_tree;
mod classes;
mod counts;
mod diagram;
mod document;
mod events;
mod executions;
mod graph;
mod layout;
mod merge;
mod operations;
mod profile;
// Files come from outside.
#[deny(clippy::expect_used, clippy::indexing_slicing)]
mod saved;
#[deny(clippy::expect_used, clippy::indexing_slicing)]
mod seen_chunks;
mod spans;
mod stage;
mod tree;

pub use assemble::{Assembler, ClosedTrace, TraceSettings};
pub use call_tree::{CallTree, CallTreeNode};
pub use classes::TraceClass;
pub use counts::TraceCounts;
pub use diagram::SequenceDiagram;
pub use document::{Dependencies, Dependency, TraceDocument, report};
pub use graph::{Graph, GraphEdge, GraphNode, Level};
pub use operations::{Operation, OperationId, Operations};
pub use profile::{Profile, Session};
pub use saved::{SavedTraces, SavedTracesError};
pub use stage::TraceStage;
pub use tree::{Call, Outcome, Reason, Trace};

use super::parcel::Parcel;
use seen_chunks::SeenChunks;

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
