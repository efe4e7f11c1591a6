//! The form of text on a terminal: escaped, as wide as the terminal, and with colours if they are
//! wanted.

use std::io::{self, IsTerminal as _, Write};

use baler_analysis::text::escape_but;

use super::progress;

/// Returns the maximum number of columns in a line of a result, or `None` if lines are neither cut
/// nor wrapped.
///
/// COLUMNS sets it; otherwise it is the width of the terminal on standard output.
pub(crate) fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok();
    if let Some(columns) = said.and_then(|columns| columns.trim().parse().ok())
        && columns > 0
    {
        return Some(columns);
    }
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Escapes all control characters of a text, except ends of lines and tabs.
pub(super) fn lines(text: &str) -> std::borrow::Cow<'_, str> {
    escape_but(text, |letter| matches!(letter, '\n' | '\t'))
}

/// Standard output for records. On a terminal, it removes the line of progress for good and escapes
/// control characters. Each write is one or more whole lines.
#[derive(Debug)]
pub(crate) struct RecordOutput;

impl Write for RecordOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout();
        if stdout.is_terminal() {
            progress::end();
            let text = String::from_utf8_lossy(bytes);
            stdout.write_all(lines(&text).as_bytes())?;
        } else {
            stdout.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
