//! The records of a chunk that go to a receiver of OTLP.

use std::ops::Range;

use baler_common::container::{ChunkDecoder, Limits};
use baler_common::record::{Projection, Record, RecordBatch, RecordRef, Records as _, Schema};
use baler_common::transport::{Chunk, ChunkIdentity};
use baler_connector_kieker::container::KiekerDeserializer;
use baler_connector_kieker::types::{KiekerMetadataRecord, TraceMetadata, WELL_KNOWN_TYPES};

use super::call::{Call, SpanMaker, origin_of};
use super::calls::{Calls, Origin, Place};
use super::event::{Event, FollowsFrom};
use crate::config::Others;
use crate::mapping::attributes_of;
use crate::protocol::Signal;
use crate::types::{Attributes, Log, Span, Telemetry};

/// The records of a chunk. They are read again for each request, so that only those of one request
/// are in memory.
#[derive(Debug)]
pub(crate) struct ChunkRecords {
    batch: RecordBatch,
    /// What the records of each table become.
    kinds: Vec<Kind>,
    places: Vec<Place>,
    origins: Vec<(i64, Origin)>,
    /// The spans and log records that were made of other records.
    made: Vec<Telemetry>,
    skipped: u64,
}

/// What the records of a table become.
#[derive(Debug)]
enum Kind {
    /// A span.
    Call(Projection),
    /// A log record.
    Event(Projection),
    /// A log record.
    FollowsFrom(Projection),
    /// A record of this signal, as which they came.
    Otlp(Signal),
    /// Nothing.
    Skipped,
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
        let mut records = Self {
            batch: decoded.batch,
            kinds: Vec::new(),
            places: Vec::new(),
            origins: Vec::new(),
            made: Vec::new(),
            skipped: 0,
        };
        for table in records.batch.tables() {
            let kind = Kind::of(table.schema());
            if kind.is_none() && others == Others::Refuse && !table.is_empty() {
                return Err(format!(
                    "{} has no form in OTLP; filter such records out, or skip them by others=skip",
                    table.schema().name()
                ));
            }
            let kind = kind.unwrap_or(Kind::Skipped);
            if matches!(kind, Kind::Skipped) {
                records.skipped += table.len() as u64;
            }
            records.kinds.push(kind);
        }
        records.read_places()?;
        Ok(records)
    }

    /// Reads the places of calls, and the origins of traces.
    fn read_places(&mut self) -> Result<(), String> {
        let metadata = self.batch.read::<TraceMetadata>();
        for metadata in metadata {
            let metadata = metadata.map_err(|error| error.to_string())?;
            self.origins.extend(origin_of(&metadata));
        }
        for (kind, record) in kinds(&self.batch, &self.kinds) {
            if let Kind::Call(fields) = kind {
                let call: Call = read(fields, record)?;
                self.places.extend(call.place());
                self.origins.extend(call.origin());
            }
        }
        Ok(())
    }

    /// Returns the number of records without a form in OTLP.
    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the places of the calls.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns where traces from other processes come from, by Kieker's ids.
    pub(super) fn origins(&self) -> &[(i64, Origin)] {
        &self.origins
    }

    /// Makes spans of calls, and log records of events. Returns the number of calls whose caller is
    /// unknown.
    ///
    /// # Errors
    ///
    /// A field has a value that OTLP cannot hold.
    pub(super) fn make(
        &mut self,
        known: &Calls,
        identity: ChunkIdentity,
        service: Option<&str>,
    ) -> Result<u64, String> {
        let mut spans = SpanMaker::new(known, identity, service);
        for ((kind, record), position) in kinds(&self.batch, &self.kinds).zip(0..) {
            self.made.push(match kind {
                Kind::Call(fields) => {
                    let others = others::<Call>(record)?;
                    Telemetry::Span(spans.span(read(fields, record)?, others, position))
                }
                Kind::Event(fields) => {
                    let event: Event = read(fields, record)?;
                    Telemetry::Log(event.log(others::<Event>(record)?, service))
                }
                Kind::FollowsFrom(fields) => {
                    Telemetry::Log(read::<FollowsFrom>(fields, record)?.log(service))
                }
                Kind::Otlp(_) | Kind::Skipped => continue,
            });
        }
        Ok(spans.without_parent)
    }

    /// Returns the number of records of a signal.
    pub(crate) fn len(&self, signal: Signal) -> usize {
        let tables = self.batch.tables().iter().zip(&self.kinds);
        let known = tables.filter(|(_, kind)| matches!(kind, Kind::Otlp(it) if *it == signal));
        let stored: usize = known.map(|(table, _)| table.len()).sum();
        stored + self.made(signal).count()
    }

    fn made(&self, signal: Signal) -> impl Iterator<Item = &Telemetry> {
        self.made.iter().filter(move |it| it.signal() == signal)
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
        let all = stored.chain(self.made(signal).cloned().map(Ok));
        let records: Result<_, _> = all.skip(range.start).take(range.len()).collect();
        records.map_err(|error| error.to_string())
    }
}

/// Returns the records of a batch with the kinds of their tables.
fn kinds<'a>(
    batch: &'a RecordBatch,
    kinds: &'a [Kind],
) -> impl Iterator<Item = (&'a Kind, RecordRef<'a>)> {
    let all = batch.records().with_tables();
    all.filter_map(|(table, record)| Some((kinds.get(table)?, record)))
}

fn read<R: Record>(fields: &Projection, record: RecordRef<'_>) -> Result<R, String> {
    let read = fields.read(record.fields());
    read.map_err(|error| error.to_string())
}

/// Returns the fields that `R` does not have.
fn others<R: Record>(record: RecordRef<'_>) -> Result<Attributes, String> {
    let fields = record.fields().values();
    let others = fields.filter(|(name, _)| R::schema().position(name).is_none());
    // As tracing-opentelemetry names them.
    let others = others.map(|(name, value)| match name {
        "busy" => ("busy_ns", value),
        "idle" => ("idle_ns", value),
        _ => (name, value),
    });
    attributes_of(others).map_err(|error| error.to_string())
}

impl Kind {
    /// Returns what records of a type become; `None` if they have no form in OTLP.
    fn of(schema: &Schema) -> Option<Self> {
        let name = schema.name();
        if let Some(signal) = signal_of(name) {
            return Some(Self::Otlp(signal));
        }
        // They describe logs and traces, and are in all of Kieker's streams.
        let described = [KiekerMetadataRecord::schema(), TraceMetadata::schema()];
        if described.iter().any(|it| it.name() == name) {
            return Some(Self::Skipped);
        }
        let has = |fields: &[&str]| fields.iter().all(|it| schema.position(it).is_some());
        let projection = |reader: &Schema, required| {
            let matched = has(required).then(|| Projection::new(reader, schema).ok());
            matched.flatten()
        };
        if let Some(fields) = projection(Call::schema(), Call::REQUIRED) {
            Some(Self::Call(fields))
        } else if let Some(fields) = projection(FollowsFrom::schema(), FollowsFrom::REQUIRED) {
            Some(Self::FollowsFrom(fields))
        } else if let Some(fields) = projection(Event::schema(), Event::REQUIRED) {
            Some(Self::Event(fields))
        } else {
            // The start of a span of `tracing`, whose end is another record.
            has(&["tin", "spanId", "w3cTraceHigh"]).then_some(Self::Skipped)
        }
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
