//! The form of text on a terminal: escaped, as wide as the terminal, and with colours if they are
//! wanted.

use std::io::{self, IsTerminal as _, Write};

use baler_analysis::text::escape_but;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{progress, write};
use crate::exit::Failure;

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

/// No time to wait.
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// A terminal on which pages are drawn, each in the place of the one before. Afterwards the terminal
/// is as it was.
#[derive(Debug)]
pub(crate) struct AlternateScreen {
    /// The mode of standard input; `None` if it is no terminal.
    before: Option<Termios>,
}

impl AlternateScreen {
    /// Takes the alternate screen (xterm: 1049). Keys arrive at once, and are not shown.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub(crate) fn open() -> Result<Self, Failure> {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut mode = before.clone();
            mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok();
        }
        let screen = Self { before };
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    /// Whether keys arrive.
    pub(crate) fn has_keys(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the next key, if one was pressed.
    pub(crate) fn key(&self) -> Option<u8> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let is_ready = self.has_keys() && poll(&mut fds, Some(&NOW)).ok()? > 0;
        let mut key = [0];
        let count = is_ready.then(|| rustix::io::read(&stdin, &mut key).ok())??;
        (count > 0).then_some(key[0])
    }

    /// Draws a page, with `keys` in the last line. Lines that do not fit are counted there.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub(crate) fn draw(&self, page: &str, keys: &str) -> Result<(), Failure> {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        // A terminal that does not know its height has 24 rows; the last one is for the keys.
        let rows = size.ok().map(|size| usize::from(size.ws_row));
        let rows = rows.filter(|rows| *rows > 1).unwrap_or(24) - 1;
        let page = lines(page);
        let mut text = "\x1b[H".to_owned();
        for line in page.lines().take(rows) {
            text.push_str(&format!("{line}\x1b[K\r\n"));
        }
        let hidden = match page.lines().skip(rows).count() {
            0 => String::new(),
            more => format!("; {more} more lines in a higher terminal"),
        };
        // The rest of the screen is erased before the last line, which ends without a new one.
        text.push_str(&format!("\x1b[J{keys}{hidden}"));
        write(&text)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        write("\x1b[?25h\x1b[?1049l").ok();
        if let Some(before) = &self.before {
            tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        }
    }
}

/// Escapes all control characters of a text, except ends of lines and tabs.
pub(super) fn lines(text: &str) -> std::borrow::Cow<'_, str> {
    escape_but(text, |letter| matches!(letter, '\n' | '\t'))
}

/// Escapes control characters, except ends of lines and tabs. Each write is a whole text.
pub(super) struct Escaped<W>(pub(super) W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
