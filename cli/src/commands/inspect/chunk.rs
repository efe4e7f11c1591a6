//! One chunk as JSON, whose names are part of the program's interface, and as text.

use std::collections::HashSet;

use baler_analysis::sinks::{RecordJson, TextTable};
use baler_analysis::{Parcel, Stage as _};
use baler_common::container::{ChunkHeader, DecodedChunk, Layout};
use baler_common::record::{RecordBatch, Table};
use baler_common::transport::{ChunkIdentity, ContainerKind, Delivery};
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::exit::Failure;
use crate::output::figures::by_reason;
use crate::output::{self, items};

/// The maximum number of columns that are listed for a chunk.
const MAX_COLUMNS: usize = 40;

/// The indentation of records.
const INDENT: &str = "  ";

/// Returns the figures of a chunk, and its first strings and records.
///
/// # Errors
///
/// A record cannot be shown as JSON.
pub(super) fn document(
    delivery: &Delivery,
    chunk: &DecodedChunk,
    layout: &Layout,
    args: &InspectArgs,
) -> Result<Value, Failure> {
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
        "first_strings": strings.iter().take(args.strings).collect::<Vec<_>>(),
        "first_records": first_records(batch, args.records)?,
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

fn first_records(batch: &RecordBatch, count: usize) -> Result<Vec<Value>, Failure> {
    // Goes through JSON text, so that numbers keep the digits that they have there.
    let value = |record| serde_json::from_str(&serde_json::to_string(&RecordJson(record))?);
    let records: Result<_, serde_json::Error> = batch.records().take(count).map(value).collect();
    records.map_err(|error| Failure::output("a record as JSON", &error.into()))
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

/// Returns the first records of a chunk as `receive` shows them, indented.
///
/// # Errors
///
/// A record cannot be shown.
pub(super) fn records(chunk: DecodedChunk, count: usize) -> Result<String, Failure> {
    let mut numbers = 0..count;
    let first = Parcel::new(chunk).select(|_| numbers.next().is_some());
    let mut bytes = Vec::new();
    let width = output::width().map(|width| width.saturating_sub(INDENT.len()));
    let mut table = TextTable::new(&mut bytes, "the records", width);
    table.accept(first).and_then(|()| table.finish())?;
    drop(table);
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| format!("{INDENT}{line}\n"));
    Ok(lines.collect())
}

/// Formats a chunk and its first records as text.
pub(super) fn text(chunk: &Value, records: &str) -> String {
    let mut figures = chunk.clone();
    // They are in the heading or below.
    for shown in [
        "lane",
        "position",
        "schemas",
        "first_strings",
        "first_records",
    ] {
        output::take(&mut figures, shown);
    }
    if let Some(layout) = figures.get_mut("layout") {
        output::take(layout, "columns");
    }
    let ends = ["first_unix_ns", "last_unix_ns"].map(|name| output::take(&mut figures, name));
    if let [Some(first), Some(last)] = ends.map(|it| it.as_i64()) {
        let time = format!("{} to {}", output::time(first), output::time(last));
        output::insert(&mut figures, "time", time);
    }
    let mut rows = output::figures_of(&figures);
    for lost in items(&chunk["header"], "lost_chunks") {
        let text = format!("{} chunks from sequence {}", lost[1], lost[0]);
        rows.push(("given up".to_owned(), text));
    }
    let mut text = format!(
        "chunk {}@{}\n",
        output::text_of(chunk, "lane"),
        chunk["position"]
    );
    text.push_str(&output::two_columns(&rows));
    for schema in items(chunk, "schemas") {
        let name = output::escape(output::text_of(schema, "name"));
        text.push_str(&format!("\n  {name} ({} records)\n", schema["records"]));
        for field in items(schema, "fields") {
            let name = output::escape(output::text_of(field, "name"));
            let kind = output::escape(output::text_of(field, "type"));
            text.push_str(&format!("    {name}: {kind}\n"));
        }
    }
    let mut columns: Vec<_> = items(&chunk["layout"], "columns").collect();
    if !columns.is_empty() {
        text.push('\n');
        columns.sort_by_key(|column| std::cmp::Reverse(column["bytes"].as_u64()));
        let has_types = items(chunk, "schemas").count() > 1;
        let rows = columns.into_iter().take(MAX_COLUMNS).map(|column| {
            let name = output::text_of(column, "field");
            let record = output::text_of(column, "record").rsplit(['.', ':']).next();
            vec![
                match record.filter(|_| has_types) {
                    Some(record) => format!("{record}.{name}"),
                    None => name.to_owned(),
                },
                output::text_of(column, "encoding").to_owned(),
                column["bytes"].to_string(),
            ]
        });
        text.push_str(&output::table(&["column", "encoding", "bytes"], &[2], rows));
    }
    let strings = items(chunk, "first_strings").filter_map(Value::as_str);
    let strings: Vec<_> = strings.map(|string| format!("{string:?}")).collect();
    if !strings.is_empty() {
        text.push_str("\n  strings\n");
    }
    for string in strings {
        text.push_str(&format!("    {}\n", output::cut(&string, 4)));
    }
    if !records.is_empty() {
        text.push('\n');
        text.push_str(records);
    }
    text
}
