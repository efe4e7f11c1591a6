//! The dependency on `baler` in a Cargo.toml.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::source::lines_before;

/// The first line of the inserted table.
const HEADER: &str = "[dependencies.baler] # baler instrument";

/// Returns the text to append, if the package does not depend on `baler` yet. `value` is the line of
/// the table: `version = "0.1"`.
///
/// # Errors
///
/// The text is not TOML, or its dependencies are in a form that cannot be extended at the end.
pub(crate) fn addition(path: &Path, text: &str, value: &str) -> Result<Option<String>, Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        let position = error.span().map_or(0, |span| span.start);
        Problem::at(path, 1 + lines_before(text, position), error.message())
    })?;
    let dependencies = table.get_ref().get("dependencies").map(|it| it.get_ref());
    if let Some(DeValue::Table(dependencies)) = dependencies
        && dependencies.contains_key("baler")
    {
        return Ok(None);
    }
    let line_end = match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    };
    let mut addition = format!("{line_end}{HEADER}{line_end}{value}");
    if text.ends_with('\n') {
        addition += line_end;
    }
    match DeTable::parse(&format!("{text}{addition}")) {
        Ok(_) => Ok(Some(addition)),
        Err(_) => Err(Problem::at(
            path,
            1,
            format!(
                "the table of dependencies cannot be extended: add `baler = {{ {value} }}` to it"
            ),
        )),
    }
}

/// Returns the bytes that were inserted.
pub(crate) fn inserted(text: &str) -> Option<Range<usize>> {
    let header = text.find(&format!("\n{HEADER}"))?;
    let start = match text[..header].ends_with('\r') {
        true => header - 1,
        false => header,
    };
    // The header and one line.
    let mut lines = text[header + 1..].split_inclusive('\n');
    let length: usize = lines.by_ref().take(2).map(str::len).sum();
    Some(start..header + 1 + length)
}
