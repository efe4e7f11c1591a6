//! Records of text logs: where one ends, and its fields.
//!
//! A record is `$`, the number of its class, the logging timestamp and the fields in order, all
//! separated by `;`.

use std::collections::HashMap;
use std::sync::Arc;

use baler_common::container::{ChunkString, KiekerChunk, KiekerStream};
use baler_common::record::{Catalog, FieldType, Schema};
use foldhash::fast::RandomState;
use memchr::{Memchr, memchr_iter, memchr2_iter};

use super::number::{floating, integer, shown};

/// The memory of texts that a parser keeps before it forgets them all.
const MAX_TEXT_MEMORY: usize = 16 << 20;

/// What follows the last bytes that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// More, perhaps at once.
    Open,
    /// Nothing came for a while: a whole line is not continued.
    Quiet,
    /// Nothing.
    Closed,
}

/// What begins at a place of a text log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A record with the lines that continue it.
    Record {
        /// The bytes without the last line end, and with it.
        bytes: usize,
        with_end: usize,
        lines: u64,
    },
    /// Perhaps a record, of which the end is missing.
    Part,
}

/// Finds the end of the record at the start of `text`: the line end before the next `$`, or, where
/// lines are not joined, the first line end. Lines end in LF, CRLF or CR.
pub(super) fn find(text: &[u8], joins: bool, end: End) -> Found {
    let mut lines = 0_u64;
    let mut next = 0;
    for at in memchr2_iter(b'\n', b'\r', text) {
        if at < next {
            // The second byte of CRLF.
            continue;
        }
        let is_return = text.get(at) == Some(&b'\r');
        next = at.saturating_add(1);
        if is_return && text.get(next) == Some(&b'\n') {
            next = next.saturating_add(1);
        }
        lines = lines.saturating_add(1);
        let is_end = match text.get(next) {
            Some(b'$') => true,
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

/// What is wrong with a record.
#[derive(Debug)]
pub(super) struct Problem {
    /// How many bytes into the record.
    pub(super) at: usize,
    pub(super) message: Box<str>,
}

impl Problem {
    pub(super) fn new(at: usize, message: impl Into<Box<str>>) -> Self {
        let message = message.into();
        Self { at, message }
    }
}

/// Why a record was not added to a chunk.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its logging timestamp, which is after the one given.
    Later(i64),
    Problem(Problem),
    /// No class has its number.
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
    /// The places of the classes by the numbers that the map gives them.
    places: HashMap<i32, usize, RandomState>,
    texts: Texts,
}

#[derive(Debug)]
struct TextClass {
    name: ChunkString,
    schema: Arc<Schema>,
    /// It is not one of Kieker's own types.
    is_own: bool,
}

/// The texts that came lately.
#[derive(Debug, Default)]
struct Texts {
    known: HashMap<Arc<str>, ChunkString, RandomState>,
    memory: usize,
}

impl TextParser {
    /// Adds a record to a chunk, unless its logging timestamp is after `until`. `map` has the names
    /// of the classes.
    pub(super) fn record(
        &mut self,
        record: &[u8],
        map: &KiekerStream,
        (chunk, until): (&mut KiekerChunk, i64),
    ) -> Result<(), Refused> {
        let text = std::str::from_utf8(record)
            .map_err(|error| Problem::new(error.valid_up_to(), "the record is not UTF-8"))?;
        let Some(rest) = text.strip_prefix('$') else {
            let message = "a record begins with $ and the number of its class; none begins here";
            return Err(Problem::new(0, message).into());
        };
        let result = self.fields(Fields::new(rest, Backslash::Plain), map, (chunk, until));
        match result {
            Err(Refused::Problem(problem)) if rest.contains("\\;") => {
                let fields = Fields::new(rest, Backslash::Hides);
                let hidden = self.fields(fields, map, (chunk, until));
                hidden.map_err(|_| Refused::Problem(problem))
            }
            result => result,
        }
    }

    fn fields(
        &mut self,
        mut fields: Fields<'_>,
        map: &KiekerStream,
        (chunk, until): (&mut KiekerChunk, i64),
    ) -> Result<(), Refused> {
        let number = fields.next().unwrap_or_default();
        let number = integer(number, "i32").map_err(|problem| fields.problem(problem))?;
        let class = self.class(number, map, &fields)?;
        let Self { classes, texts, .. } = self;
        let Some(class) = classes.get_mut(class) else {
            return Ok(());
        };
        let TextClass { name, schema, .. } = class;
        let timestamp = fields.take(schema)?;
        let timestamp: i64 = integer(fields.without_blank_lines(timestamp), "i64")
            .map_err(|problem| fields.problem(format!("field (timestamp): {problem}")))?;
        if timestamp > until {
            return Err(Refused::Later(timestamp));
        }
        chunk.record(|chunk| {
            chunk.put_string(name);
            chunk.put(&timestamp.to_be_bytes());
            for field in schema.fields() {
                let text = fields.take(schema)?;
                fields
                    .value(text, field.field_type(), chunk, texts)
                    .map_err(|problem| {
                        fields.problem(format!("field {}: {problem}", field.name()))
                    })?;
            }
            match fields.left() {
                0 => Ok(()),
                extra => {
                    let at = fields.next;
                    let message = format!(
                        "{extra} fields too many for {}; is there a semicolon in one of its \
                         strings?",
                        schema.name()
                    );
                    Err(Refused::from(Problem::new(at.saturating_add(1), message)))
                }
            }
        })?;
        if class.is_own {
            chunk.set_has_own_types();
        }
        Ok(())
    }

    /// The place of the class with this number.
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
                is_own: Catalog::shared_kieker().get(name) != Some(schema),
                schema: Arc::clone(schema),
            });
        }
        self.places.insert(number, place);
        Ok(place)
    }
}

