//! What the demo's consumer makes of the records: response times, traces, and what the same records
//! would take as Kieker's rows.

use std::sync::{Arc, Mutex, PoisonError};

use baler_analysis::filters::{ResponseTimes, Tee, Times};
use baler_analysis::traces::{TraceSettings, TraceStage};
use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::container::{ChunkHeader, ChunkSerializer as _, KiekerSerializer};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// How many records may wait for the rest of their traces. Over one connection a trace is complete
/// soon.
const MAX_WAITING: usize = 200_000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Bytes of the same chunks in Kieker's container.
    pub(super) kieker_bytes: u64,
}

/// The stages, and handles to the response times, the traces and what else they find.
pub(super) fn stages() -> (Tee, Times, TraceStage, Arc<Mutex<Findings>>) {
    let (response_times, times) = ResponseTimes::new();
    let found = Arc::<Mutex<Findings>>::default();
    let mut settings = TraceSettings::default();
    settings.max_waiting = MAX_WAITING;
    let traces = TraceStage::new(settings);
    let rows = Rows {
        found: Arc::clone(&found),
    };
    let tee = Tee::new()
        .branch(response_times)
        .branch(traces.clone())
        .branch(rows);
    (tee, times, traces, found)
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
