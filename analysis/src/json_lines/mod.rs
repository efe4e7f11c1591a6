//! JSON lines as a source of records: one object a line, as many programs log.
//!
//! ```text
//! {"type":"push","actor":{"id":7,"login":"ada"},"size":2}
//! ```
//!
//! [`JsonLinesReader`] reads the lines of a file or of standard input. With
//! [`follow`](JsonLinesSettings::follow) it reads a file that another process is writing, even
//! across rotations. With [`position_file`](JsonLinesSettings::position_file) it continues at its
//! last position after a restart.
//!
//! [`Inference`] makes a record of each line. One field of the line (`type` by default) names the
//! record's type. Its fields are inferred from the lines:
//!
//! | JSON | field |
//! |---|---|
//! | true, false | bool |
//! | whole numbers | `i64`; `u64` if they are never negative and one needs it |
//! | other numbers | `f64`, if it holds the number exactly as it was written |
//! | text | string |
//! | array | list, if one type fits all its items |
//! | object | record |
//! | null | the absent value of an optional field |
//! | everything else | [JSON text](OPAQUE_NAME) |
//!
//! A field whose values change their type becomes wider: `i64` becomes `f64`, a type becomes its
//! optional, and otherwise the field becomes JSON text. Lines of one type with other keys become
//! records with the same name and another schema. So a missing key differs from null. The JSON sink
//! writes each line back with equal keys and values.

mod follow;
mod inference;
mod reader;
mod value;

pub use inference::{Inference, LineError};
pub use reader::{BadJsonLine, JsonLinesReader, JsonLinesSettings, Next};

pub use baler_common::record::{JSON_TEXT_FIELD as OPAQUE_FIELD, JSON_TEXT_NAME as OPAQUE_NAME};
