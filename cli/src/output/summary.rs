//! A JSON document of a command -> the figures that people read, as names and values.

use baler_connector_file::quarantine::NotKept;
use serde_json::{Map, Value};

use super::numbers::{bytes, grouped, number};

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

/// Figures that a text leaves out, because others show the same.
const DERIVED: [&str; 1] = ["bytes_per_chunk"];

/// Figures with a longer name in a text: the figure, another one beside it, and the name.
const NAMES_BESIDE: [(&str, &str, &str); 11] = [
    ("acknowledged", "chunks", "chunks acknowledged"),
    ("asynchronous", "classes", "asynchronous calls"),
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

/// Numbers that name something and count nothing. They are shown even if they are 0.
const NUMBERS: [&str; 3] = ["first_sequence", "lane", "sequence"];

/// Counts that are shown even if they are 0: then the source had no records.
const COUNTS: [&str; 3] = ["emitted", "received", "records"];

/// Returns the figures of a JSON document as names and values. Figures that are 0, empty or absent
/// are left out, and figures that repeat another one.
pub(crate) fn figures_of(document: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let fields = shown_fields(document);
    for (key, value) in &fields {
        add_figure(&mut rows, key, &name_beside(key, &fields), value);
    }
    rows
}

/// Returns the name of a figure beside these others.
fn name_beside(key: &str, fields: &Map<String, Value>) -> String {
    let longer = NAMES_BESIDE
        .iter()
        .find(|(it, beside, _)| *it == key && fields.contains_key(*beside));
    longer.map_or_else(|| key.replace('_', " "), |(_, _, name)| (*name).to_owned())
}

/// Returns the fields of a document without those that repeat others. `quarantined` of a document
/// includes what was only counted (`not_kept`); a text shows that as `discarded` instead.
fn shown_fields(document: &Value) -> Map<String, Value> {
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
    if workers.is_some_and(|workers| workers.len() < 2) {
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

/// Adds the rows of a figure, and below them the rows of the figures within its parts.
fn add_figure(rows: &mut Vec<(String, String)>, key: &str, name: &str, value: &Value) {
    match value {
        Value::Object(_) => {
            let fields = shown_fields(value);
            let has_parts = |value: &Value| value.is_object() || value.is_array();
            let lines = fields.iter().filter(|(_, value)| !has_parts(value));
            let counted = |part: &str, count| Some(format!("{part}: {}", value_text("", count)?));
            let lines = lines.filter_map(|(part, value)| match key {
                _ if BY_REASON.contains(&key) => counted(&part.replace('_', " "), value),
                "source" if part == "from" => value_text("", value),
                // A lane has the name that its medium gave it.
                "lag_by_lane" => counted(part, value),
                _ => named_value(part, &fields, value),
            });
            add_rows(rows, name, lines);
            for (part, value) in fields.iter().filter(|(_, value)| has_parts(value)) {
                add_figure(rows, part, &part.replace('_', " "), value);
            }
        }
        Value::Array(items) => add_rows(rows, name, items.iter().filter_map(item_text)),
        value => {
            let unit = if key == "bytes" { "_bytes" } else { key };
            add_rows(rows, name, value_text(unit, value));
        }
    }
}

/// Adds a row for each line. Only the first row has the name.
fn add_rows(rows: &mut Vec<(String, String)>, name: &str, lines: impl IntoIterator<Item = String>) {
    for (index, line) in lines.into_iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        rows.push((name.to_owned(), line));
    }
}

/// Formats an item of a list on one line.
fn item_text(item: &Value) -> Option<String> {
    if !item.is_object() {
        return value_text("", item);
    }
    let fields = shown_fields(item);
    let parts = fields.iter();
    let parts = parts.filter_map(|(key, value)| named_value(key, &fields, value));
    let parts: Vec<_> = parts.collect();
    Some(match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join(", "),
    })
}

/// Formats one of several figures in a line: `3 found`.
fn named_value(key: &str, fields: &Map<String, Value>, value: &Value) -> Option<String> {
    let shown = value_text(key, value)?;
    let name = match key.strip_suffix("_bytes") {
        Some(content) => content.replace('_', " "),
        None => name_beside(key, fields),
    };
    Some(match value {
        Value::Number(_) if NUMBERS.contains(&key) => format!("{name} {shown}"),
        Value::Number(_) if shown == "1" => format!("{shown} {}", singular(&name)),
        Value::Number(_) => format!("{shown} {name}"),
        Value::Bool(_) => name,
        _ => format!("{name} {shown}"),
    })
}

/// Returns the name of a count of one: `chunk forwarded` for `chunks forwarded`. The noun is the
/// first word that is a plural.
fn singular(name: &str) -> String {
    let is_plural = |word: &&str| word.ends_with('s') && !word.ends_with("ss");
    let Some(plural) = name.split(' ').find(is_plural) else {
        return name.to_owned();
    };
    let noun = match (plural.strip_suffix("ies"), plural.strip_suffix("sses")) {
        (Some(stem), _) => format!("{stem}y"),
        (_, Some(stem)) => format!("{stem}ss"),
        _ => plural.trim_end_matches('s').to_owned(),
    };
    name.replacen(plural, &noun, 1)
}

/// Formats the value of a figure with its unit. Returns `None` if there is nothing to show.
fn value_text(key: &str, value: &Value) -> Option<String> {
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

#[cfg(test)]
mod tests;
