//! Reads lines and records of bounded length, whatever their line ends.

use std::io::{self, BufRead};

/// Splits a file into lines that end in LF, CRLF or CR. Keeps one line or one record at a time.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    input: R,
    limit: usize,
    text: Vec<u8>,
    /// The end of the last line; it is not in `text`.
    end: &'static [u8],
}

/// A line or a record, if it is not too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogLine<'a> {
    /// All of it, without its end.
    Whole(&'a [u8]),
    /// It is longer than the limit and was skipped.
    TooLong,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            text: Vec::new(),
            end: b"",
        }
    }

    /// The next line; `None` at the end. Text after the last line end is a line if it is not empty.
    pub(super) fn next_line(&mut self) -> io::Result<Option<LogLine<'_>>> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        self.text.clear();
        let fits = self.append_line(true)?;
        Ok(Some(self.line(fits)))
    }

    /// The next line, with all that follow it up to the next `$` at the start of a line: they
    /// continue a string that has line breaks. Also returns the number of lines.
    ///
    /// A line without a `$` that follows no record is returned alone.
    pub(super) fn next_record(&mut self) -> io::Result<Option<(LogLine<'_>, u64)>> {
        let Some(first) = self.peek()? else {
            return Ok(None);
        };
        self.text.clear();
        let mut fits = self.append_line(true)?;
        let mut lines = 1_u64;
        if first == b'$' {
            while self.peek()?.is_some_and(|first| first != b'$') {
                fits = fits && self.append(self.end);
                fits = self.append_line(fits)?;
                lines = lines.saturating_add(1);
            }
        }
        Ok(Some((self.line(fits), lines)))
    }

    /// The first byte of the next line; `None` at the end of the file.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let first = fill(&mut self.input)?.first().copied();
            if self.end != b"\r" || first != Some(b'\n') {
                return Ok(first);
            }
            self.input.consume(1);
            self.end = b"\r\n";
        }
    }

    /// Reads to the end of the line. Appends it if `fits` holds and as long as it is below the
    /// limit; returns whether all of it was appended.
    fn append_line(&mut self, mut fits: bool) -> io::Result<bool> {
        self.end = b"";
        loop {
            let buffer = fill(&mut self.input)?;
            if buffer.is_empty() {
                return Ok(fits);
            }
            let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = buffer
                .get(..end.unwrap_or(buffer.len()))
                .unwrap_or_default();
            fits = fits && self.text.len().saturating_add(part.len()) <= self.limit;
            if fits {
                self.text.extend_from_slice(part);
            }
            let consumed = part.len().saturating_add(usize::from(end.is_some()));
            if let Some(end) = end {
                self.end = match buffer.get(end) {
                    Some(b'\r') => b"\r",
                    _ => b"\n",
                };
            }
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(fits);
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let fits = self.text.len().saturating_add(bytes.len()) <= self.limit;
        if fits {
            self.text.extend_from_slice(bytes);
        }
        fits
    }

    fn line(&self, fits: bool) -> LogLine<'_> {
        if fits {
            LogLine::Whole(&self.text)
        } else {
            LogLine::TooLong
        }
    }
}

/// The next bytes of the input; empty at its end.
fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // The same bytes again: the borrow checker refuses to return them from the loop.
    input.fill_buf()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lines(text: &[u8], buffer: usize, limit: usize) -> Vec<Option<String>> {
        let mut lines = LineReader::new(BufReader::with_capacity(buffer, text), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                LogLine::Whole(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
                LogLine::TooLong => None,
            });
        }
        found
    }

    #[test]
    fn every_line_end_is_one_wherever_the_buffer_ends() {
        for buffer in 1..8 {
            assert_eq!(
                lines(b"a\nbb\r\nc\rd\n\re", buffer, 9),
                ["a", "bb", "c", "d", "", "e"].map(|line| Some(line.to_owned())),
                "{buffer}"
            );
            assert!(lines(b"", buffer, 9).is_empty());
            assert_eq!(lines(b"a\r\n", buffer, 9).len(), 1);
        }
    }

    fn records(text: &[u8], buffer: usize, limit: usize) -> Vec<(Option<String>, u64)> {
        let mut lines = LineReader::new(BufReader::with_capacity(buffer, text), limit);
        let mut found = Vec::new();
        while let Some((record, count)) = lines.next_record().unwrap() {
            let text = match record {
                LogLine::Whole(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
                LogLine::TooLong => None,
            };
            found.push((text, count));
        }
        found
    }

    #[test]
    fn lines_without_a_dollar_continue_the_record_with_the_line_ends_between() {
        let record = |text: &str, lines| (Some(text.to_owned()), lines);
        for buffer in 1..8 {
            assert_eq!(
                records(b"a\n\n$1\nb\r\nc\rd$\r\n$2\r\n\n$3\n", buffer, 10),
                [
                    record("a", 1),
                    record("", 1),
                    record("$1\nb\r\nc\rd$", 4),
                    record("$2\r\n", 2),
                    record("$3", 1),
                ],
                "{buffer}"
            );
        }
    }

    #[test]
    fn a_record_of_many_lines_takes_no_more_memory_than_the_limit() {
        let log = [b"$1".as_slice(), &b"\nmore".repeat(1 << 16), b"\n$2"].concat();
        let mut lines = LineReader::new(BufReader::with_capacity(64, log.as_slice()), 100);
        assert_eq!(
            lines.next_record().unwrap(),
            Some((LogLine::TooLong, 1 + (1 << 16)))
        );
        assert!(lines.text.capacity() <= 200, "{}", lines.text.capacity());
        assert_eq!(
            lines.next_record().unwrap(),
            Some((LogLine::Whole(b"$2"), 1))
        );
        assert_eq!(lines.next_record().unwrap(), None);
    }

    #[test]
    fn a_line_above_the_limit_is_passed_over() {
        for buffer in 1..8 {
            assert_eq!(
                lines(b"123\n1234\n12\n12345", buffer, 3),
                [Some("123".to_owned()), None, Some("12".to_owned()), None],
                "{buffer}"
            );
        }
    }
}
