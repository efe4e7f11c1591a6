//! Records of text logs: their ends and their classes.
//!
//! A record is `$`, the number of its class, the logging timestamp and the fields in order, all
//! separated by `;`.

use std::collections::HashMap;
use std::sync::Arc;

use baler_common::number::to_u64;
use baler_common::record::Schema;
use foldhash::fast::RandomState;
use memchr::{memchr_iter, memchr2_iter};

use super::fields::{Backslash, Fields, Problem, RecordEnd, Texts};
use super::number::{integer, shown};
use crate::container::{ChunkString, KiekerChunk, KiekerStream};
use crate::types;

/// The problem of text that does not begin with `$`.
pub(super) const NO_RECORD: &str =
    "a record begins with $ and the number of its class; none begins here";

/// The continuation after the last bytes that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// More bytes, perhaps at once.
    Open,
    /// No bytes came for a while: a whole line is not continued.
    Quiet,
    /// No more bytes.
    Closed,
}

/// The beginning of a text log at one place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A record with the lines that continue it.
    Record {
        /// The number of bytes without the last line end, and with it.
        bytes: usize,
        with_end: usize,
        lines: u64,
    },
    /// Perhaps a record, but its end is missing.
    Part,
}

/// Finds the end of the record at the start of `text`: the line end before the next `$` or NUL or,
/// if lines are not joined, the first line end. Lines end in LF, CRLF or CR.
pub(super) fn find(text: &[u8], joins: bool, end: End) -> Found {
    let mut lines = 0_u64;
    let mut next = 0;
    for at in memchr2_iter(b'\n', b'\r', text) {
        if at < next {
            // The second byte of CRLF.
            continue;
        }
        let is_return = text.get(at) == Some(&b'\r');
        next = at + 1;
        if is_return && text.get(next) == Some(&b'\n') {
            next += 1;
        }
        lines += 1;
        let is_end = match text.get(next) {
            Some(b'$' | 0) => true,
            Some(_) => !joins,
            // A line feed or a further line may follow.
            None => end != End::Open || (!joins && !is_return),
        };
        if is_end {
            return Found::Record {
                bytes: at,
                with_end: next,
                lines,
            };
        }
    }
    Found::Part
}

/// Returns the bytes and lines of the record of this length, with its line end.
pub(super) fn with_line_end(text: &[u8], length: usize) -> (usize, u64) {
    let (record, after) = text.split_at(length);
    let lines = memchr_iter(b'\n', record).count();
    let lines = to_u64(lines);
    match find(after, false, End::Closed) {
        Found::Record { with_end, .. } => (length + with_end, lines + 1),
        Found::Part => (text.len(), lines),
    }
}

/// The reason why a record was not added to a chunk.
#[derive(Debug)]
pub(super) enum Refused {
    /// The logging timestamp of the record is later than the given one.
    Later(i64),
    Problem(Problem),
    /// No class has this number.
    UnknownClass(i32, Problem),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Copies records of a text log into chunks.
#[derive(Debug, Default)]
pub(super) struct TextParser {
    classes: Vec<TextClass>,
    /// The places of the classes, by their numbers in the map.
    places: HashMap<i32, usize, RandomState>,
    texts: Texts,
}

#[derive(Debug)]
struct TextClass {
    name: ChunkString,
    schema: Arc<Schema>,
    /// Whether it is not one of Kieker's own types.
    is_own: bool,
}

impl TextParser {
    /// Adds a record to a chunk, unless its logging timestamp is after `until`. `map` contains the
    /// names of the classes. Returns the number of bytes of the record.
    ///
    /// With [`RecordEnd::Line`], lines that do not belong to the record may follow it.
    pub(super) fn record(
        &mut self,
        text: &[u8],
        end: RecordEnd,
        map: &mut KiekerStream,
        (chunk, until): (&mut KiekerChunk, i64),
    ) -> Result<usize, Refused> {
        let text = match (std::str::from_utf8(text), end) {
            (Ok(text), _) => text,
            (Err(error), RecordEnd::Text) => {
                let at = error.valid_up_to();
                return Err(Problem::new(at, "the record is not UTF-8").into());
            }
            (Err(_), RecordEnd::Line) => {
                let mut chunks = text.utf8_chunks();
                chunks.next().map_or("", |chunk| chunk.valid())
            }
        };
        if !text.starts_with('$') {
            return Err(Problem::new(0, NO_RECORD).into());
        }
        let fields = Fields::new(text, Backslash::Plain, end);
        let result = self.fields(fields, map, (chunk, until));
        let left = match result {
            Err(Refused::Problem(problem)) if text.contains("\\;") => {
                let fields = Fields::new(text, Backslash::Hides, end);
                let hidden = self.fields(fields, map, (chunk, until));
                hidden.map_err(|_| Refused::Problem(problem))?
            }
            result => result?,
        };
        Ok(text.len() - left)
    }

