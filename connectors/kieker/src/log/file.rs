//! One file of a log, text or binary.

use std::io;
use std::path::PathBuf;

use baler_common::number::{to_u64, to_usize};
use bytes::Bytes;
use memchr::{memchr_iter, memmem};

use super::fields::{Problem, RecordEnd};
use super::input::Input;
use super::position::FilePosition;
use super::text::{End, Found, NO_RECORD, Refused, TextParser, find, with_line_end};
use crate::container::{KiekerChunk, KiekerStream, StreamStep};
use crate::headers::DAMAGED_BYTES;

/// The number of bytes that are read at a time.
const PART: u64 = 256 << 10;

/// The longest record of a text log, with the lines that continue it.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The number of polls without new bytes after which a whole line counts as a whole record.
const QUIET_POLLS: u32 = 2;

/// A file of a log that is being read.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    name: Box<str>,
    input: Input,
    buffer: Vec<u8>,
    /// The start of the next record: in the buffer, in the decompressed file, and its line.
    start: usize,
    offset: u64,
    line: u64,
    content: Content,
    /// Whether nothing is appended any more.
    is_closed: bool,
    /// The number of polls in a row without new bytes.
    quiet_polls: u32,
    /// Whether the file cannot be decompressed further.
    is_broken: bool,
    /// The reason for this, until it is reported.
    broken: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Nothing is known yet.
    Unknown,
    Binary,
    Text,
    /// Text, within a record that is too long.
    LongText,
    /// Text, within zero bytes.
    Zeros,
    /// The rest cannot be read.
    Lost,
}

/// The reason why no more records are taken from a file for now.
pub(super) enum FileStep {
    /// Part of the file cannot be read, and was skipped.
    Bad(BadPart),
    /// Nothing more is there now.
    End,
    /// The chunk is full.
    Full,
    /// The next record has this logging timestamp.
    Later(i64),
    /// The map has no string with this number.
    Unregistered(i32),
}

/// A part of a file that cannot be read.
#[derive(Debug)]
pub(super) struct BadPart {
    pub(super) bytes: Bytes,
    pub(super) offset: u64,
    pub(super) reason: Box<str>,
}

/// The target of records, and the data that is needed to read them.
pub(super) struct FileContext<'a> {
    pub(super) strings: &'a mut KiekerStream,
    pub(super) parser: &'a mut TextParser,
    pub(super) chunk: &'a mut KiekerChunk,
    /// Records after this logging timestamp wait.
    pub(super) until: i64,
    /// Whether the map is complete and gets no more strings.
    pub(super) map_is_complete: bool,
}

