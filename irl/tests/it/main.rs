//! The language from outside.

#![cfg(test)]

mod fixtures;
mod hostile;
mod kieker;
