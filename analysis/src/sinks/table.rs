//! A table for people: one line a record, cut to the width of a screen.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baler_common::record::RecordRef;

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::sinks::slices::Slices;
use crate::stage::Stage;

/// Widths of the columns for time and type; the fields get the rest.
const TIME_WIDTH: usize = 19;
const TYPE_WIDTH: usize = 26;

/// Writes one line a record: timestamp, type without its package, fields as `name=value`, cut to a
/// width in characters.
#[derive(Debug)]
pub struct TextTable<W> {
    output: Slices<W>,
    what: Box<str>,
    width: usize,
    held: Held,
    written: Counts,
    has_header: Arc<AtomicBool>,
}

impl<W: Write + Send> TextTable<W> {
    /// Writes lines of at most `width` characters (at least 60) to `output`, called `what` in
    /// messages.
    pub fn new(output: W, what: impl Into<Box<str>>, width: usize) -> Self {
        Self {
            output: Slices::new(output),
            what: what.into(),
            width: width.max(60),
            held: Held::default(),
            written: Counts::default(),
            has_header: Arc::default(),
        }
    }

    /// Shares with other tables of one output whether it has its header: the first to write a line
    /// writes the header, unless this says that it is there.
    #[must_use]
    pub fn sharing_header(mut self, has_header: Arc<AtomicBool>) -> Self {
        self.has_header = has_header;
        self
    }

    /// Counts there what the output has taken.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.written = written;
        self
    }

    fn line(&mut self, time: &str, type_name: &str, fields: &str) -> io::Result<()> {
        let line = format!(
            "{time:<TIME_WIDTH$}  {:<TYPE_WIDTH$}  {fields}",
            shorten(type_name, TYPE_WIDTH)
        );
        let line = shorten(line.trim_end(), self.width);
        self.output.write_all(line.as_bytes())?;
        self.output.end_line()
    }

    fn write(&mut self, record: RecordRef<'_>) -> io::Result<()> {
        if !self.has_header.swap(true, Ordering::AcqRel) {
            self.line("TIMESTAMP", "TYPE", "FIELDS")?;
        }
        let time = record
            .timestamp()
            .map_or_else(|| "-".to_owned(), |time| time.to_string());
        let short = record.type_name().rsplit(['.', ':']).next().unwrap_or("");
        // Four bytes are the most that a character has.
        let mut fields = Cut::new(self.width.saturating_mul(4));
        for (name, value) in record.fields().values() {
            let space = if fields.text.is_empty() { "" } else { " " };
            let written = write!(fields, "{space}{name}=")
                .and_then(|()| Ok(serde_json::to_writer(&mut fields, &ValueJson(value))?));
            if fields.is_full() {
                break;
            }
            written?;
        }
        self.line(&time, short, &String::from_utf8_lossy(&fields.text))
    }
}

impl<W: Write + Send> Stage for TextTable<W> {
    fn name(&self) -> &'static str {
        "table"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            let written = self.write(record);
            written.map_err(|error| AnalysisError::output(self.what.clone(), error))?;
        }
        self.held.push(parcel);
        if self.output.is_due() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        let written = self.output.flush();
        written.map_err(|error| AnalysisError::output(self.what.clone(), error))?;
        self.held.release_into(&self.written);
        Ok(())
    }
}

/// The beginning of a text: refuses what is beyond its room, so that nobody makes more of it.
struct Cut {
    text: Vec<u8>,
    room: usize,
}

impl Cut {
    fn new(room: usize) -> Self {
        Self {
            text: Vec::new(),
            room,
        }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= self.room
    }
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.saturating_sub(self.text.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.text.extend_from_slice(taken);
        // Zero of some bytes is an error of `write_all`.
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
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
