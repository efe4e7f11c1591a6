//! Kieker's text logs as a source of records.
//!
//! ```text
//! folder/kieker.map                     $1=kieker.common.record.misc.TimestampRecord
//! folder/kieker-20261120-...-001.dat    $1;1700000000000010130;99
//! ```
//!
//! [`LogReader`] reads the folder that Kieker's `FileWriter` (1.9 and later) made: the map from
//! numbers to class names, then every `.dat` file in the order of the names, line by line, with a
//! bounded line.
//! A line is `$`, the number of the class, the logging timestamp, and the fields in order, all
//! separated by `;`: integers decimal, bools `true` or `false`, floating point as Java's
//! `Double.toString` has it, enums by ordinal, lists as their length and then their items.
//! Lines end in LF, CRLF or CR; empty lines are passed over.
//!
//! # Strings
//!
//! They are taken as they stand, as UTF-8. Kieker's writer escapes nothing, so a string with a
//! semicolon or a line break spoils its line in the log itself: nobody can tell it from two
//! fields, or from two lines. Such lines are reported as having a field too many
//! ([`Problem::TooManyFields`]), a field that is no number, too few fields
//! ([`Problem::TooFewFields`]) or, for what follows the line break, no `$`
//! ([`Problem::NoDollar`]).
//! Kieker's own reader loses records there too, and keeps a backslash that makes a semicolon part
//! of a string; Kieker's writer never writes such a backslash, so here it means itself.
//!
//! # What is not read
//!
//! Compressed and binary logs: a folder that has nothing else is refused, otherwise the files are
//! listed by [`LogReader::unread_files`].

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

pub use dat::{DatError, DatReader};
pub use error::{BadLine, LogError, Problem};
pub use map::LogMap;
pub use reader::{BadLines, LogReader, LogSettings, OnBadLine, ParseOnBadLineError};
