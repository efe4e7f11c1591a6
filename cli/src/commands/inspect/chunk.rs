//! The figures of one chunk.

use std::collections::{BTreeMap, HashSet};

use baler_analysis::sinks::RecordJson;
use baler_common::container::{ChunkHeader, DecodedChunk, Layout};
use baler_common::record::{RecordBatch, Table};
use baler_common::transport::{ChunkIdentity, ContainerKind, Delivery};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::Failure;
use crate::output::figures::by_reason;

/// How much of a chunk's content is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) records: usize,
    pub(super) strings: usize,
}

/// One chunk.
#[derive(Debug, Serialize)]
pub(super) struct ChunkFigures {
    pub(super) lane: String,
    pub(super) position: u64,
    pub(super) container: &'static str,
    pub(super) format: &'static str,
    pub(super) compression: &'static str,
    pub(super) records: usize,
    /// Strings in the chunk's string table.
    pub(super) strings: usize,
    pub(super) bytes: usize,
    /// As the chunk itself or, failing that, the medium says.
    pub(super) identity: Option<IdentityFigures>,
    pub(super) first_unix_ns: Option<i64>,
    pub(super) last_unix_ns: Option<i64>,
    pub(super) header: Option<HeaderFigures>,
    pub(super) layout: LayoutFigures,
    pub(super) schemas: Vec<SchemaFigures>,
    pub(super) first_strings: Vec<String>,
    pub(super) first_records: Vec<Box<RawValue>>,
}

/// Who a chunk is.
#[derive(Debug, Serialize)]
pub(super) struct IdentityFigures {
    pub(super) producer: String,
    pub(super) epoch: String,
    pub(super) lane: u32,
    pub(super) sequence: u64,
}

/// What a native chunk's header says beside that.
#[derive(Debug, Serialize)]
pub(super) struct HeaderFigures {
    pub(super) last_of_epoch: bool,
    pub(super) clock_jumped: bool,
    pub(super) has_clock_mapping: bool,
    pub(super) losses: BTreeMap<String, u64>,
    /// Chunks that the producer gave up: first sequence number and how many.
    pub(super) lost_chunks: Vec<(u64, u64)>,
}

/// Where the bytes went.
#[derive(Debug, Serialize)]
pub(super) struct LayoutFigures {
    pub(super) header_bytes: usize,
    pub(super) stored_body_bytes: usize,
    pub(super) body_bytes: usize,
    pub(super) schema_bytes: usize,
    pub(super) string_bytes: usize,
    pub(super) order_bytes: usize,
    pub(super) columns: Vec<ColumnFigures>,
}

/// One column.
#[derive(Debug, Serialize)]
pub(super) struct ColumnFigures {
    pub(super) record: String,
    pub(super) field: String,
    pub(super) encoding: String,
    pub(super) bytes: usize,
}

/// One record type.
#[derive(Debug, Serialize)]
pub(super) struct SchemaFigures {
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) records: usize,
    pub(super) fields: Vec<FieldFigures>,
}

/// One field.
#[derive(Debug, Serialize)]
pub(super) struct FieldFigures {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) field_type: String,
}

impl ChunkFigures {
    /// Collects the figures.
    ///
    /// # Errors
    ///
    /// A record cannot be shown as JSON.
    pub(super) fn new(
        delivery: &Delivery,
        chunk: &DecodedChunk,
        layout: &Layout,
        shown: Shown,
    ) -> Result<Self, Failure> {
        let DecodedChunk { summary, batch } = chunk;
        let identity = summary.identity();
        let identity = identity.or_else(|| delivery.meta.map(|meta| meta.identity));
        let strings = string_table(summary.container, batch);
        let span = summary.time_span.or_else(|| batch.time_span());
        Ok(Self {
            lane: delivery.origin.lane.to_string(),
            position: delivery.origin.position,
            container: summary.container.name(),
            format: summary.format,
            compression: summary.compression.name(),
            records: batch.len(),
            strings: strings.len(),
            bytes: summary.bytes,
            identity: identity.map(IdentityFigures::from),
            first_unix_ns: span.map(|span| span.0),
            last_unix_ns: span.map(|span| span.1),
            header: summary.header.as_ref().map(HeaderFigures::from),
            layout: layout.into(),
            schemas: batch.tables().iter().map(SchemaFigures::from).collect(),
            first_strings: strings
                .into_iter()
                .take(shown.strings)
                .map(str::to_owned)
                .collect(),
            first_records: first_records(batch, shown.records)?,
        })
    }
}

/// The chunk's string table: the distinct strings, and in Kieker's container, which names the types
/// by it too, those of the types.
fn string_table(container: ContainerKind, batch: &RecordBatch) -> Vec<&str> {
    let mut strings: Vec<&str> = batch.strings().iter().collect();
    if container == ContainerKind::Kieker {
        let known: HashSet<&str> = strings.iter().copied().collect();
        let names = batch.tables().iter().map(|table| table.schema().name());
        strings.extend(names.filter(|name| !known.contains(name)));
    }
    strings
}

fn first_records(batch: &RecordBatch, count: usize) -> Result<Vec<Box<RawValue>>, Failure> {
    let records = batch.records().take(count);
    records
        .map(|record| to_raw_value(&RecordJson(record)))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::output("a record as JSON", &error.into()))
}

impl From<ChunkIdentity> for IdentityFigures {
    fn from(identity: ChunkIdentity) -> Self {
        Self {
            producer: identity.producer.to_string(),
            epoch: identity.epoch.to_string(),
            lane: identity.lane,
            sequence: identity.sequence,
        }
    }
}

impl From<&ChunkHeader> for HeaderFigures {
    fn from(header: &ChunkHeader) -> Self {
        let lost = header.lost_chunks.iter();
        Self {
            last_of_epoch: header.last_of_epoch,
            clock_jumped: header.clock_jumped,
            has_clock_mapping: header.clock.is_some(),
            losses: by_reason(&header.losses),
            lost_chunks: lost.map(|it| (it.first_sequence, it.chunks)).collect(),
        }
    }
}

impl From<&Layout> for LayoutFigures {
    fn from(layout: &Layout) -> Self {
        let columns = layout.columns.iter().map(|column| ColumnFigures {
            record: column.record.to_string(),
            field: column.field.to_string(),
            encoding: column.encoding.to_string(),
            bytes: column.bytes,
        });
        Self {
            header_bytes: layout.header_bytes,
            stored_body_bytes: layout.stored_body_bytes,
            body_bytes: layout.body_bytes,
            schema_bytes: layout.schema_bytes,
            string_bytes: layout.string_bytes,
            order_bytes: layout.order_bytes,
            columns: columns.collect(),
        }
    }
}

impl From<&Table> for SchemaFigures {
    fn from(table: &Table) -> Self {
        let fields = table.schema().fields().iter().map(|field| FieldFigures {
            name: field.name().to_owned(),
            field_type: field.field_type().to_string(),
        });
        Self {
            name: table.schema().name().to_owned(),
            fingerprint: format!("{:?}", table.schema().fingerprint()),
            records: table.len(),
            fields: fields.collect(),
        }
    }
}