    /// Adds the record of these fields. Returns the number of bytes after it.
    fn fields(
        &mut self,
        mut fields: Fields<'_>,
        map: &mut KiekerStream,
        (chunk, until): (&mut KiekerChunk, i64),
    ) -> Result<usize, Refused> {
        let number = match fields.plain_integer() {
            Some(number) => number,
            None => {
                let number = fields.next().ok_or_else(|| fields.problem(NO_RECORD))?;
                integer(number, "i32").map_err(|problem| fields.problem(problem))?
            }
        };
        let class = self.class(number, map, &fields)?;
        let Self { classes, texts, .. } = self;
        let Some(class) = classes.get_mut(class) else {
            return Err(fields.problem("the class is unknown").into());
        };
        let TextClass { name, schema, .. } = class;
        fields.is_last = schema.fields().is_empty();
        let timestamp: i64 = match fields.plain_integer() {
            Some(timestamp) => timestamp,
            None => {
                let timestamp = fields.take(schema)?;
                integer(fields.without_blank_lines(timestamp), "i64")
                    .map_err(|problem| fields.problem(format!("field (timestamp): {problem}")))?
            }
        };
        let nanos = map.time_unit().nanos(timestamp);
        if nanos > until {
            return Err(Refused::Later(nanos));
        }
        chunk.record(|chunk| {
            chunk.put_string(name);
            chunk.put(&timestamp.to_be_bytes());
            for (place, field) in (1_usize..).zip(schema.fields()) {
                fields.is_last = place == schema.fields().len();
                if fields.put_plain_integer(field.field_type(), chunk) {
                    continue;
                }
                let text = fields.take(schema)?;
                fields
                    .value(text, field.field_type(), chunk, texts)
                    .map_err(|problem| {
                        fields.problem(format!("field {}: {problem}", field.name()))
                    })?;
            }
            match fields.left() {
                0 if fields.is_cut() => Err(fields.problem("the record has no line end").into()),
                0 => Ok(()),
                extra => {
                    let message = format!(
                        "{extra} fields too many for {}; is there a semicolon in one of its \
                         strings?",
                        schema.name()
                    );
                    Err(Refused::from(Problem::new(fields.next, message)))
                }
            }
        })?;
        if class.is_own {
            chunk.set_has_own_types();
        }
        map.convert_times(chunk, &class.schema);
        Ok(fields.rest().len())
    }

    /// Returns the place of the class with this number.
    fn class(
        &mut self,
        number: i32,
        map: &KiekerStream,
        fields: &Fields<'_>,
    ) -> Result<usize, Refused> {
        if let Some(known) = self.places.get(&number) {
            return Ok(*known);
        }
        let Some(name) = map.string(number) else {
            let problem = fields.problem(format!("the map has no class {number}"));
            return Err(Refused::UnknownClass(number, problem));
        };
        let Some(schema) = map.catalog().get(name) else {
            let name = shown(name);
            return Err(fields
                .problem(format!("the record type {name} is unknown"))
                .into());
        };
        let known = self
            .classes
            .iter()
            .position(|it| Arc::ptr_eq(&it.schema, schema));
        let place = known.unwrap_or(self.classes.len());
        if known.is_none() {
            self.classes.push(TextClass {
                name: ChunkString::new(name),
                is_own: types::shared_catalog().get(name) != Some(schema),
                schema: Arc::clone(schema),
            });
        }
        self.places.insert(number, place);
        Ok(place)
    }
}

#[cfg(test)]
mod tests;
