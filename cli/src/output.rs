//! The output of the program: results on standard output, everything else on standard error.

pub(crate) mod figures;
mod numbers;
mod progress;
mod stderr;
mod summary;
mod tables;
mod terminal;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use baler_analysis::text::{escape, span, time};
pub(crate) use numbers::{bytes, counted, number, per_second, seconds};
pub(crate) use progress::Progress;
use stderr::Stderr;
pub(crate) use stderr::{start_logging, stop_waiting_when};
pub(crate) use summary::figures_of;
pub(crate) use tables::{cut, table, two_columns};
pub(crate) use terminal::{AlternateScreen, RecordOutput, width};

use crate::args::DocumentFormat;
use crate::exit::Failure;

/// Prints a result on standard output: as one JSON document, or as text for people.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) fn result(
    format: DocumentFormat,
    document: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match format {
        DocumentFormat::Json => {
            progress::end();
            // A document can be much longer than its figures are in memory.
            let mut output = BufWriter::new(terminal::Escaped(io::stdout().lock()));
            let written = serde_json::to_writer_pretty(&mut output, document);
            let written = written.map_err(io::Error::from);
            written
                .and_then(|()| output.write_all(b"\n"))
                .and_then(|()| output.flush())
                .map_err(|error| Failure::output("standard output", &error))
        }
        DocumentFormat::Table => print(&text()),
    }
}

/// Prints a document on standard output: as JSON, or its figures line by line.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) fn document(format: DocumentFormat, document: &Value) -> Result<(), Failure> {
    result(format, document, || two_columns(&figures_of(document)))
}

/// Returns the items of a list in a document, or none if it has no such list.
pub(crate) fn items<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    document[name].as_array().into_iter().flatten()
}

/// Returns a text of a document that this program made.
pub(crate) fn text_of<'a>(document: &'a Value, name: &str) -> &'a str {
    document[name].as_str().expect("the document has this text")
}

/// Returns a count of a document that this program made.
pub(crate) fn count_of(document: &Value, name: &str) -> u64 {
    document[name]
        .as_u64()
        .expect("the document has this count")
}

/// Returns a number of a document that this program made.
pub(crate) fn number_of(document: &Value, name: &str) -> f64 {
    document[name]
        .as_f64()
        .expect("the document has this number")
}

/// Takes a field out of a document; `Null` if it is not there.
pub(crate) fn take(document: &mut Value, name: &str) -> Value {
    let fields = document.as_object_mut();
    fields
        .and_then(|it| it.shift_remove(name))
        .unwrap_or(Value::Null)
}

/// Adds a field to a document.
pub(crate) fn insert(document: &mut Value, name: &str, value: impl Into<Value>) {
    fields_of(document).insert(name.to_owned(), value.into());
}

/// Adds the fields of one document to another one.
pub(crate) fn extend(document: &mut Value, more: &Value) {
    let more = more.as_object().expect("a document has fields");
    fields_of(document).extend(more.clone());
}

fn fields_of(document: &mut Value) -> &mut Map<String, Value> {
    document.as_object_mut().expect("a document has fields")
}

/// Prints text on standard output. Ends of lines and tabs are the only control characters that stay.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    progress::end();
    write(&terminal::lines(text))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output("standard output", &error))
}

/// Writes one JSON document to a file, whole or not at all.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn json_file(path: &Path, document: &impl Serialize) -> Result<(), Failure> {
    whole_file(path, &(pretty(document)? + "\n"))
}

/// Writes a file whole or not at all; see [`replace_file`](baler_connector_file::replace_file).
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn whole_file(path: &Path, text: &str) -> Result<(), Failure> {
    baler_connector_file::replace_file(path, text.as_bytes())
        .map_err(|error| Failure::output(path.display(), &error))
}

/// Prints the address of a medium that listens on standard error, unless `quiet`, and writes it to
/// a file.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn listening(
    address: Option<SocketAddr>,
    port_file: Option<&Path>,
    quiet: bool,
) -> Result<(), Failure> {
    let Some(address) = address else {
        return Ok(());
    };
    if !quiet {
        say(format_args!("listening on {address}"));
    }
    port_file.map_or(Ok(()), |path| whole_file(path, &format!("{address}\n")))
}

/// Prints one or more lines on standard error, above the line of progress.
///
/// A failure to write does not end the program. After the deadline, the call does not wait.
pub(crate) fn say(line: impl Display) {
    // One write of up to 4,096 bytes: lines of several threads do not mix.
    let line = format!("{line}\n");
    let line = terminal::lines(&line);
    progress::suspended(|| Stderr.write_all(line.as_bytes()).ok());
}

/// Returns counts with their nouns: `1 file, 2 errors`.
pub(crate) fn counts(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().map(|(count, noun)| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn pretty(document: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map_err(|error| Failure::output("JSON", &io::Error::from(error)))
}
