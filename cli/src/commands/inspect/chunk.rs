//! One chunk as text.

use baler_analysis::sinks::TextTable;
use baler_analysis::{Parcel, Stage as _};
use baler_common::container::DecodedChunk;
use serde_json::Value;

use crate::exit::Failure;
use crate::output::{self, items};

/// The maximum number of columns that are listed for a chunk.
const MAX_COLUMNS: usize = 40;

/// The indentation of records.
const INDENT: &str = "  ";

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
