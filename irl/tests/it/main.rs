//! The language from outside.

#![cfg(test)]

#[cfg(feature = "generate")]
mod build;
mod compare;
mod files;
mod fixtures;
mod format;
mod hostile;
mod kieker;
#[cfg(feature = "generate")]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the golden bytes are those of Java's casts"
)]
mod languages;
