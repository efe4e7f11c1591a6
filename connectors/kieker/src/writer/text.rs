//! Writes records as lines of a text log.

use std::collections::HashMap;
use std::fmt::{Debug, LowerExp, Write as _};

use baler_common::record::{NO_TIMESTAMP, RecordBatch, RecordRef, ValueRef};

use super::output::WriteError;

/// Writes lines as Kieker's `TextLogStreamHandler` does, and numbers the classes of a folder.
#[derive(Debug, Default)]
pub(super) struct TextEncoder {
    classes: HashMap<Box<str>, usize>,
}

impl TextEncoder {
    /// Appends the records of a batch to `out`, and calls `register` with the id and name of each
    /// new class. Returns the number of strings that Kieker's reader will not read as they are here.
    ///
    /// # Errors
    ///
    /// A value has no text that Kieker reads. Then `out` must not be used.
    pub(super) fn encode(
        &mut self,
        batch: &RecordBatch,
        missing_timestamp: i64,
        mut register: impl FnMut(usize, &str),
        out: &mut String,
    ) -> Result<u64, WriteError> {
        let tables = batch.tables().iter().filter(|table| !table.is_empty());
        for name in tables.map(|table| table.schema().name()) {
            if !self.classes.contains_key(name) {
                let id = self.classes.len();
                self.classes.insert(name.into(), id);
                register(id, name);
            }
        }
        let mut lines = batch
            .records()
            .map(|record| self.line(record, missing_timestamp, out));
        lines.try_fold(0_u64, |sum, altered| Ok(sum + altered?))
    }

    fn line(
        &self,
        record: RecordRef<'_>,
        missing_timestamp: i64,
        out: &mut String,
    ) -> Result<u64, WriteError> {
        let class = self.classes.get(record.type_name());
        let class = class.ok_or_else(|| WriteError::Refused("a type is in no table".into()))?;
        let timestamp = record.timestamp().filter(|it| *it != NO_TIMESTAMP);
        let timestamp = timestamp.unwrap_or(missing_timestamp);
        push(out, format_args!("${class};{timestamp}"));
        let mut altered = 0_u64;
        for (name, value) in record.fields().values() {
            let strings = push_value(value, out).map_err(|kind| {
                let class = record.type_name();
                let message =
                    format!("a text log cannot hold {kind} in {class}.{name}; use format=binary");
                WriteError::Refused(message.into())
            })?;
            altered += strings;
        }
        out.push('\n');
        Ok(altered)
    }
}

/// Appends a value after a semicolon. Returns the number of its strings that are altered, or the
/// kind of a value that has no text.
fn push_value(value: ValueRef<'_>, out: &mut String) -> Result<u64, &'static str> {
    out.push(';');
    match value {
        ValueRef::Bool(value) => push(out, format_args!("{value}")),
        ValueRef::Signed(value) => push(out, format_args!("{value}")),
        ValueRef::F32(value) => push_float(value, out),
        ValueRef::F64(value) => push_float(value, out),
        ValueRef::Char(';' | '\r' | '\n') => return Err("a separator as a char"),
        ValueRef::Char(value) => out.push(value),
        ValueRef::String(value) => {
            let before = out.len();
            push_string(value, out);
            // Every alteration adds a byte.
            return Ok(u64::from(out.len() - before != value.len()));
        }
        ValueRef::Enum(value) => push(out, format_args!("{}", value.number)),
        ValueRef::List(items) => {
            push(out, format_args!("{}", items.len()));
            let mut items = items.iter().map(|item| push_value(item, out));
            return items.try_fold(0_u64, |sum, altered| Ok(sum + altered?));
        }
        other => return Err(other.kind()),
    }
    Ok(0)
}

/// Appends a string so that it stays one field of one line.
///
/// Kieker's reader takes the character after a backslash as it is, and keeps the backslash. So a
/// backslash is doubled only if it would hide a separator.
fn push_string(value: &str, out: &mut String) {
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ';' => out.push_str("\\;"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            '\\' => {
                out.push('\\');
                // The next character belongs to this backslash, if there is one and it is no
                // separator.
                match chars.peek().copied() {
                    None | Some(';' | '\r' | '\n') => out.push('\\'),
                    Some(next) => {
                        out.push(next);
                        chars.next();
                    }
                }
            }
            other => out.push(other),
        }
    }
}

/// Appends a number as `Double.toString` and `Float.toString` write it.
fn push_float<T: Copy + Debug + Into<f64> + LowerExp>(value: T, out: &mut String) {
    let number: f64 = value.into();
    if !number.is_finite() {
        out.push_str(match number {
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ => "NaN",
        });
        return;
    }
    let magnitude = number.abs();
    // Java uses plain notation from 0.001 up to, but not including, 10,000,000. Rust's `{:?}` does
    // so in a larger range.
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        push(out, format_args!("{value:?}"));
        return;
    }
    let shortest = format!("{value:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let fraction = if digits.contains('.') { "" } else { ".0" };
    push(out, format_args!("{digits}{fraction}E{exponent}"));
}

/// Appends text. Writing to a string cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).ok();
}

#[cfg(test)]
mod tests;
