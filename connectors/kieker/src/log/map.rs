//! The map of a log: from numbers to the names of classes and, in a binary log, to all other
//! strings.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use baler_common::number::to_u64;

use super::number::{integer, shown};
use super::text::{End, Found, find};
use crate::container::KiekerStream;

/// The number of bytes that are read at a time.
const PART: u64 = 64 << 10;

/// The longest entry: a string after its number.
const MAX_ENTRY_BYTES: usize = KiekerStream::MAX_STRING_BYTES + 64;

/// The most problems of one reading that are reported one by one; more are only counted.
const MAX_PROBLEMS: usize = 100;

/// Reads `kieker.map`, and the entries that are appended to it.
///
/// An entry is `$NUMBER=STRING`. A line without a `$` continues the string before it, unless the
/// whole map has no `$`, as in Kieker's predecessor.
#[derive(Debug)]
pub(super) struct LogMap {
    path: PathBuf,
    /// Whether `\\`, `\r` and `\n` stand for a backslash and line ends. Kieker up to 1.12 writes
    /// them; later versions write strings as they are.
    has_escapes: bool,
    /// The offset up to which the map was read.
    offset: u64,
    /// Bytes that were read and are no entry yet.
    rest: Vec<u8>,
    line: u64,
}

/// The problems of the entries of one reading.
#[derive(Debug, Default)]
struct Problems {
    reported: Vec<Box<str>>,
    more: u64,
}

impl Problems {
    fn add(&mut self, problem: Box<str>) {
        match self.reported.len() < MAX_PROBLEMS {
            true => self.reported.push(problem),
            false => self.more += 1,
        }
    }
}

impl LogMap {
    pub(super) fn new(path: PathBuf, has_escapes: bool) -> Self {
        Self {
            path,
            has_escapes,
            offset: 0,
            rest: Vec::new(),
            line: 0,
        }
    }

    /// Adds the new entries to the strings. Returns the problems of wrong entries.
    ///
    /// An entry without a line end may be cut. It counts if it names a record type. It is wrong if
    /// `is_closed` is set, because then nothing is appended any more.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn read(
        &mut self,
        strings: &mut KiekerStream,
        is_closed: bool,
    ) -> io::Result<Vec<Box<str>>> {
        let mut problems = Problems::default();
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        loop {
            let read = (&mut file).take(PART).read_to_end(&mut self.rest)?;
            self.offset += to_u64(read);
            let end = if read > 0 { End::Open } else { End::Quiet };
            self.entries(strings, end, &mut problems);
            if self.rest.len() > MAX_ENTRY_BYTES {
                let message = format!("an entry is longer than {MAX_ENTRY_BYTES} bytes");
                problems.add(self.problem(&message));
                self.rest.clear();
            }
            if read == 0 {
                break;
            }
        }
        if !self.rest.is_empty() {
            let entry = std::mem::take(&mut self.rest);
            let name = std::str::from_utf8(&entry)
                .ok()
                .and_then(|it| it.split_once('='));
            let is_type = name.is_some_and(|(_, name)| strings.catalog().get(name).is_some());
            if is_type {
                if let Some(problem) = self.add(&entry, strings) {
                    problems.add(problem);
                }
            } else if is_closed {
                problems.add(self.problem("the last entry is cut: it has no line end"));
            } else {
                self.rest = entry;
            }
        }
        if problems.more > 0 {
            let message = format!("{} more entries are wrong", problems.more);
            problems.reported.push(self.problem(&message));
        }
        Ok(problems.reported)
    }

    fn entries(&mut self, strings: &mut KiekerStream, end: End, problems: &mut Problems) {
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_slice();
        while let [b'\n' | b'\r', after @ ..] = left {
            self.line += 1;
            left = after;
        }
        // If a map has `$`, every part that is read begins with one.
        let joins = left.first() == Some(&b'$');
        while let Found::Record {
            bytes,
            with_end,
            lines,
        } = find(left, joins, end)
        {
            let (entry, _) = left.split_at(bytes);
            if let Some(problem) = self.add(entry, strings) {
                problems.add(problem);
            }
            self.line += lines;
            (_, left) = left.split_at(with_end);
        }
        self.rest = left.to_vec();
    }

    /// Adds an entry. Returns its problem, if it is wrong.
    fn add(&self, entry: &[u8], strings: &mut KiekerStream) -> Option<Box<str>> {
        let Ok(entry) = std::str::from_utf8(entry) else {
            return Some(self.problem("the entry is not UTF-8"));
        };
        if entry.trim_end_matches(['\n', '\r']).is_empty() {
            return None;
        }
        let Some((number, text)) = entry.split_once('=') else {
            return Some(self.problem("an entry of the map is $NUMBER=STRING"));
        };
        let number = number.strip_prefix('$').unwrap_or(number);
        let Ok(id) = integer::<i32>(number, "i32") else {
            let message = format!("{:?} is not the number of a string", shown(number));
            return Some(self.problem(&message));
        };
        // The name of a class does not end in empty lines, but another string may.
        let name = text.trim_end();
        let text = match strings.catalog().get(name).is_some() {
            true => name,
            false => text,
        };
        let text = match self.has_escapes {
            true => unescape(text),
            false => text.to_owned(),
        };
        match strings.string(id) {
            Some(known) if *known == text => None,
            Some(known) => {
                let message = format!("the number {id} stands for {:?} already", shown(known));
                Some(self.problem(&message))
            }
            None => {
                let added = strings.add_string(id, &text);
                added.err().map(|error| self.problem(&error.to_string()))
            }
        }
    }

    fn problem(&self, message: &str) -> Box<str> {
        let line = self.line + 1;
        format!("{}:{line}: {message}", self.path.display()).into()
    }
}

/// Writes a string without line ends, as maps and registries of strings have it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\r', "\\r")
        .replace('\n', "\\n")
}

/// Undoes the escapes. A backslash before another character means itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let escaped = match (char, chars.peek()) {
            ('\\', Some('\\')) => Some('\\'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            _ => None,
        };
        if escaped.is_some() {
            chars.next();
        }
        plain.push(escaped.unwrap_or(char));
    }
    plain
}
