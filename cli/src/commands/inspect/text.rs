//! Chunks for people.

use super::Document;
use super::chunk::ChunkFigures;
use crate::output;

/// How many columns of a chunk are listed.
const MAX_COLUMNS: usize = 40;

/// One block a chunk, then what is broken.
pub(super) fn text(document: &Document) -> String {
    let mut text = format!("{}\n", document.from);
    for chunk in &document.chunks {
        text.push('\n');
        text.push_str(&block(chunk));
    }
    if !document.broken.is_empty() {
        text.push_str("\nbroken\n");
        let rows = document.broken.iter().map(|it| {
            vec![
                format!("{}@{}", it.lane, it.position),
                it.bytes.to_string(),
                it.reason.clone(),
            ]
        });
        text.push_str(&output::table(&["where", "bytes", "reason"], &[1], rows));
    }
    let (chunks, broken) = (document.chunks.len(), document.broken.len());
    text.push_str(&format!("\n{chunks} chunks, {broken} broken"));
    if document.more {
        text.push_str("; there may be more: see --count");
    }
    text.push('\n');
    text
}

fn block(chunk: &ChunkFigures) -> String {
    let mut text = format!(
        "chunk {}@{}: {} {}, compression {}\n",
        chunk.lane, chunk.position, chunk.container, chunk.format, chunk.compression
    );
    text.push_str(&output::two_columns(&header_rows(chunk)));
    for schema in &chunk.schemas {
        text.push_str(&format!(
            "\n  {} ({} records)\n",
            output::escape(&schema.name),
            schema.records
        ));
        for field in &schema.fields {
            let name = output::escape(&field.name);
            let kind = output::escape(&field.field_type);
            text.push_str(&format!("    {name}: {kind}\n"));
        }
    }
    if !chunk.layout.columns.is_empty() {
        text.push('\n');
        let mut columns: Vec<_> = chunk.layout.columns.iter().collect();
        columns.sort_by_key(|column| std::cmp::Reverse(column.bytes));
        let rows = columns.into_iter().take(MAX_COLUMNS).map(|column| {
            let record = column.record.rsplit(['.', ':']).next().unwrap_or("");
            vec![
                format!("{record}.{}", column.field),
                column.encoding.clone(),
                column.bytes.to_string(),
            ]
        });
        text.push_str(&output::table(&["column", "encoding", "bytes"], &[2], rows));
    }
    if !chunk.first_strings.is_empty() {
        text.push_str("\n  strings\n");
        for string in &chunk.first_strings {
            text.push_str(&format!("    {}\n", output::cut(&format!("{string:?}"), 4)));
        }
        let rest = chunk.strings.saturating_sub(chunk.first_strings.len());
        if rest > 0 {
            text.push_str(&format!("    … and {rest} more\n"));
        }
    }
    if !chunk.first_records.is_empty() {
        text.push_str("\n  records\n");
        for record in &chunk.first_records {
            text.push_str(&format!("    {}\n", output::cut(record.get(), 4)));
        }
    }
    text
}

fn header_rows(chunk: &ChunkFigures) -> Vec<(&'static str, String)> {
    let layout = &chunk.layout;
    let mut rows = vec![
        ("records", chunk.records.to_string()),
        ("strings", chunk.strings.to_string()),
        (
            "bytes",
            format!(
                "{}: header {}, body {} ({} decompressed)",
                chunk.bytes, layout.header_bytes, layout.stored_body_bytes, layout.body_bytes
            ),
        ),
        (
            "body",
            format!(
                "schemas {}, strings {}, order {}, columns {}",
                layout.schema_bytes,
                layout.string_bytes,
                layout.order_bytes,
                layout.columns.iter().map(|it| it.bytes).sum::<usize>()
            ),
        ),
    ];
    if let Some(identity) = &chunk.identity {
        rows.push(("producer", identity.producer.clone()));
        rows.push(("epoch", identity.epoch.clone()));
        let place = format!("{}, sequence {}", identity.lane, identity.sequence);
        rows.push(("lane", place));
    }
    if let (Some(first), Some(last)) = (chunk.first_unix_ns, chunk.last_unix_ns) {
        rows.push((
            "time",
            format!("{} to {}", output::time(first), output::time(last)),
        ));
    }
    if let Some(header) = &chunk.header {
        if header.last_of_epoch {
            rows.push(("last", "of its epoch".to_owned()));
        }
        if header.clock_jumped {
            rows.push(("clock", "jumped before this chunk".to_owned()));
        }
        for (reason, count) in &header.losses {
            rows.push(("lost so far", format!("{count} {reason}")));
        }
        for (first, count) in &header.lost_chunks {
            rows.push(("given up", format!("{count} chunks from sequence {first}")));
        }
    }
    rows
}
