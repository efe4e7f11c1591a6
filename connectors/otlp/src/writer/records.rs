//! The records of a chunk that go to a receiver of OTLP.

use std::ops::Range;

use baler_common::container::{ChunkDecoder, Limits};
use baler_common::record::{Record as _, RecordBatch, Records as _};
use baler_common::transport::{Chunk, ChunkIdentity};
use baler_connector_kieker::container::KiekerDeserializer;
use baler_connector_kieker::types::{
    KiekerMetadataRecord, OperationExecutionRecord, WELL_KNOWN_TYPES,
};

use super::calls::Calls;
use super::kieker::spans;
use crate::config::Others;
use crate::protocol::Signal;
use crate::types::{Log, Span, Telemetry};

/// The records of a chunk. They are read again for each request, so that only those of one request
/// are in memory.
#[derive(Debug)]
pub(crate) struct ChunkRecords {
    batch: RecordBatch,
    /// Kieker's calls, and the spans that were made of them.
    calls: Vec<OperationExecutionRecord>,
    made: Vec<Span>,
    skipped: u64,
}

impl ChunkRecords {
    /// Decodes a chunk.
    ///
    /// # Errors
    ///
    /// It cannot be decoded, or has records without a form in OTLP that must not be skipped.
    pub(crate) fn of(chunk: &Chunk, others: Others) -> Result<Self, String> {
        let mut decoder = ChunkDecoder::new(Limits::default())
            .with_well_known_types(&WELL_KNOWN_TYPES)
            .with_deserializer(KiekerDeserializer::default());
        let decoded = decoder.decode(&chunk.bytes);
        let decoded = decoded.map_err(|error| format!("the chunk cannot be decoded: {error}"))?;
        let batch = decoded.batch;
        let mut skipped = 0;
        for table in batch.tables().iter().filter(|it| !it.is_empty()) {
            let name = table.schema().name();
            let is_call = name == OperationExecutionRecord::schema().name();
            if is_call || signal_of(name).is_some() {
                continue;
            }
            // It describes the writer of a log, and is in all of Kieker's streams.
            let is_metadata = name == KiekerMetadataRecord::schema().name();
            if others == Others::Refuse && !is_metadata {
                return Err(format!(
                    "{name} has no form in OTLP; filter such records out, or skip them by \
                     others=skip"
                ));
            }
            skipped += table.len() as u64;
        }
        let calls = batch.read().collect::<Result<_, _>>();
        Ok(Self {
            calls: calls.map_err(|error| error.to_string())?,
            batch,
            made: Vec::new(),
            skipped,
        })
    }

    /// Returns the number of records without a form in OTLP.
    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns Kieker's calls.
    pub(super) fn calls(&self) -> &[OperationExecutionRecord] {
        &self.calls
    }

    /// Makes spans of Kieker's calls. Returns the number of those whose caller is unknown.
    pub(super) fn make_spans(&mut self, known: &Calls, identity: ChunkIdentity) -> u64 {
        let (made, without_parent) = spans(&self.calls, known, identity);
        self.made = made;
        without_parent
    }

    /// Returns the number of records of a signal.
    pub(crate) fn len(&self, signal: Signal) -> usize {
        let tables = self.batch.tables().iter();
        let known = tables.filter(|it| signal_of(it.schema().name()) == Some(signal));
        let stored: usize = known.map(|it| it.len()).sum();
        stored + self.made(signal).len()
    }

    fn made(&self, signal: Signal) -> &[Span] {
        let spans = (signal == Signal::Traces).then_some(&*self.made);
        spans.unwrap_or_default()
    }

    /// Reads a range of the records of a signal.
    ///
    /// # Errors
    ///
    /// A record has other fields than this version's.
    pub(crate) fn read(
        &self,
        signal: Signal,
        range: Range<usize>,
    ) -> Result<Vec<Telemetry>, String> {
        let read = self.batch.read::<Telemetry>();
        let stored = read.filter(|it| it.as_ref().map_or(true, |it| it.signal() == signal));
        let made = self.made(signal).iter().cloned();
        let all = stored.chain(made.map(|it| Ok(Telemetry::Span(it))));
        let records: Result<_, _> = all.skip(range.start).take(range.len()).collect();
        records.map_err(|error| error.to_string())
    }
}

/// Returns the signal of the type with this name.
fn signal_of(name: &str) -> Option<Signal> {
    if name == Span::schema().name() {
        Some(Signal::Traces)
    } else if name == Log::schema().name() {
        Some(Signal::Logs)
    } else {
        let is_point = Telemetry::schemas().iter().any(|it| it.name() == name);
        is_point.then_some(Signal::Metrics)
    }
}
