//! `baler irl compat`: which changes of record types break readers.

use std::path::Path;

use baler_irl::{Change, Effect, Source, compare, line_and_column, read_files};
use serde_json::{Value, json};

use super::{is_valid, read_all, sources, unreadable};
use crate::args::{DocumentFormat, IrlReading};
use crate::exit::{Code, Failure};
use crate::output;

/// The effects with their names in JSON and their titles in text.
const EFFECTS: [(Effect, &str, &str); 4] = [
    (
        Effect::Both,
        "both",
        "breaks new readers of old records, and old readers of new records",
    ),
    (
        Effect::NewReaders,
        "new-readers",
        "breaks new readers of old records",
    ),
    (
        Effect::OldReaders,
        "old-readers",
        "breaks old readers of new records",
    ),
    (Effect::Safe, "nothing", "safe"),
];

/// Compares two versions, unless one has an error.
pub(super) fn run(
    old: &Path,
    new: &Path,
    reading: IrlReading,
    format: DocumentFormat,
    quiet: bool,
) -> Result<Code, Failure> {
    let old_files = read_files(&[old]).map_err(unreadable)?;
    let new_files = read_files(&[new]).map_err(unreadable)?;
    let (old, new) = (sources(&old_files), sources(&new_files));
    let (before, after) = (read_all(reading, &old), read_all(reading, &new));
    // Both are shown, whatever the first one has.
    if !is_valid(&before, &old, quiet) | !is_valid(&after, &new, quiet) {
        return Ok(Code::Data);
    }
    let changes = compare(&before.records, &after.records);
    let safe = changes
        .iter()
        .filter(|it| it.effect == Effect::Safe)
        .count();
    let breaking = changes.len() - safe;
    let sources = |change: &Change| match change.is_in_old {
        true => old[change.file],
        false => new[change.file],
    };
    // The names are part of the program's interface.
    let document = json!({
        "breaking": breaking,
        "safe": safe,
        "changes": changes.iter().map(|it| row(it, sources(it))).collect::<Vec<_>>(),
    });
    output::result(format, &document, || {
        let mut text = String::new();
        for (effect, _, title) in EFFECTS {
            let mut of_effect = changes.iter().filter(|it| it.effect == effect).peekable();
            if of_effect.peek().is_some() {
                text += &format!("{title}:\n");
            }
            for change in of_effect {
                let Change {
                    name, what, why, ..
                } = change;
                let place = place(change, sources(change));
                text += &format!("  {name}: {what}; {why}\n    {place}\n");
            }
        }
        text + &format!("{breaking} breaking, {safe} safe\n")
    })?;
    Ok(Code::data_if(breaking > 0))
}

fn row(change: &Change, source: Source<'_>) -> Value {
    let (line, column) = line_and_column(source.text, change.span.start);
    let effect = EFFECTS.iter().find(|it| it.0 == change.effect);
    json!({
        "type": &*change.name,
        "breaks": effect.expect("the table has all effects").1,
        "change": change.what,
        "reason": change.why,
        "file": source.name,
        "line": line,
        "column": column,
    })
}

fn place(change: &Change, source: Source<'_>) -> String {
    let (line, column) = line_and_column(source.text, change.span.start);
    format!("{}:{line}:{column}", source.name)
}
