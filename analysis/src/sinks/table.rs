//! A table for people: one line a record.

use std::fmt::Write as _;
use std::io::Write;

use baler_common::record::{NO_TIMESTAMP, RecordFields, Role, ValueRef};

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::stage::Stage;
use crate::text;

/// Widths of the columns for time and type; the fields get the rest.
const TIME_WIDTH: usize = 27;
const TYPE_WIDTH: usize = 24;

/// How many bytes of lines are kept before they are written.
const WRITE_AT: usize = 64 << 10;

/// Writes one line a record: timestamp, type without its package, fields as `name=value`.
///
/// Points in time are RFC 3339 and spans have units, as the roles of the fields say; control
/// characters are escaped. Nothing of it is meant for programs: these read JSON.
#[derive(Debug)]
pub struct TextTable<W> {
    output: W,
    what: Box<str>,
    width: Option<usize>,
    lines: String,
    held: Held,
    started: bool,
}

impl<W: Write + Send> TextTable<W> {
    /// Writes to `output`, called `what` in messages, lines that are cut to `width` characters (at
    /// least 60), or whole ones where there is no width.
    pub fn new(output: W, what: impl Into<Box<str>>, width: Option<usize>) -> Self {
        Self {
            output,
            what: what.into(),
            width: width.map(|width| width.max(60)),
            lines: String::new(),
            held: Held::default(),
            started: false,
        }
    }

    fn line(&mut self, time: &str, type_name: &str, fields: &str) -> Result<(), AnalysisError> {
        let line = format!(
            "{time:<TIME_WIDTH$}  {:<TYPE_WIDTH$}  {fields}",
            shorten(type_name, Some(TYPE_WIDTH))
        );
        self.lines.push_str(&shorten(line.trim_end(), self.width));
        self.lines.push('\n');
        if self.lines.len() > WRITE_AT {
            self.write()?;
        }
        Ok(())
    }

    /// `name=value` of each field, with a space between, and not much more than fits.
    fn fields(&self, fields: RecordFields<'_>) -> Result<String, AnalysisError> {
        let mut shown = String::new();
        each_field(fields, |name, role, value| {
            if !shown.is_empty() {
                shown.push(' ');
            }
            shown.push_str(&text::escape(name));
            shown.push('=');
            push_value(&mut shown, role, value)?;
            // A character has at most four bytes.
            Ok(self.width.is_none_or(|width| shown.len() <= width * 4))
        })
        .map_err(|error| AnalysisError::output(self.what.clone(), error.into()))?;
        Ok(shown)
    }

    /// Hands the lines to the output.
    fn write(&mut self) -> Result<(), AnalysisError> {
        let written = self.output.write_all(self.lines.as_bytes());
        written.map_err(|error| AnalysisError::output(self.what.clone(), error))?;
        self.lines.clear();
        Ok(())
    }
}

impl<W: Write + Send> Stage for TextTable<W> {
    fn name(&self) -> &'static str {
        "table"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        if !self.started {
            self.started = true;
            self.line("TIMESTAMP", "TYPE", "FIELDS")?;
        }
        for (_, record) in parcel.records() {
            let time = record
                .timestamp()
                .map_or_else(|| "-".to_owned(), text::time);
            let short = record.type_name().rsplit(['.', ':']).next().unwrap_or("");
            let fields = self.fields(record.fields())?;
            self.line(&time, &text::escape(short), &fields)?;
        }
        self.held.push(parcel);
        if self.lines.len() > WRITE_AT / 2 {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.write()?;
        let flushed = self.output.flush();
        flushed.map_err(|error| AnalysisError::output(self.what.clone(), error))?;
        self.held.release_all();
        Ok(())
    }
}

/// Passes name, role and value of each field to `show`, until it returns false.
fn each_field(
    fields: RecordFields<'_>,
    mut show: impl FnMut(&str, Role, ValueRef<'_>) -> serde_json::Result<bool>,
) -> serde_json::Result<()> {
    for (position, field) in fields.schema().fields().iter().enumerate() {
        let Some(value) = fields.get(position) else {
            continue;
        };
        if !show(field.name(), field.role(), value)? {
            break;
        }
    }
    Ok(())
}

/// A value for people; `role` is that of the numbers in it.
fn push_value(shown: &mut String, role: Role, value: ValueRef<'_>) -> serde_json::Result<()> {
    let whole = match value {
        ValueRef::Signed(number) => Some(number),
        ValueRef::Unsigned(number) => i64::try_from(number).ok(),
        _ => None,
    };
    match (role, whole, value) {
        (Role::UnixNanos, Some(NO_TIMESTAMP), _) => shown.push('-'),
        (Role::UnixNanos, Some(unix_ns), _) => shown.push_str(&text::time(unix_ns)),
        #[expect(clippy::cast_precision_loss, reason = "three digits of it are shown")]
        (Role::Nanos, Some(ns), _) => shown.push_str(&text::span(ns as f64)),
        (_, _, ValueRef::List(list)) => {
            shown.push('[');
            for (position, item) in list.iter().enumerate() {
                if position > 0 {
                    shown.push(',');
                }
                push_value(shown, role, item)?;
            }
            shown.push(']');
        }
        (_, _, ValueRef::Record(fields)) => {
            let mut between = '{';
            each_field(fields, |name, role, value| {
                // Writing to a String cannot fail.
                write!(shown, "{between}{}=", text::escape(name)).ok();
                between = ' ';
                push_value(shown, role, value).map(|()| true)
            })?;
            shown.push_str(if between == '{' { "{}" } else { "}" });
        }
        (_, _, value) => {
            let json = serde_json::to_string(&ValueJson(value))?;
            // JSON escapes the control characters of C0 alone.
            shown.push_str(&text::escape(&json));
        }
    }
    Ok(())
}

/// At most `width` characters, the last one an ellipsis when something was cut.
fn shorten(text: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| text.chars().count() > *width) else {
        return text.to_owned();
    };
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
