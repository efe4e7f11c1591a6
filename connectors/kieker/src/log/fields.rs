//! The fields of a record of a text log.

use std::collections::HashMap;
use std::sync::Arc;

use baler_common::record::{FieldType, Schema};
use foldhash::fast::RandomState;
use memchr::{memchr, memchr_iter, memchr2};

use super::number::{floating, integer, plain_integer, shown};
use crate::container::{ChunkString, KiekerChunk};

/// The memory of texts that a parser keeps before it forgets all of them.
const MAX_TEXT_MEMORY: usize = 16 << 20;

/// The latest texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    known: HashMap<Arc<str>, ChunkString, RandomState>,
    memory: usize,
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
        self.memory += text.len() + 96;
        self.known.insert(Arc::clone(string.text()), string);
    }
}

/// The meaning of a backslash before a semicolon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    /// As in Kieker's reader: the semicolon and the backslash are part of the string.
    Hides,
    /// As in Kieker's writer: the backslash means itself.
    Plain,
}

/// The parts of a record, after its `$` and between semicolons.
pub(super) struct Fields<'a> {
    text: &'a str,
    backslash: Backslash,
    end: RecordEnd,
    /// Whether the next part is the last one.
    pub(super) is_last: bool,
    /// The start of the last part that was taken, and of the next part.
    at: usize,
    pub(super) next: usize,
    is_done: bool,
}

/// The end of a record's last part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordEnd {
    /// The end of the text: all lines belong to the record.
    Text,
    /// The first line end in this part. The lines after it do not belong to the record.
    Line,
}

/// The problem of a record.
#[derive(Debug)]
pub(super) struct Problem {
    /// The number of bytes before it in the record.
    pub(super) at: usize,
    pub(super) message: Box<str>,
}

impl Problem {
    pub(super) fn new(at: usize, message: impl Into<Box<str>>) -> Self {
        let message = message.into();
        Self { at, message }
    }
}

impl<'a> Fields<'a> {
    /// Begins at the `$` of the text.
    pub(super) fn new(text: &'a str, backslash: Backslash, end: RecordEnd) -> Self {
        Self {
            text,
            backslash,
            end,
            is_last: false,
            at: 1,
            next: 1,
            is_done: false,
        }
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        if self.is_done {
            return None;
        }
        self.at = self.next;
        let mut end = self.semicolon(self.at);
        while self.backslash == Backslash::Hides && end.is_some_and(|end| self.is_hidden(end)) {
            end = end.and_then(|end| self.semicolon(end + 1));
        }
        let mut until = end.unwrap_or(self.text.len());
        self.is_done = end.is_none();
        if self.is_last && self.end == RecordEnd::Line {
            let part = self.text.as_bytes().get(self.at..until)?;
            if let Some(line) = memchr2(b'\n', b'\r', part) {
                until = self.at + line;
                self.is_done = true;
            }
        }
        self.next = until + 1;
        self.text.get(self.at..until)
    }

    /// Returns the rest of the text after the parts that were taken, from the last line end on.
    pub(super) fn rest(&self) -> &'a str {
        self.text.split_at(self.next - 1).1
    }

    /// Returns the place of the first semicolon from here on.
    fn semicolon(&self, from: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(from..)?;
        memchr(b';', rest).map(|at| from + at)
    }

    /// Takes the next part if it is an integer in its most common form; otherwise the part stays.
    /// This also finds the end of the part, which saves a third of the time of a record.
    #[inline]
    pub(super) fn plain_integer<T: TryFrom<i64>>(&mut self) -> Option<T> {
        let rest = self.text.as_bytes().get(self.next..)?;
        let (number, length) = plain_integer(rest)?;
        let number = T::try_from(number).ok()?;
        self.is_done = match rest.get(length) {
            Some(b';') => false,
            Some(_) => return None,
            None => true,
        };
        self.at = self.next;
        self.next = self.at + length + 1;
        Some(number)
    }

    /// Copies the next part if it is a plain integer of this type. Returns whether it was.
    #[inline]
    pub(super) fn put_plain_integer(
        &mut self,
        field_type: &FieldType,
        chunk: &mut KiekerChunk,
    ) -> bool {
        let put = match field_type {
            FieldType::I32 => self
                .plain_integer::<i32>()
                .map(|it| chunk.put(&it.to_be_bytes())),
            FieldType::I64 => self
                .plain_integer::<i64>()
                .map(|it| chunk.put(&it.to_be_bytes())),
            _ => None,
        };
        put.is_some()
    }

    /// Whether the semicolon here belongs to a backslash. A backslash takes the character after it.
    fn is_hidden(&self, end: usize) -> bool {
        // The separator before the part is no backslash.
        let (before, _) = self.text.split_at(end);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        !backslashes.is_multiple_of(2)
    }

    pub(super) fn take(&mut self, schema: &Schema) -> Result<&'a str, Problem> {
        self.next().ok_or_else(|| {
            let message = format!("the record ends; {} has more fields", schema.name());
            Problem::new(self.text.len(), message)
        })
    }

    /// Whether the record must end with a line and the last part that was taken does not.
    pub(super) fn is_cut(&self) -> bool {
        self.end == RecordEnd::Line && self.rest().is_empty()
    }

    /// Returns the number of parts that are left after one was taken.
    pub(super) fn left(&self) -> usize {
        match self.is_done {
            true => 0,
            // Each follows a semicolon.
            false => memchr_iter(b';', self.rest().as_bytes()).count(),
        }
    }

    /// Returns a problem of the last part that was taken.
    pub(super) fn problem(&self, message: impl Into<Box<str>>) -> Problem {
        Problem::new(self.at, message)
    }

    /// Returns the last part that was taken, without the blanks and empty lines after the record.
    /// These belong to the part only if the record ends in a string.
    pub(super) fn without_blank_lines<'t>(&self, text: &'t str) -> &'t str {
        match self.is_done {
            true => text.trim_end_matches(['\n', '\r', ' ', '\t']),
            false => text,
        }
    }

    /// Copies the field that this part begins, and the items of a list after it.
    pub(super) fn value(
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
                let ends_record = self.is_last;
                for left in (0..count).rev() {
                    self.is_last = ends_record && left == 0;
                    let item = self.next().ok_or("the record ends within a list")?;
                    self.value(item, inner, chunk, texts)?;
                }
            }
            _ => return Err(format!("a text log cannot hold the type {field_type}").into()),
        }
        Ok(())
    }
}