impl Texts {
    fn put(&mut self, text: &str, chunk: &mut KiekerChunk) {
        if let Some(known) = self.known.get_mut(text) {
            chunk.put_string(known);
            return;
        }
        if self.memory > MAX_TEXT_MEMORY {
            *self = Self::default();
        }
        let mut string = ChunkString::new(text);
        chunk.put_string(&mut string);
        self.memory = self.memory.saturating_add(text.len()).saturating_add(96);
        self.known.insert(Arc::clone(string.text()), string);
    }
}

/// What a backslash before a semicolon means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// The semicolon is part of the string, as is the backslash: so Kieker's reader takes it.
    Hides,
    /// Itself: so Kieker's writer means it.
    Plain,
}

/// The parts of a record between semicolons, after the `$`.
struct Fields<'a> {
    text: &'a str,
    backslash: Backslash,
    ends: Memchr<'a>,
    /// Where the part that was taken last begins, and where the next one does.
    at: usize,
    next: usize,
    is_done: bool,
}

impl<'a> Fields<'a> {
    fn new(text: &'a str, backslash: Backslash) -> Self {
        Self {
            text,
            backslash,
            ends: memchr_iter(b';', text.as_bytes()),
            at: 0,
            next: 0,
            is_done: false,
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        if self.is_done {
            return None;
        }
        self.at = self.next;
        let mut end = self.ends.next();
        while self.backslash == Backslash::Hides && end.is_some_and(|end| self.is_hidden(end)) {
            end = self.ends.next();
        }
        self.is_done = end.is_none();
        let end = end.unwrap_or(self.text.len());
        self.next = end.saturating_add(1);
        self.text.get(self.at..end)
    }

    /// Whether the semicolon here belongs to a backslash. A backslash takes the character after it.
    fn is_hidden(&self, end: usize) -> bool {
        let part = self.text.get(self.at..end).unwrap_or_default();
        let backslashes = part.len() - part.trim_end_matches('\\').len();
        !backslashes.is_multiple_of(2)
    }

    fn take(&mut self, schema: &Schema) -> Result<&'a str, Problem> {
        self.next().ok_or_else(|| {
            let message = format!("the record ends; {} has more fields", schema.name());
            Problem::new(self.text.len().saturating_add(1), message)
        })
    }

    /// How many parts are left.
    fn left(&self) -> usize {
        match self.is_done {
            true => 0,
            false => self.ends.clone().count().saturating_add(1),
        }
    }

    /// A problem of the part that was taken last.
    fn problem(&self, message: impl Into<Box<str>>) -> Problem {
        // After the `$`.
        Problem::new(self.at.saturating_add(1), message)
    }

