//! A table for people: one line a record, cut to the width of a screen.

use std::fmt::Write as _;
use std::io::Write;

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::stage::Stage;

/// Widths of the columns for time and type; the fields get the rest.
const TIME_WIDTH: usize = 19;
const TYPE_WIDTH: usize = 26;

/// Writes one line a record: timestamp, type without its package, fields as `name=value`, cut to a
/// width in characters.
#[derive(Debug)]
pub struct TextTable<W> {
    output: W,
    what: Box<str>,
    width: usize,
    lines: String,
    held: Held,
    started: bool,
}

impl<W: Write + Send> TextTable<W> {
    /// Writes lines of at most `width` characters (at least 60) to `output`, called `what` in
    /// messages.
    pub fn new(output: W, what: impl Into<Box<str>>, width: usize) -> Self {
        Self {
            output,
            what: what.into(),
            width: width.max(60),
            lines: String::new(),
            held: Held::default(),
            started: false,
        }
    }

    fn line(&mut self, time: &str, type_name: &str, fields: &str) {
        let mut line = format!(
            "{time:<TIME_WIDTH$}  {:<TYPE_WIDTH$}  {fields}",
            shorten(type_name, TYPE_WIDTH)
        );
        line = shorten(line.trim_end(), self.width);
        self.lines.push_str(&line);
        self.lines.push('\n');
    }
}

impl<W: Write + Send> Stage for TextTable<W> {
    fn name(&self) -> &'static str {
        "table"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        if !self.started {
            self.started = true;
            self.line("TIMESTAMP", "TYPE", "FIELDS");
        }
        for (_, record) in parcel.records() {
            let time = record
                .timestamp()
                .map_or_else(|| "-".to_owned(), |time| time.to_string());
            let short = record.type_name().rsplit(['.', ':']).next().unwrap_or("");
            let mut fields = String::new();
            for (name, value) in record.fields().values() {
                let value = serde_json::to_string(&ValueJson(value))
                    .map_err(|error| AnalysisError::output(self.what.clone(), error.into()))?;
                let space = if fields.is_empty() { "" } else { " " };
                // Writing to a String cannot fail.
                write!(fields, "{space}{name}={value}").ok();
                if fields.len() > self.width.saturating_mul(4) {
                    break;
                }
            }
            self.line(&time, short, &fields);
        }
        self.held.push(parcel);
        if self.lines.len() > 64 << 10 {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        let written = self
            .output
            .write_all(self.lines.as_bytes())
            .and_then(|()| self.output.flush());
        written.map_err(|error| AnalysisError::output(self.what.clone(), error))?;
        self.lines.clear();
        self.held.release_all();
        Ok(())
    }
}

/// At most `width` characters, the last one an ellipsis when something was cut.
fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
