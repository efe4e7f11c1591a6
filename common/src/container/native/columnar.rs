//! The body format `columnar`: one table a type, one column a field; FORMAT.md, "Columnar".
//!
//! ```text
//! types | strings | order of types | tables: rows, columns of the fields, timestamps
//! ```
//!
//! - `types`: schemas, in full or by the numbers of well-known types.
//! - `strings`: the string table.
//! - `encode`, `decode`: bodies and their tables; `columns`: reads columns of any type.
//! - `calls`: tables of executions, whose rows can be derived from one another.
//! - `ints`: columns of integers; everything but text and bytes becomes one.

mod calls;
mod columns;
mod decode;
mod encode;
mod ints;
mod strings;
mod types;

pub(super) use decode::decode;
pub(super) use encode::{Encoder, types_of};
pub(super) use ints::IntScratch;

/// The format's number in the prefix.
pub(super) const NUMBER: u8 = 1;

/// The name in tables and JSON.
pub(super) const NAME: &str = "columnar";

/// Encodings of columns of bytes; the numbers are disjoint from those of integers.
const BYTES_PLAIN: u8 = 0x40;
