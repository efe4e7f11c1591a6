//! The end of the program: exit codes, which are a contract, and the failures that lead to them.

use std::any::Any;
use std::fmt;
use std::io;
use std::process::ExitCode;

use baler_analysis::AnalysisError;
use baler_common::transport::{TransportError, WrongData, panic_text};

use baler_analysis::filters::SelectionError;

/// An exit code. The numbers above 2 are those of BSD's `sysexits.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Done, and everything is accounted for.
    Done = 0,
    /// The command line is wrong. clap ends the program with it.
    Usage = 2,
    /// Input was refused, put into quarantine, is missing or cannot be judged by `--where`; the rest
    /// was processed.
    Data = 65,
    /// A medium, a file or a folder cannot be reached, opened or read.
    Unavailable = 69,
    /// A fault of this program: totals that do not add up, a panic.
    Internal = 70,
    /// The output cannot be written.
    Output = 74,
    /// Ended by a signal or a deadline before everything was delivered.
    Incomplete = 75,
    /// `verify` saw a promise broken.
    Broken = 76,
    /// A URI or a setting is wrong.
    Configuration = 78,
}

impl Code {
    /// Every code in order of the numbers, and its meaning in one line.
    #[rustfmt::skip]
    pub(crate) const ALL: [(Self, &str); 9] = [
        (Self::Done, "done, and everything is accounted for"),
        (Self::Usage, "the command line is wrong"),
        (Self::Data, "input was refused, put into quarantine, is missing or cannot be judged by --where; the rest was processed"),
        (Self::Unavailable, "a medium, file or folder cannot be reached, opened or read"),
        (Self::Internal, "a fault of this program: totals do not add up, or it panicked"),
        (Self::Output, "the output cannot be written"),
        (Self::Incomplete, "a signal or deadline came before everything was delivered"),
        (Self::Broken, "verify saw a promise broken"),
        (Self::Configuration, "a URI or a setting is wrong"),
    ];

    /// Returns [`Code::Data`] if there is something that was refused, and [`Code::Done`] otherwise.
    pub(crate) const fn data_if(is_refused: bool) -> Self {
        match is_refused {
            true => Self::Data,
            false => Self::Done,
        }
    }

    /// Returns the number that the operating system gets.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.number())
    }
}

/// Returns the table of exit codes for `--help`.
pub(crate) fn help() -> String {
    let lines: Vec<String> = Code::ALL
        .into_iter()
        .map(|(code, meaning)| format!("  {:>2}  {meaning}", code.number()))
        .collect();
    format!(
        "Exit codes:\n{}\n\nThe first SIGINT, SIGTERM or SIGHUP drains within --shutdown-timeout, a second one ends at once.",
        lines.join("\n")
    )
}

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: Code,
    /// The message for standard error; nothing is printed if it is empty.
    pub(crate) message: String,
}

impl Failure {
    /// Creates a failure with this code.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the failure for a wrong URI or setting.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Code::Configuration, message)
    }

    /// Returns the failure for a thread that cannot be started.
    pub(crate) fn thread(error: impl fmt::Display) -> Self {
        Self::new(Code::Internal, format!("cannot start a thread: {error}"))
    }

    /// Returns the failure for a thread that panicked.
    pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Self {
        let text = panic_text(panic.as_ref());
        Self::new(Code::Internal, format!("a thread panicked: {text}"))
    }

    /// Returns the failure of writing to `what`. If nobody reads any more, as with `| head`, the
    /// end is quiet.
    pub(crate) fn output(what: impl fmt::Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Code::Done, "");
        }
        Self::new(Code::Output, format!("cannot write {what}: {error}"))
    }

    /// Returns the failure of opening or reading `what`.
    pub(crate) fn unavailable(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(Code::Unavailable, format!("cannot open {what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<SelectionError> for Failure {
    fn from(error: SelectionError) -> Self {
        Self::configuration(error.to_string())
    }
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        if error.is_broken_pipe() {
            return Self::new(Code::Done, "");
        }
        let code = match &error {
            AnalysisError::Output { .. } | AnalysisError::Quarantine { .. } => Code::Output,
            AnalysisError::Stage { .. } => Code::Data,
            AnalysisError::Stalled { .. } => Code::Incomplete,
            AnalysisError::Transport(error) => transport_code(error),
            _ => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        Self::new(transport_code(&error), error.to_string())
    }
}

/// Returns the exit code for a medium that failed.
pub(crate) fn transport_code(error: &TransportError) -> Code {
    let source = error.source.as_deref();
    match source.is_some_and(|it| it.is::<WrongData>()) {
        true => Code::Data,
        false => Code::Unavailable,
    }
}

#[cfg(test)]
mod tests;
