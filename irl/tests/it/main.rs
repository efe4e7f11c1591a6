//! The language from outside.

#![cfg(test)]

mod compare;
mod files;
mod fixtures;
mod format;
mod hostile;
mod kieker;