    /// The part that was taken last, without the empty lines after the record: they are part of it
    /// only where it ends in a string.
    fn without_blank_lines<'t>(&self, text: &'t str) -> &'t str {
        match self.is_done {
            true => text.trim_end_matches(['\n', '\r']),
            false => text,
        }
    }

    /// Copies the field that this part begins, and the items of a list after it.
    fn value(
        &mut self,
        text: &str,
        field_type: &FieldType,
        chunk: &mut KiekerChunk,
        texts: &mut Texts,
    ) -> Result<(), Box<str>> {
        if *field_type == FieldType::String {
            texts.put(text, chunk);
            return Ok(());
        }
        let whole = text;
        let text = self.without_blank_lines(text);
        match field_type {
            FieldType::Bool => match text {
                "true" => chunk.put(&[1]),
                "false" => chunk.put(&[0]),
                _ => return Err(format!("{:?} is neither true nor false", shown(text)).into()),
            },
            FieldType::I8 => chunk.put(&integer::<i8>(text, "i8")?.to_be_bytes()),
            FieldType::I16 => chunk.put(&integer::<i16>(text, "i16")?.to_be_bytes()),
            FieldType::I32 => chunk.put(&integer::<i32>(text, "i32")?.to_be_bytes()),
            FieldType::I64 => chunk.put(&integer::<i64>(text, "i64")?.to_be_bytes()),
            FieldType::F32 => chunk.put(&floating::<f32>(text, "f32")?.to_bits().to_be_bytes()),
            FieldType::F64 => chunk.put(&floating::<f64>(text, "f64")?.to_bits().to_be_bytes()),
            FieldType::Char => {
                let mut units = whole.encode_utf16();
                match (units.next(), units.next()) {
                    (Some(unit), None) => chunk.put(&unit.to_be_bytes()),
                    _ => return Err(format!("{:?} is not one character", shown(whole)).into()),
                }
            }
            FieldType::Enum(enum_type) => {
                let number: u32 = integer(text, "u32")?;
                if enum_type.variant(number).is_none() {
                    let name = enum_type.name();
                    let message = format!("{number} is not the number of a variant of {name}");
                    return Err(message.into());
                }
                chunk.put(&number.to_be_bytes());
            }
            FieldType::List(inner) => {
                let count: u32 = integer(text, "u32")?;
                let left = self.left();
                if usize::try_from(count).map_or(true, |count| count > left) {
                    let message =
                        format!("a list of {count} items is announced, {left} fields are left");
                    return Err(message.into());
                }
                chunk.put(&count.to_be_bytes());
                for _ in 0..count {
                    let item = self.next().unwrap_or_default();
                    self.value(item, inner, chunk, texts)?;
                }
            }
            _ => return Err(format!("a text log cannot hold the type {field_type}").into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &[u8], joins: bool, end: End) -> Vec<&str> {
        let mut rest = text;
        let mut records = Vec::new();
        while let Found::Record {
            bytes, with_end, ..
        } = find(rest, joins, end)
        {
            records.push(std::str::from_utf8(&rest[..bytes]).unwrap());
            rest = &rest[with_end..];
        }
        records
    }

    #[test]
    fn lines_without_a_dollar_continue_the_record_before_them() {
        let text = b"$1\nb\r\nc\rd$\r\n$2\r\n\n$3\n$4\r";
        let whole = ["$1\nb\r\nc\rd$", "$2\r\n", "$3"];
        assert_eq!(records(text, true, End::Open), whole);
        let all = ["$1\nb\r\nc\rd$", "$2\r\n", "$3", "$4"];
        assert_eq!(records(text, true, End::Quiet), all);
        assert_eq!(records(b"$1\n$2", true, End::Closed), ["$1"]);
        let lines = records(b"1=a\n2=b\r\n3=c\r4=d\n5", false, End::Open);
        assert_eq!(lines, ["1=a", "2=b", "3=c", "4=d"]);
    }

    #[test]
    fn a_line_end_is_one_wherever_the_bytes_end() {
        let text = b"$1\r\n$2\n";
        for end in 0..text.len() {
            let found = records(&text[..end], true, End::Open);
            let expected: &[&str] = if end > 4 { &["$1"] } else { &[] };
            assert_eq!(found, expected, "{end}");
        }
    }
}
