//! Proves that lines become records and come back as they were, and that a reader of lines keeps
//! its promises.

mod following;
mod records;
mod support;
