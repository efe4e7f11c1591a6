//! What a terminal gets: escaped text, as wide as it is, and colours where they are wanted.

use std::io::{self, IsTerminal as _, Write};

use baler_analysis::text::escape_but;

use super::progress;

/// How many columns a line of a result may have; none where nothing is to be cut or wrapped.
///
/// It is what COLUMNS says, else the width of the terminal that standard output is.
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

/// Text in which ends of lines and tabs are the only control characters.
pub(super) fn lines(text: &str) -> std::borrow::Cow<'_, str> {
    escape_but(text, |letter| matches!(letter, '\n' | '\t'))
}

/// Standard output for records: where it is a terminal, the line of progress goes for good, and
/// control characters are escaped. Each write is one or more whole lines.
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
