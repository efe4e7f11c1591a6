//! Lines of bounded length, whatever they end in.

use std::io::{self, BufRead};

/// Cuts lines that end in LF, CRLF or CR, keeping one at a time.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
    /// The line before ended in CR: an LF that follows belongs to it.
    after_cr: bool,
}

/// A line, or what came instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of the line, without its end.
    Whole(&'a [u8]),
    /// It is longer than the limit; it was passed over.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            line: Vec::new(),
            after_cr: false,
        }
    }

    /// The next line; `None` at the end. What follows the last line end is a line if it is not
    /// empty.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut too_long = false;
        let mut seen = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            if std::mem::take(&mut self.after_cr) && buffer.first() == Some(&b'\n') {
                self.input.consume(1);
                continue;
            }
            seen = true;
            let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = buffer
                .get(..end.unwrap_or(buffer.len()))
                .unwrap_or_default();
            if self.line.len().saturating_add(part.len()) > self.limit {
                too_long = true;
            } else if !too_long {
                self.line.extend_from_slice(part);
            }
            self.after_cr = end.and_then(|end| buffer.get(end)) == Some(&b'\r');
            let consumed = part.len().saturating_add(usize::from(end.is_some()));
            self.input.consume(consumed);
            if end.is_some() {
                break;
            }
        }
        Ok(match (seen, too_long) {
            (false, _) => None,
            (true, true) => Some(Line::TooLong),
            (true, false) => Some(Line::Whole(&self.line)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lines(text: &[u8], buffer: usize, limit: usize) -> Vec<Option<String>> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, text), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                Line::Whole(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
                Line::TooLong => None,
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
