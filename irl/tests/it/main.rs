//! The language from outside.

#![cfg(test)]

mod fixtures;
mod format;
mod hostile;
mod kieker;
#[cfg(feature = "generate")]
mod languages;