impl LogFile {
    /// Opens a file at a position.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn open(path: PathBuf, position: &FilePosition) -> io::Result<Self> {
        let (input, offset) = Input::open(&path, position.offset)?;
        let is_whole = offset == position.offset;
        Ok(Self {
            path,
            name: position.file.clone(),
            input,
            buffer: Vec::new(),
            start: 0,
            offset,
            // Whatever the position says: a line has at least one byte.
            line: if is_whole {
                position.line.min(offset)
            } else {
                0
            },
            content: match position.offset {
                FilePosition::LOST => Content::Lost,
                _ => Content::Unknown,
            },
            is_closed: false,
            quiet_polls: 0,
            is_broken: false,
            broken: None,
        })
    }

    /// Returns the start of the next record.
    pub(super) fn position(&self) -> FilePosition {
        let offset = match self.content {
            Content::Lost => FilePosition::LOST,
            _ => self.offset,
        };
        FilePosition {
            offset,
            line: self.line,
            ..FilePosition::beginning(self.name.clone())
        }
    }

    /// Returns the offset up to which the file was read, in decompressed bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the offset after which the file may get more bytes, or [`FilePosition::LOST`] if
    /// nothing can follow.
    pub(super) fn end(&self) -> u64 {
        match (&self.content, &self.input) {
            (Content::Lost, _) | (_, Input::Compressed { .. }) => FilePosition::LOST,
            (_, Input::Plain(_)) => self.offset,
        }
    }

    /// Notes that nothing is appended any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Adds records to the chunk until it is full, or a record is later than `until`.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn cut(&mut self, context: &mut FileContext<'_>) -> io::Result<FileStep> {
        let mut end = End::Open;
        loop {
            if self.content == Content::Unknown {
                self.content = match self.buffer.get(self.start) {
                    None => Content::Unknown,
                    // The number of a class begins with a zero byte.
                    Some(0) if !self.begins_with_lost_text() => Content::Binary,
                    Some(_) => Content::Text,
                };
            }
            match self.content {
                Content::LongText => self.skip_record(),
                Content::Zeros => self.skip_zeros(),
                Content::Lost => self.skip(self.left()),
                _ => {}
            }
            let step = match self.content {
                Content::Binary => self.cut_binary(context, end),
                Content::Text => self.cut_text(context, end),
                _ => None,
            };
            if let Some(step) = step {
                return Ok(step);
            }
            if end != End::Open {
                return Ok(match self.broken.take_if(|_| self.is_closed) {
                    Some(reason) => FileStep::Bad(self.bad_part(0, &reason)),
                    None => FileStep::End,
                });
            }
            if self.fill()? {
                self.quiet_polls = 0;
                continue;
            }
            self.quiet_polls += 1;
            end = match self.is_closed {
                true => End::Closed,
                false if self.quiet_polls > QUIET_POLLS => End::Quiet,
                false => return Ok(FileStep::End),
            };
        }
    }

    /// Reads the next part of the file. Returns whether there was one.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.input.has_grown(&self.path) {
            let from = self.offset + to_u64(self.buffer.len());
            if let (input, offset) = Input::open(&self.path, from)?
                && offset == from
            {
                (self.input, self.is_broken, self.broken) = (input, false, None);
            }
        }
        if self.is_broken {
            return Ok(false);
        }
        let before = self.buffer.len();
        match self.input.read(PART, &mut self.buffer) {
            Err(error) if matches!(self.input, Input::Compressed { .. }) => {
                self.is_broken = true;
                self.broken = Some(format!("the file cannot be decompressed: {error}").into());
            }
            result => drop(result?),
        }
        Ok(self.buffer.len() > before)
    }

    /// Skips this number of bytes.
    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += to_u64(bytes);
    }

    /// Returns the bytes that are not skipped.
    fn rest(&self) -> &[u8] {
        self.buffer.split_at(self.start).1
    }

    fn left(&self) -> usize {
        self.rest().len()
    }

    fn cut_binary(&mut self, context: &mut FileContext<'_>, end: End) -> Option<FileStep> {
        let stream = &mut *context.strings;
        stream.seek(to_usize(self.offset));
        let (taken, step) = stream.cut_into(context.chunk, self.rest(), context.until);
        self.skip(taken);
        let reason = match step {
            Ok(StreamStep::Full) => return Some(FileStep::Full),
            Ok(StreamStep::Later(timestamp)) => return Some(FileStep::Later(timestamp)),
            Ok(StreamStep::More(_)) if end == End::Closed && self.left() > 0 => {
                let left = self.left();
                format!(
                    "byte {}: the file ends {left} bytes into a record",
                    self.offset
                )
            }
            Ok(StreamStep::More(_)) => return None,
            Ok(StreamStep::Registration(id)) if !context.map_is_complete => {
                return Some(FileStep::Unregistered(id));
            }
            Ok(StreamStep::Registration(id)) => {
                let offset = self.offset;
                format!("byte {offset}: a record names the string {id}, which the map lacks")
            }
            Err(error) => error.to_string(),
        };
        self.content = Content::Lost;
        let reason = format!(
            "{reason}; the rest of the file is skipped, since nothing in it says where a record begins"
        );
        Some(FileStep::Bad(self.bad_part(self.left(), &reason)))
    }

    fn cut_text(&mut self, context: &mut FileContext<'_>, end: End) -> Option<FileStep> {
        loop {
            if context.chunk.is_full() {
                return Some(FileStep::Full);
            }
            let rest = self.rest();
            if *rest.first()? == 0 {
                let zeros = leading_zeros(rest);
                self.content = Content::Zeros;
                let reason = "zero bytes, which a crash leaves in a file; they are skipped";
                return Some(self.bad_text(zeros, 0, &Problem::new(0, reason)));
            }
            let FileContext {
                parser,
                strings,
                chunk,
                until,
                ..
            } = context;
            let mut read = |text, end| parser.record(text, end, strings, (chunk, *until));
            let (mut bytes, mut lines, is_long, mut result) = match find(rest, true, end) {
                Found::Record {
                    bytes,
                    with_end,
                    lines,
                } if bytes <= MAX_TEXT_BYTES => {
                    let (record, _) = rest.split_at(bytes);
                    let result = match record.iter().all(u8::is_ascii_whitespace) {
                        true => Ok(bytes),
                        false => read(record, RecordEnd::Text),
                    };
                    (with_end, lines, false, result)
                }
                Found::Part if rest.len() <= MAX_TEXT_BYTES => {
                    if end != End::Closed {
                        return None;
                    }
                    let reason = match rest.first() {
                        Some(b'$') => "the file ends within a record, without a line end",
                        _ => NO_RECORD,
                    };
                    (rest.len(), 1, false, Err(Problem::new(0, reason).into()))
                }
                _ => {
                    let reason = format!("the record is longer than {MAX_TEXT_BYTES} bytes");
                    (MAX_TEXT_BYTES, 0, true, Err(Problem::new(0, reason).into()))
                }
            };
            // The lines that continue the record may be none of its own.
            if matches!(result, Err(Refused::Problem(_))) {
                let first = read(rest.get(..bytes).unwrap_or(rest), RecordEnd::Line);
                if let Ok(length) = first {
                    (bytes, lines) = with_line_end(rest, length);
                }
                if !matches!(first, Err(Refused::Problem(_))) {
                    result = first;
                }
            }
            match result {
                Ok(_) => {
                    self.skip(bytes);
                    self.line += lines;
                }
                Err(Refused::Later(timestamp)) => return Some(FileStep::Later(timestamp)),
                Err(Refused::UnknownClass(id, _)) if !context.map_is_complete => {
                    return Some(FileStep::Unregistered(id));
                }
                Err(Refused::UnknownClass(_, problem) | Refused::Problem(problem)) => {
                    if is_long {
                        self.content = Content::LongText;
                        bytes = 1;
                    }
                    return Some(self.bad_text(bytes, lines, &problem));
                }
            }
        }
    }

    /// Skips zero bytes.
    fn skip_zeros(&mut self) {
        let zeros = leading_zeros(self.rest());
        let ends = zeros < self.left();
        self.skip(zeros);
        if ends {
            self.content = Content::Text;
        }
    }

    /// Skips the rest of a record that is too long.
    fn skip_record(&mut self) {
        let rest = self.rest();
        let next = [b"\n$", b"\r$"].map(|end| memmem::find(rest, end));
        let next = next.into_iter().flatten().min();
        let skipped = match (next, rest) {
            (Some(at), _) => rest.split_at(at + 1).0,
            // The last byte may be the line end before a record.
            (None, [before @ .., _]) => before,
            (None, []) => rest,
        };
        let (bytes, lines) = (skipped.len(), memchr_iter(b'\n', skipped).count());
        self.line += to_u64(lines);
        self.skip(bytes);
        if next.is_some() {
            self.content = Content::Text;
        }
    }

    /// Whether the zero bytes here are what a crash left of a text log: nothing or a record of a
    /// text log follows them. A binary log of such bytes has a logging timestamp of zero.
    fn begins_with_lost_text(&self) -> bool {
        let rest = self.rest();
        let (zeros, after) = rest.split_at(leading_zeros(rest));
        zeros.len() >= 12 && matches!(after, [] | [b'$'] | [b'$', b'-' | b'0'..=b'9', ..])
    }

    /// Returns a part of a text log that cannot be read, with the line and column of the problem.
    fn bad_text(&mut self, bytes: usize, lines: u64, problem: &Problem) -> FileStep {
        let rest = self.rest();
        let before = String::from_utf8_lossy(rest.get(..problem.at).unwrap_or(rest));
        let before = before.replace("\r\n", "\n");
        let mut line = self.line;
        let mut last = "";
        for text in before.split(['\n', '\r']) {
            line += 1;
            last = text;
        }
        let column = last.chars().count() + 1;
        let (path, message) = (self.path.display(), &problem.message);
        let reason = format!("{path}:{line}:{column}: {message}");
        self.line += lines;
        FileStep::Bad(self.take_bad(bytes, reason.into()))
    }

    /// Returns a part of a file that cannot be read.
    fn bad_part(&mut self, bytes: usize, reason: &str) -> BadPart {
        let reason = format!("{}: {reason}", self.path.display());
        self.take_bad(bytes, reason.into())
    }

    fn take_bad(&mut self, bytes: usize, reason: Box<str>) -> BadPart {
        let offset = self.offset;
        let (shown, _) = self.rest().split_at(bytes.min(DAMAGED_BYTES));
        let shown = Bytes::copy_from_slice(shown);
        self.skip(bytes);
        BadPart {
            bytes: shown,
            offset,
            reason,
        }
    }
}

fn leading_zeros(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == 0).count()
}
