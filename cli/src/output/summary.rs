//! A JSON document of a command -> the figures that people read, as names and values.

use baler_files::quarantine::NotKept;
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

#[cfg(test)]
mod tests;
