//! Kieker's text logs as a source of records.
//!
//! ```text
//! folder/kieker.map                     $1=kieker.common.record.misc.TimestampRecord
//! folder/kieker-20261120-...-001.dat    $1;1700000000000010130;99
//! ```
//!
//! [`LogReader`] reads the folder that Kieker's `FileWriter` (1.9 and later) made: the map from
//! numbers to class names, then every `.dat` file in the order of the names, record by record.
//! A record is `$`, the number of the class, the logging timestamp, and the fields in order, all
//! separated by `;`: integers decimal, bools `true` or `false`, floating point as Java's
//! `Double.toString` has it, enums by ordinal, lists as their length and then their items.
//! Lines end in LF, CRLF or CR.
//!
//! # Strings
//!
//! Strings are UTF-8 and are kept as they are. Kieker's writer escapes nothing:
//!
//! - A line that does not begin with `$` continues the record before it, because a string with a
//!   line break looks like this. The line break is kept. Empty lines after a record count as part
//!   of it only if its last field is a string.
//! - A string with a semicolon looks like two fields. The record is skipped and reported:
//!   it has a field too many (`too_many_fields`), or a field that is no number.
//! - A line break with `$` after it looks like two records. Both are reported, unless the
//!   first is a whole record.
//!
//! A record has a bounded length ([`LogSettings::line_bytes`]), however many lines it has.
//! Kieker's own reader loses records with line breaks. It also keeps a backslash that makes a
//! semicolon part of a string; Kieker's writer never writes such a backslash, so it means itself
//! here.
//!
//! # What is not read
//!
//! Compressed and binary logs, recognised by their first bytes: Kieker's names do not help. A
//! folder that has nothing else is refused with advice, otherwise [`LogReader::unread_files`] lists
//! them.

mod dat;
mod error;
mod folder;
#[doc(hidden)]
pub mod fuzzing;
mod line;
mod lines;
mod map;
mod number;
mod reader;

pub use error::{BadLine, LogError, Problem};
pub use folder::UnreadLog;
pub use map::LogMap;
pub use reader::{BadLines, LogReader, LogSettings, OnBadLine, ParseOnBadLineError};
