//! Proves that lines become records and come back as they were, and that a reader of lines keeps
//! its promises.
#![cfg(test)]

mod following;
mod lines;
mod support;
