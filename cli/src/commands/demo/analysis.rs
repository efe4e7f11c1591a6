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

/// The stages of the demo.
pub(super) struct Analysis;

/// Handles to what the stages find.
pub(super) struct Handles {
    times: Times,
    traces: TraceStage,
    found: Arc<Mutex<SharedFindings>>,
}

/// What was found.
pub(super) struct Findings {
    pub(super) times: Times,
    pub(super) traces: TraceStage,
    /// Bytes of the same chunks in Kieker's container.
    pub(super) kieker_bytes: u64,
}

#[derive(Debug, Default)]
struct SharedFindings {
    kieker_bytes: u64,
}

impl Analysis {
    /// The stages, and the handles to what they find.
    #[expect(clippy::new_ret_no_self, reason = "it is a tee of the parts below")]
    pub(super) fn new() -> (Tee, Handles) {
        let (response_times, times) = ResponseTimes::new();
        let found = Arc::new(Mutex::new(SharedFindings::default()));
        let mut settings = TraceSettings::default();
        settings.max_waiting = MAX_WAITING;
        let traces = TraceStage::new(settings);
        let tee = Tee::new()
            .branch(response_times)
            .branch(traces.clone())
            .branch(Rows {
                bytes: Vec::new(),
                found: Arc::clone(&found),
            });
        let handles = Handles {
            times,
            traces,
            found,
        };
        (tee, handles)
    }
}

impl Handles {
    /// What was found so far.
    pub(super) fn into_findings(self) -> Findings {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        Findings {
            times: self.times.clone(),
            traces: self.traces.clone(),
            kieker_bytes: found.kieker_bytes,
        }
    }
}

/// Writes the same chunks in Kieker's container, to compare.
struct Rows {
    bytes: Vec<u8>,
    found: Arc<Mutex<SharedFindings>>,
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
        self.bytes.clear();
        let bytes = KiekerSerializer::default()
            .serialize(&parcel.chunk().batch, &header, &mut self.bytes)
            .map_err(|error| AnalysisError::stage("rows", error.to_string()))?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        found.kieker_bytes = found.kieker_bytes.saturating_add(bytes);
        Ok(())
    }
}
