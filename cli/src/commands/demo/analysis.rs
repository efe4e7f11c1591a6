//! What the demo's consumer makes of the records: response times, one call tree, and what the same
//! records would take as Kieker's rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use baler_analysis::filters::{ResponseTimes, Tee, Times};
use baler_analysis::trace::{CallTree, Execution};
use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::container::{ChunkHeader, ChunkSerializer as _, KiekerSerializer};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// After so many whole traces the largest one is kept for good.
const TRACES: usize = 200;

/// How many traces may be incomplete at a time; beyond it they are forgotten.
const MAX_PENDING: usize = 1_024;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The largest of the first whole traces.
    pub(super) tree: Option<CallTree>,
    /// Bytes of the same chunks in Kieker's container.
    pub(super) kieker_bytes: u64,
}

/// The stages, and handles to the response times and what else they find.
pub(super) fn stages() -> (Tee, Times, Arc<Mutex<Findings>>) {
    let (response_times, times) = ResponseTimes::new();
    let found = Arc::<Mutex<Findings>>::default();
    let tee = Tee::new()
        .branch(response_times)
        .branch(Traces {
            pending: HashMap::new(),
            whole: 0,
            found: Arc::clone(&found),
        })
        .branch(Rows {
            found: Arc::clone(&found),
        });
    (tee, times, found)
}

/// Puts traces together until there are enough of them.
struct Traces {
    pending: HashMap<i64, Vec<Execution>>,
    whole: usize,
    found: Arc<Mutex<Findings>>,
}

impl Stage for Traces {
    fn name(&self) -> &'static str {
        "traces"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            if self.whole >= TRACES {
                self.pending.clear();
                break;
            }
            if let Some(execution) = Execution::from_record(record) {
                self.add(execution);
            }
        }
        Ok(())
    }
}

impl Traces {
    fn add(&mut self, execution: Execution) {
        if self.pending.len() >= MAX_PENDING {
            self.pending.clear();
        }
        let (trace_id, is_root) = (execution.trace_id, execution.ess == 0);
        self.pending.entry(trace_id).or_default().push(execution);
        // The root ends last: in a trace of one thread everything else is there already.
        let executions = is_root.then(|| self.pending.remove(&trace_id)).flatten();
        let Some(tree) = executions.and_then(|it| CallTree::of(it).ok()) else {
            return;
        };
        self.whole = self.whole.saturating_add(1);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |tree: &CallTree| tree.executions().len();
        if found
            .tree
            .as_ref()
            .is_none_or(|largest| size(largest) < size(&tree))
        {
            found.tree = Some(tree);
        }
    }
}

/// Writes the same chunks in Kieker's container, to compare.
struct Rows {
    found: Arc<Mutex<Findings>>,
}

impl Stage for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        // Kieker's container has no room for a header; any will do.
        let header = ChunkHeader::new(parcel.identity().unwrap_or(ChunkIdentity {
            producer: ProducerId::new(0),
            epoch: Epoch {
                start_unix_ns: 0,
                random: 0,
            },
            lane: 0,
            sequence: 0,
        }));
        let bytes = KiekerSerializer::default()
            .serialize(&parcel.chunk().batch, &header, &mut Vec::new())
            .map_err(|error| AnalysisError::stage("rows", error.to_string()))?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        found.kieker_bytes = found.kieker_bytes.saturating_add(bytes);
        Ok(())
    }
}
