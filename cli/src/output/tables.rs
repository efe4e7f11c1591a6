//! Tables as wide as the terminal, and figures as people read them.

use std::time::Duration;

use baler_analysis::text::shortened;
use baler_files::quarantine::NotKept;
use serde_json::{Map, Value};

use super::{escape, width};

/// The narrowest column of a table that does not fit the terminal.
const MIN_WIDTH: usize = 8;

/// Formats a table with a header line. The columns named in `right` are aligned to the right. If it
/// does not fit the terminal, cells of the widest columns are broken at spaces, and longer words
/// are shortened.
pub(crate) fn table(
    header: &[&str],
    right: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    table_within(width(), header, right, rows)
}

fn table_within(
    width: Option<usize>,
    header: &[&str],
    right: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let escaped = |row: Vec<String>| -> Vec<String> {
        let cells = row.iter().map(|cell| escape(cell).into_owned());
        cells.collect()
    };
    let header = header.iter().map(|it| (*it).to_owned()).collect();
    let rows: Vec<_> = [header].into_iter().chain(rows).map(escaped).collect();
    let mut widths = vec![0; rows[0].len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    // Two spaces are before each column.
    let room = width.map_or(usize::MAX, |it| it.saturating_sub(2 * widths.len()));
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_WIDTH => *widest -= 1,
            _ => break,
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells.map(|(cell, width)| wrapped(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max();
        for index in 0..height.expect("a row has cells") {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let part = cell.get(index).map_or("", |it| it);
                let part = shortened(part, *width);
                match right.contains(&column) {
                    true => line.push_str(&format!("  {part:>width$}")),
                    false => line.push_str(&format!("  {part:<width$}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Formats names and values, one pair a line, indented. A long value continues below itself.
pub(crate) fn two_columns(rows: &[(impl AsRef<str>, String)]) -> String {
    two_columns_within(width(), rows)
}

fn two_columns_within(columns: Option<usize>, rows: &[(impl AsRef<str>, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.as_ref().len());
    let width = width.max().unwrap_or(0);
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(width + 4));
    let mut text = String::new();
    for (name, value) in rows {
        for (index, line) in wrapped(&escape(value), room).iter().enumerate() {
            let name = if index == 0 { name.as_ref() } else { "" };
            text.push_str(format!("  {name:<width$}  {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Figures that are left out of a text if they are equal to another figure.
const REPEATS: [(&str, &str); 8] = [
    ("acknowledged", "chunks"),
    ("chunks_made", "chunks"),
    ("classes_with_hosts", "classes"),
    ("complete_lanes", "lanes"),
    ("received_bytes", "forwarded_bytes"),
    ("records", "emitted"),
    ("records_received", "records"),
    ("stored_body_bytes", "body_bytes"),
];

/// Figures that a text leaves out: others say it.
const DERIVED: [&str; 1] = ["bytes_per_chunk"];

/// Figures whose names need a word more in a text, if they are beside another figure.
const COUNTED: [(&str, &str, &str); 10] = [
    ("acknowledged", "chunks", "chunks acknowledged"),
    ("conserved", "conserved", "accounts add up"),
    ("decodable", "decodable", "chunks that decode"),
    ("forwarded", "forwarded", "chunks forwarded"),
    ("given_back", "given_back", "chunks given back"),
    ("incomplete", "classes", "incomplete traces"),
    ("invalid", "classes", "invalid traces"),
    ("received", "forwarded", "chunks received"),
    ("received", "visits", "records received"),
    ("valid", "classes", "valid traces"),
];

/// Figures whose parts are counts by reason.
const BY_REASON: [&str; 9] = [
    "bad_lines",
    "closed_by",
    "counts",
    "discarded",
    "dropped",
    "incomplete_reasons",
    "invalid",
    "losses",
    "producer_losses",
];

/// Numbers that are names, not counts: 0 is one, too.
const NUMBERS: [&str; 3] = ["first_sequence", "lane", "sequence"];

/// Counts of records or chunks that are shown even if they are 0: nothing was there.
const COUNTS: [&str; 3] = ["emitted", "received", "records"];

/// Returns the figures of a JSON document as names and values. Figures that are 0, empty or absent
/// are left out, and figures that repeat another one.
pub(crate) fn figures(document: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let fields = news(document);
    for (key, value) in &fields {
        add_figure(&mut rows, key, name(key, &fields), value);
    }
    rows
}

/// Returns the name of a figure beside these others.
fn name(key: &str, fields: &Map<String, Value>) -> String {
    let mut names = COUNTED.iter();
    let name = names.find(|(it, beside, _)| *it == key && fields.contains_key(*beside));
    name.map_or_else(|| key.replace('_', " "), |it| it.2.to_owned())
}

/// Returns the fields of a document without those that repeat others. `quarantined` of a document
/// includes what was only counted (`not_kept`); a text shows that as `discarded` instead.
fn news(document: &Value) -> Map<String, Value> {
    let mut fields = document.as_object().expect("a document has fields").clone();
    for (repeated, other) in REPEATS {
        if fields
            .get(repeated)
            .is_some_and(|it| fields.get(other) == Some(it))
        {
            fields.shift_remove(repeated);
        }
    }
    for derived in DERIVED {
        fields.shift_remove(derived);
    }
    // A single worker has the figures of all.
    let workers = fields.get("workers").and_then(Value::as_array);
    if workers.is_some_and(|all| all.len() < 2) {
        fields.shift_remove("workers");
    }
    if let Some(Value::Object(reasons)) = fields.shift_remove("not_kept") {
        // What a medium only counts is not among the quarantined.
        let counted = reasons
            .iter()
            .filter(|(name, _)| *name != NotKept::Unreported.name());
        let counted: u64 = counted.filter_map(|(_, count)| count.as_u64()).sum();
        if let Some(quarantined) = fields.get("quarantined").and_then(Value::as_u64) {
            let kept = quarantined.saturating_sub(counted);
            fields.insert("quarantined".to_owned(), kept.into());
        }
        fields.insert("discarded".to_owned(), reasons.into());
    }
    fields
}

fn add_figure(rows: &mut Vec<(String, String)>, key: &str, mut name: String, value: &Value) {
    match value {
        Value::Object(_) => {
            let fields = news(value);
            for (part_key, value) in &fields {
                if value.is_object() || value.is_array() {
                    add_figure(rows, part_key, part_key.replace('_', " "), value);
                    continue;
                }
                let shown = match (key, &**part_key) {
                    (by_reason, _) if BY_REASON.contains(&by_reason) => figure("", value)
                        .map(|count| format!("{}: {count}", part_key.replace('_', " "))),
                    ("source", "from") => figure("", value),
                    _ => part(part_key, &fields, value),
                };
                if let Some(shown) = shown {
                    rows.push((std::mem::take(&mut name), shown));
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let shown = match item {
                    Value::Object(_) => {
                        let fields = news(item);
                        let parts = fields.iter();
                        let parts = parts.filter_map(|(key, value)| part(key, &fields, value));
                        let parts: Vec<_> = parts.collect();
                        Some(match parts.is_empty() {
                            true => "nothing".to_owned(),
                            false => parts.join(", "),
                        })
                    }
                    other => figure("", other),
                };
                rows.extend(shown.map(|shown| (std::mem::take(&mut name), shown)));
            }
        }
        value => {
            let unit = if key == "bytes" { "_bytes" } else { key };
            rows.extend(figure(unit, value).map(|shown| (name, shown)));
        }
    }
}

/// Formats one of several figures in a line: `3 found`.
fn part(key: &str, fields: &Map<String, Value>, value: &Value) -> Option<String> {
    let shown = figure(key, value)?;
    let name = match key.strip_suffix("_bytes") {
        Some(what) => what.replace('_', " "),
        None => name(key, fields),
    };
    Some(match value {
        Value::Number(_) if NUMBERS.contains(&key) => format!("{name} {shown}"),
        Value::Number(_) if shown == "1" => {
            format!("{shown} {}", name.strip_suffix('s').unwrap_or(&name))
        }
        Value::Number(_) => format!("{shown} {name}"),
        Value::Bool(_) => name,
        _ => format!("{name} {shown}"),
    })
}

/// Formats a figure with its unit, unless there is nothing to show.
fn figure(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(is_so) => is_so.then(|| "yes".to_owned()),
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(value) => match value.as_u64() {
            Some(0) if !COUNTS.contains(&key) && !NUMBERS.contains(&key) => None,
            Some(count) if key.ends_with("_bytes") => Some(bytes(count)),
            Some(count) => Some(number(count)),
            None => value.as_f64().and_then(|value| match key {
                "seconds" if value < 1.0 => Some(format!("{value:.3}")),
                "seconds" => Some(format!("{value:.2}")),
                // It would be shown as 0.0.
                _ if value.abs() < 0.05 => None,
                _ if value.abs() < 100.0 => Some(format!("{value:.1}")),
                _ => Some(grouped(&format!("{value:.0}"))),
            }),
        },
        Value::Array(_) | Value::Null | Value::Object(_) => None,
    }
}

/// Breaks a text at spaces into lines of at most `room` characters. A longer word stays whole,
/// because it is a path or a URI that the user may copy.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (index, word) in text.split(' ').enumerate() {
        let line = lines.last_mut().expect("there is a first line");
        let length = line.chars().count() + 1 + word.chars().count();
        if index == 0 {
            line.push_str(word);
        } else if length <= room || line.is_empty() {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Shortens a value to the terminal's width less `indent` columns.
pub(crate) fn cut(text: &str, indent: usize) -> std::borrow::Cow<'_, str> {
    let room = width().map_or(usize::MAX, |width| width.saturating_sub(indent));
    shortened(text, room)
}

/// Formats a whole number with its thousands separated: `6,541`.
pub(crate) fn number(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats a count with its noun: `1 chunk`, `6,541 chunks`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", number(count))
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a size: `812 B`, `23.4 KiB`, `1.2 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let mut size = value as f64;
    if value < 1_024 {
        return format!("{value} B");
    }
    for unit in ["KiB", "MiB", "GiB"] {
        size /= 1_024.0;
        if size < 1_024.0 {
            return format!("{size:.1} {unit}");
        }
    }
    format!("{:.1} TiB", size / 1_024.0)
}

/// Returns a time in seconds, rounded to milliseconds.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

/// Returns a rate a second, rounded to one decimal.
pub(crate) fn per_second(count: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate is no exact number")]
    if seconds > 0.0 {
        (count as f64 / seconds * 10.0).round() / 10.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
