//! Reads lines of a file or of standard input, and makes a record of each.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_common::record::DynamicRecord;
use baler_common::transport::panic_text;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::follow::{Fill, FollowedFile, Position};
use super::inference::Inference;

/// How long [`JsonLinesReader::read`] waits for a pipe.
const PATIENCE: Duration = Duration::from_millis(100);

/// The settings for reading lines.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JsonLinesSettings {
    /// Whether reading waits for more at the end of the file. Default: no.
    pub follow: bool,
    /// The longest line in bytes; a longer line is bad. Default 1 MiB.
    pub line_bytes: usize,
    /// The file in which [`JsonLinesReader::save_position`] saves the position of reading. Reading
    /// begins there if the file exists. Default: none, so reading begins with the first line.
    pub position_file: Option<PathBuf>,
    /// The field that names the type of a line. Default `type`.
    pub type_field: Box<str>,
}

impl Default for JsonLinesSettings {
    fn default() -> Self {
        Self {
            follow: false,
            line_bytes: 1 << 20,
            position_file: None,
            type_field: "type".into(),
        }
    }
}

/// A line that is not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadJsonLine {
    /// The line without its end. If the line is too long, only its beginning.
    pub bytes: Vec<u8>,
    /// The offset of its first byte in the input.
    pub offset: u64,
    /// The reason.
    pub reason: Box<str>,
}

/// The next item of the input.
#[derive(Debug)]
pub enum Next {
    /// A line that is not a JSON object.
    Bad(BadJsonLine),
    /// The end of the input.
    End,
    /// Unread lines are gone, for the given reason.
    Lost(String),
    /// A line's record.
    Record(DynamicRecord),
    /// Nothing to read now, but perhaps later.
    Waiting,
}

/// Reads lines and makes a record of each. Empty lines are skipped.
///
/// In memory it keeps one line, one buffer, and the types of its [`Inference`].
#[derive(Debug)]
pub struct JsonLinesReader {
    input: Input,
    inference: Inference,
    line_bytes: usize,
    buffer: Vec<u8>,
    /// The start of the next line in the buffer, and the end of the part without a line end.
    start: usize,
    searched: usize,
    /// The offset of `start` in the input.
    offset: u64,
    /// Whether the rest of a line that is too long follows.
    is_too_long: bool,
    lost: Option<String>,
    position_file: Option<PathBuf>,
    saved: Option<Position>,
}

#[derive(Debug)]
enum Input {
    File(FollowedFile),
    /// A thread reads it, because reading a pipe cannot be interrupted.
    Pipe(PipeThread),
}

impl JsonLinesReader {
    /// Opens a file, or standard input if the path is `-`.
    ///
    /// # Errors
    ///
    /// The operating system fails.
    pub fn open(path: &Path, settings: JsonLinesSettings) -> io::Result<Self> {
        let mut lost = None;
        let mut offset = 0;
        let input = if path == Path::new("-") {
            Input::Pipe(read_in_thread(io::stdin())?)
        } else if std::fs::metadata(path)?.is_file() {
            let (file, gone) =
                FollowedFile::open(path, settings.follow, settings.position_file.as_deref())?;
            lost = gone;
            offset = file.position().offset;
            Input::File(file)
        } else {
            Input::Pipe(read_in_thread(std::fs::File::open(path)?)?)
        };
        Ok(Self {
            input,
            inference: Inference::new(settings.type_field),
            line_bytes: settings.line_bytes,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            offset,
            is_too_long: false,
            lost,
            position_file: settings.position_file,
            saved: None,
        })
    }

    /// Whether there is an unsaved position.
    pub fn has_moved(&self) -> bool {
        let position = self.position();
        self.position_file.is_some() && position.is_some() && position != self.saved
    }

    /// Saves the position after the last returned line. Whenever the process or the machine stops,
    /// the file contains either the old or the new position.
    ///
    /// # Errors
    ///
    /// The operating system fails.
    pub fn save_position(&mut self) -> io::Result<()> {
        let (Some(file), Some(position)) = (&self.position_file, self.position()) else {
            return Ok(());
        };
        position.save(file)?;
        self.saved = Some(position);
        Ok(())
    }

    fn position(&self) -> Option<Position> {
        match &self.input {
            Input::File(file) => Some(Position {
                offset: self.offset,
                ..file.position()
            }),
            Input::Pipe(_) => None,
        }
    }

