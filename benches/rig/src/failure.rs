//! Why there is no figure.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// A measurement that could not be made, or whose result was wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(Box<str>);

impl Failure {
    /// For this reason.
    pub fn new(reason: impl Into<Box<str>>) -> Self {
        Self(reason.into())
    }

    /// An error of something that was tried: `what` completes "cannot ...".
    pub fn cannot<E: Display>(what: &str) -> impl Fn(E) -> Self {
        move |error| Self(format!("cannot {what}: {error}").into())
    }
}

/// The exit code of a measuring program: failure, too, where a row says that it is not right.
///
/// What ended it is written to standard error, behind the program's name.
pub fn exit_code(program: &str, result: Result<bool, Failure>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell it to if this fails.
            writeln!(io::stderr(), "{program}: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
