//! The analysis of the demo's consumer: traces, and the size of the same chunks in Kieker's container.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baler_analysis::filters::Tee;
use baler_analysis::traces::{TraceSettings, TraceStage};
use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::container::{ChunkHeader, ChunkSerializer as _};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::container::KiekerSerializer;

/// The maximum number of records that wait for the rest of their traces. Over one connection, a
/// trace is soon complete.
const MAX_WAITING: usize = 200_000;

/// Returns the stages, and handles to the traces and to the byte count of the same chunks in
/// Kieker's container.
pub(super) fn stages() -> (Tee, TraceStage, Arc<AtomicU64>) {
    let kieker_bytes = Arc::<AtomicU64>::default();
    let mut settings = TraceSettings::default();
    settings.max_waiting = MAX_WAITING;
    let traces = TraceStage::new(settings);
    let rows = Rows(Arc::clone(&kieker_bytes));
    let tee = Tee::new().branch(traces.clone()).branch(rows);
    (tee, traces, kieker_bytes)
}

/// Encodes the same chunks in Kieker's container, for comparison, and counts their bytes.
struct Rows(Arc<AtomicU64>);

impl Stage for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        // Kieker's container does not store a header, so any header will do.
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
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}