    /// Reads the next line. Waits for a pipe, a tenth of a second at most, but not for a followed
    /// file: call again later.
    ///
    /// # Errors
    ///
    /// The operating system fails.
    pub fn read(&mut self) -> io::Result<Next> {
        if let Some(lost) = self.lost.take() {
            return Ok(Next::Lost(lost));
        }
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', rest) {
                if let Some(next) = self.line(self.searched.saturating_add(end), 1) {
                    return Ok(next);
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.is_too_long || self.unread() > self.line_bytes {
                let is_first = !self.is_too_long;
                let next = self.line(self.searched, 0);
                self.is_too_long = true;
                if let Some(next) = next.filter(|_| is_first) {
                    return Ok(next);
                }
            }
            let fill = self.fill()?;
            let is_more = matches!(fill, Fill::Bytes | Fill::Nothing);
            if !is_more {
                if let Some(next) = self.line(self.buffer.len(), 0) {
                    return Ok(next);
                }
            }
            match (fill, &mut self.input) {
                (Fill::Nothing, _) => return Ok(Next::Waiting),
                (Fill::EndOfFile, Input::File(file)) => file.next_file()?,
                (Fill::Truncated, Input::File(file)) => file.rewind()?,
                (Fill::Bytes, _) => continue,
                _ => return Ok(Next::End),
            }
            self.offset = 0;
        }
    }

    /// Returns how many bytes of the buffer belong to no line yet.
    fn unread(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    /// Reads a part of the input into the buffer.
    fn fill(&mut self) -> io::Result<Fill> {
        self.buffer.drain(..self.start);
        self.searched = self.searched.saturating_sub(self.start);
        self.start = 0;
        match &mut self.input {
            Input::File(file) => file.fill(&mut self.buffer),
            Input::Pipe(pipe) => match pipe.parts.recv_timeout(PATIENCE) {
                Ok(part) => {
                    self.buffer.extend_from_slice(&part?);
                    Ok(Fill::Bytes)
                }
                Err(RecvTimeoutError::Timeout) => Ok(Fill::Nothing),
                Err(RecvTimeoutError::Disconnected) => pipe.end().map(|()| Fill::End),
            },
        }
    }

    /// Takes the line that ends at this position of the buffer. Returns `None` for an empty line,
    /// and for the rest of a line that is too long.
    fn line(&mut self, end: usize, line_end: usize) -> Option<Next> {
        let line = self.buffer.get(self.start..end)?;
        let offset = self.offset;
        let bytes = line.len().saturating_add(line_end);
        self.start = self.start.saturating_add(bytes);
        self.searched = self.start;
        self.offset = self
            .offset
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if std::mem::take(&mut self.is_too_long) {
            return None;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let reason = if line.trim_ascii().is_empty() {
            return None;
        } else if line.len() > self.line_bytes {
            format!("the line is longer than {} bytes", self.line_bytes)
        } else {
            match std::str::from_utf8(line) {
                Err(error) => format!("the line is not UTF-8: {error}"),
                Ok(text) => match self.inference.record(text) {
                    Ok(record) => return Some(Next::Record(record)),
                    Err(error) => error.to_string(),
                },
            }
        };
        Some(Next::Bad(BadJsonLine {
            bytes: line.get(..self.line_bytes).unwrap_or(line).to_vec(),
            offset,
            reason: reason.into(),
        }))
    }
}

/// A thread that reads a pipe, and the parts that it has read.
#[derive(Debug)]
struct PipeThread {
    parts: Receiver<io::Result<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl PipeThread {
    /// Takes the end of the thread. A panic is no end of the input.
    fn end(&mut self) -> io::Result<()> {
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        joined.map_err(|panic| {
            io::Error::other(format!("reading panicked: {}", panic_text(panic.as_ref())))
        })
    }
}

/// Reads in a thread, because reading a pipe cannot be interrupted. The thread ends with its input,
/// or with the next part after the reader has gone.
fn read_in_thread(mut input: impl Read + Send + 'static) -> io::Result<PipeThread> {
    const PART: usize = 64 << 10;
    let (sender, parts) = bounded(4);
    let thread = thread::Builder::new()
        .name("baler-lines".into())
        .spawn(move || {
            let mut part = vec![0; PART];
            loop {
                let read = match input.read(&mut part) {
                    Ok(0) => return,
                    Ok(bytes) => Ok(part.get(..bytes).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                if sender.send(read).is_err() {
                    return;
                }
            }
        })?;
    Ok(PipeThread {
        parts,
        thread: Some(thread),
    })
}

#[cfg(test)]
mod tests;
