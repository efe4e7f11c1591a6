//! Why there is no figure.

use std::fmt::Display;

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
