//! One chunk as JSON. The names are part of the interface of the program, and of the package in Python.

use std::collections::{BTreeMap, HashSet};

use baler_common::container::{ChunkHeader, DecodedChunk, Layout, LossReason, Losses};
use baler_common::record::{RecordBatch, Table};
use baler_common::transport::{ChunkIdentity, ContainerKind, Delivery, Origin};
use serde_json::{Value, json};

use super::json::RecordJson;

/// Returns the figures of a chunk, and its first strings and records.
///
/// # Errors
///
/// A record cannot be shown as JSON.
pub fn chunk_document(
    delivery: &Delivery,
    chunk: &DecodedChunk,
    layout: &Layout,
    first_strings: usize,
    first_records: usize,
) -> serde_json::Result<Value> {
    let DecodedChunk { summary, batch } = chunk;
    // The identity comes from the chunk itself, otherwise from the medium.
    let identity = summary.identity();
    let identity = identity.or_else(|| delivery.meta.map(|meta| meta.identity));
    let strings = string_table(summary.container, batch);
    let span = summary.time_span.or_else(|| batch.time_span());
    let columns = layout.columns.iter().map(|column| {
        json!({
            "record": column.record,
            "field": column.field,
            "encoding": column.encoding,
            "bytes": column.bytes,
        })
    });
    let schemas = batch.tables().iter().map(schema);
    Ok(json!({
        "lane": delivery.origin.lane,
        "position": delivery.origin.position,
        "container": summary.container.name(),
        "format": summary.format,
        "compression": summary.compression.name(),
        "records": batch.len(),
        "strings": strings.len(),
        "bytes": summary.bytes,
        "identity": identity.map(named),
        "first_unix_ns": span.map(|span| span.0),
        "last_unix_ns": span.map(|span| span.1),
        "header": summary.header.as_ref().map(header),
        "layout": {
            "header_bytes": layout.header_bytes,
            "stored_body_bytes": layout.stored_body_bytes,
            "body_bytes": layout.body_bytes,
            "schema_bytes": layout.schema_bytes,
            "string_bytes": layout.string_bytes,
            "order_bytes": layout.order_bytes,
            "columns": columns.collect::<Vec<_>>(),
        },
        "schemas": schemas.collect::<Vec<_>>(),
        "first_strings": strings.iter().take(first_strings).collect::<Vec<_>>(),
        "first_records": records(batch, first_records)?,
    }))
}

/// Returns the chunk's string table: its distinct strings. Kieker's container also stores the names
/// of types in it.
fn string_table(container: ContainerKind, batch: &RecordBatch) -> Vec<&str> {
    let mut strings: Vec<&str> = batch.strings().iter().collect();
    if container == ContainerKind::Kieker {
        let known: HashSet<&str> = strings.iter().copied().collect();
        let names = batch.tables().iter().map(|table| table.schema().name());
        strings.extend(names.filter(|name| !known.contains(name)));
    }
    strings
}

fn records(batch: &RecordBatch, count: usize) -> serde_json::Result<Vec<Value>> {
    // Goes through JSON text, so that numbers keep the digits that they have there.
    let value = |record| serde_json::from_str(&serde_json::to_string(&RecordJson(record))?);
    batch.records().take(count).map(value).collect()
}

fn named(identity: ChunkIdentity) -> Value {
    json!({
        "producer": identity.producer.to_string(),
        "epoch": identity.epoch.to_string(),
        "lane": identity.lane,
        "sequence": identity.sequence,
    })
}

/// Returns the fields of a native chunk's header, without its identity.
fn header(header: &ChunkHeader) -> Value {
    // Chunks that the producer gave up: the first sequence number, and the count.
    let lost = header.lost_chunks.iter();
    let lost = lost.map(|it| (it.first_sequence, it.chunks));
    json!({
        "last_of_epoch": header.last_of_epoch,
        "clock_jumped": header.clock_jumped,
        "has_clock_mapping": header.clock.is_some(),
        "losses": by_reason(&header.losses),
        "lost_chunks": lost.collect::<Vec<_>>(),
    })
}

fn schema(table: &Table) -> Value {
    let fields = table.schema().fields().iter();
    let fields = fields.map(|it| json!({ "name": it.name(), "type": it.field_type().to_string() }));
    json!({
        "name": table.schema().name(),
        "fingerprint": format!("{:?}", table.schema().fingerprint()),
        "records": table.len(),
        "fields": fields.collect::<Vec<_>>(),
    })
}

/// Returns the place and the reason of a piece that is no chunk.
pub fn broken_document(origin: &Origin, bytes: &[u8], reason: &str) -> Value {
    json!({
        "lane": origin.lane,
        "position": origin.position,
        "bytes": bytes.len(),
        "reason": reason,
    })
}

/// Returns counts by the reason's name. Reasons that this version does not know are named by
/// number.
pub fn by_reason(losses: &Losses) -> BTreeMap<String, u64> {
    let name = |code| {
        LossReason::from_code(code).map_or_else(
            || format!("reason_{code}"),
            |reason| reason.name().to_owned(),
        )
    };
    losses
        .iter()
        .map(|(code, count)| (name(code), count))
        .collect()
}
