//! What both sides of Baler agree on.
//!
//! ```text
//! record -> row -> batch -> [chunk] ~~ transport ~~ [chunk] -> batch -> record
//! ```
//!
//! - [`record`]: schemas, typed and dynamic records, batches of them.
//! - [`container`]: batches to chunks and back.
//! - [`transport`]: the two ends of a connector, and the contract between them.
//!
//! This crate does no I/O, starts no thread and reads no clock.

// The derive macro names this crate by its full path, here too.
extern crate self as baler_common;

pub mod container;
pub mod record;
pub mod transport;
