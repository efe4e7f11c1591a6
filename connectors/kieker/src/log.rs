//! Reads Kieker's logs.
//!
//! ```text
//! folder/kieker.map        $1=kieker.common.record.misc.TimestampRecord
//! folder/kieker-...-001.dat  $1;1700000000000010130;99
//!
//! files -> decompressed bytes -> records of a folder -> merged by time -> chunks
//! ```
//!
//! # Strings of text logs
//!
//! Strings are UTF-8 and are kept as they are. Kieker's writer escapes nothing:
//!
//! - A line that does not begin with `$` continues the record before it, because a string with a
//!   line break looks like this. The line break is kept. Lines that would make the record wrong are
//!   no part of it: a record that does not end in a string ends with its line. They are reported.
//! - Empty lines and blanks after a record count as part of it only if its last field is a string.
//! - Zero bytes at the start of a line are no part of a record. They are skipped and reported.
//! - A string with a semicolon looks like two fields. The record is skipped and reported: it has a
//!   field too many, or a field that is no number.
//! - A line break with `$` after it looks like two records. Both are reported, unless the first is
//!   a whole record.
//!
//! Kieker's own reader loses records with line breaks. It takes a backslash and the semicolon after
//! it as part of a string, but Kieker's writer never writes such a backslash on purpose. So a
//! backslash first means itself. If a record cannot be read in this way, it is read as Kieker's
//! reader does. Logs of [`KiekerLogWriter`](crate::KiekerLogWriter) have such backslashes.

mod config;
mod fields;
mod file;
mod folder;
#[doc(hidden)]
pub mod fuzzing;
mod input;
mod map;
mod number;
mod position;
mod reader;
mod text;

pub use config::KiekerLogConfig;
pub use folder::is_log;
pub(crate) use map::escaped;
pub use reader::KiekerLogReader;
