//! A table for human readers: one line for each record, or more if it is wide.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baler_common::record::{AnyValue, NO_TIMESTAMP, RecordFields, RecordRef, Role, ValueRef};

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::Parcel;
use crate::sinks::json::ValueJson;
use crate::sinks::slices::Slices;
use crate::stage::Stage;
use crate::text;

/// Widths of the columns for time and type; the fields get the rest.
const TIME_WIDTH: usize = 27;
const TYPE_WIDTH: usize = 24;

/// The indentation of fields below their record.
const INDENT: usize = 4;

/// Writes one line for each record: timestamp, type without its package, fields as `name=value`.
///
/// Points in time are in RFC 3339 and spans have units, according to the roles of the fields.
/// Control characters are escaped. It is not meant for programs; they should read JSON.
#[derive(Debug)]
pub struct TextTable<W> {
    output: Slices<W>,
    width: Option<usize>,
    has_header: Arc<AtomicBool>,
}

impl<W: Write + Send> TextTable<W> {
    /// Writes to `output`; messages call it `what`. With a `width`, of at least 60 characters,
    /// fields that do not fit go on in further lines, and a field that is longer than such a line is
    /// shortened.
    pub fn new(output: W, what: impl Into<Box<str>>, width: Option<usize>) -> Self {
        Self {
            output: Slices::new(output, what.into()),
            width: width.map(|width| width.max(60)),
            has_header: Arc::default(),
        }
    }

    /// Shares the state of the header with other tables of one output. The first table that writes
    /// a line writes the header, unless `has_header` is already set.
    #[must_use]
    pub fn sharing_header(mut self, has_header: Arc<AtomicBool>) -> Self {
        self.has_header = has_header;
        self
    }

    /// Counts the records that the output has taken in `written`.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.output.written = written;
        self
    }

    /// Writes a line without its end: columns of equal width in all lines, then the fields.
    fn line(&mut self, time: &str, type_name: &str, fields: &str) -> io::Result<()> {
        let type_name = text::shortened(type_name, TYPE_WIDTH);
        let line = format!("{time:<TIME_WIDTH$}  {type_name:<TYPE_WIDTH$}  {fields}");
        match self.width {
            Some(_) => self.output.write_all(line.trim_end().as_bytes()),
            None => self.output.write_all(line.as_bytes()),
        }
    }

    /// Writes fields in lines of this width, each after the end of another one.
    fn write_below(&mut self, fields: &[String], width: usize) -> io::Result<()> {
        // The first field begins a line.
        let mut used = width;
        for field in fields {
            let field = text::shortened(field, width);
            let length = field.chars().count();
            if used + 1 + length > width {
                write!(self.output, "\n{:INDENT$}{field}", "")?;
                used = length;
            } else {
                write!(self.output, " {field}")?;
                used += 1 + length;
            }
        }
        Ok(())
    }

    fn write(&mut self, record: RecordRef<'_>) -> io::Result<()> {
        if !self.has_header.swap(true, Ordering::AcqRel) {
            self.line("TIMESTAMP", "TYPE", "FIELDS")?;
            self.output.end_line()?;
        }
        let time = record
            .timestamp()
            .map_or_else(|| "-".to_owned(), text::time);
        let short = record.type_name().rsplit(['.', ':']).next().unwrap_or("");
        let short = text::escape(short);
        if let Some(width) = self.width {
            let fields = short_fields(record.fields())?;
            let length: usize = fields.iter().map(|it| it.chars().count() + 1).sum();
            if TIME_WIDTH + TYPE_WIDTH + 3 + length <= width {
                self.line(&time, &short, &fields.join(" "))?;
            } else {
                self.line(&time, &short, "")?;
                self.write_below(&fields, width - INDENT)?;
            }
        } else {
            self.line(&time, &short, "")?;
            write_fields(&mut self.output, record.fields())?;
        }
        self.output.end_line()
    }
}

impl<W: Write + Send> Stage for TextTable<W> {
    fn name(&self) -> &'static str {
        "table"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            let written = self.write(record);
            written.map_err(|error| self.output.error(error))?;
        }
        self.output.hold(parcel)
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.output.release()
    }
}

/// Writes `name=value` for each field, separated by spaces.
fn write_fields(out: &mut dyn Write, fields: RecordFields<'_>) -> io::Result<()> {
    let mut before = "";
    for (position, field) in fields.schema().fields().iter().enumerate() {
        if let Some(value) = fields.get(position) {
            write!(out, "{before}{}=", text::escape(field.name()))?;
            write_value(out, field.role(), value)?;
            before = " ";
        }
    }
    Ok(())
}

/// Returns `name=value` for each field; of a very long value only the beginning.
fn short_fields(fields: RecordFields<'_>) -> io::Result<Vec<String>> {
    let mut texts = Vec::new();
    for (position, field) in fields.schema().fields().iter().enumerate() {
        if let Some(value) = fields.get(position) {
            let mut cut = Cut(Vec::new());
            let written = write_value(&mut cut, field.role(), value);
            if !cut.is_full() {
                written?;
            }
            let value = String::from_utf8_lossy(&cut.0);
            let end = if cut.is_full() { "…" } else { "" };
            texts.push(format!("{}={value}{end}", text::escape(field.name())));
        }
    }
    Ok(texts)
}

/// Writes a value for human readers; `role` applies to the numbers in it.
fn write_value(out: &mut dyn Write, role: Role, value: ValueRef<'_>) -> io::Result<()> {
    let whole = match value {
        ValueRef::Signed(number) => Some(number),
        ValueRef::Unsigned(number) => i64::try_from(number).ok(),
        _ => None,
    };
    match (role, whole, value) {
        (Role::UnixNanos, Some(NO_TIMESTAMP), _) => write!(out, "-"),
        (Role::UnixNanos, Some(unix_ns), _) => write!(out, "{}", text::time(unix_ns)),
        #[expect(clippy::cast_precision_loss, reason = "three digits of it are shown")]
        (Role::Nanos, Some(ns), _) => write!(out, "{}", text::span(ns as f64)),
        (_, _, ValueRef::List(list)) => {
            write!(out, "[")?;
            for (position, item) in list.iter().enumerate() {
                write!(out, "{}", if position > 0 { "," } else { "" })?;
                write_value(out, role, item)?;
            }
            write!(out, "]")
        }
        (_, _, ValueRef::Record(fields)) if AnyValue::plain(fields).is_none() => {
            write!(out, "{{")?;
            write_fields(out, fields)?;
            write!(out, "}}")
        }
        (_, _, value) => {
            let json = serde_json::to_string(&ValueJson(value))?;
            // JSON escapes only the control characters of C0.
            write!(out, "{}", text::escape(&json))
        }
    }
}

/// The beginning of a value. It refuses more text when it is full, so that no more is produced.
struct Cut(Vec<u8>);

impl Cut {
    /// Far more than is shown.
    const ROOM: usize = 4_096;

    fn is_full(&self) -> bool {
        self.0.len() >= Self::ROOM
    }
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(Self::ROOM - self.0.len());
        self.0.extend_from_slice(&bytes[..taken]);
        // Taking no bytes is an error of `write_all`.
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
