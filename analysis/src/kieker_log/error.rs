//! What can be wrong with a log, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::record::ValueError;

use super::folder::UnreadLog;

/// A log cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// A line is wrong, and the reader was told to stop there.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The folder has no map.
    #[error("{}: there is no kieker.map in this folder{}", folder.display(), nearest(near.as_deref()))]
    NoMap {
        /// The folder.
        folder: PathBuf,
        /// A folder in it that has one.
        near: Option<PathBuf>,
    },
    /// The folder has compressed or binary logs only.
    #[error("{}: no text log in this folder: {first}{}", folder.display(), others(*files))]
    NoTextLog {
        /// The folder.
        folder: PathBuf,
        /// How many compressed and binary files it has.
        files: usize,
        /// One of them, with advice.
        first: UnreadLog,
    },
    /// The folder has no log at all.
    #[error("{}: there is no kieker*.dat or tpmon*.dat in this folder", folder.display())]
    NoLog {
        /// The folder.
        folder: PathBuf,
    },
}

fn nearest(near: Option<&Path>) -> String {
    near.map_or_else(String::new, |near| {
        format!("; did you mean {}?", near.display())
    })
}

fn others(files: usize) -> String {
    match files {
        0 | 1 => String::new(),
        files => format!(" (and so on; {files} files)"),
    }
}

/// A line of the map, or a record, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub file: Arc<Path>,
    /// The line of what is wrong, counted from 1.
    pub line: u64,
    /// Where in the line, in characters from 1.
    pub column: usize,
    /// The record's field that was being read.
    pub field: Option<Box<str>>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file.display(), self.line, self.column)?;
        if let Some(field) = &self.field {
            write!(f, "field {field}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for BadLine {}

/// What is wrong with a line. Texts of the log are cut to [`Problem::SHOWN_CHARS`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The class has no number.
    #[error("{found:?} is not the number of a class")]
    ClassNumber {
        /// What stands there.
        found: Box<str>,
    },
    /// The map gives a number twice, for different classes; the first one counts.
    #[error("the number {number} stands for {first} already")]
    ClassTwice {
        /// The number.
        number: i32,
        /// Its class.
        first: Box<str>,
    },
    /// A list is longer than the record.
    #[error("a list of {found} items is announced, {left} fields are left")]
    ListLength {
        /// The length.
        found: Box<str>,
        /// How many fields are left.
        left: usize,
    },
    /// The line does not begin with `$`, and there is no record before it that it could continue.
    #[error("a record begins with $ and the number of its class; no record begins here")]
    NoDollar,
    /// A line of the map has no `=`.
    #[error("a line of the map is $NUMBER=CLASS")]
    NoEquals,
    /// A bool is neither `true` nor `false`.
    #[error("{found:?} is neither true nor false")]
    NotABool {
        /// What stands there.
        found: Box<str>,
    },
    /// A char has no or several characters.
    #[error("{found:?} is not one character")]
    NotAChar {
        /// What stands there.
        found: Box<str>,
    },
    /// A number is none.
    #[error("{found:?} is not a number of type {wanted}")]
    NotANumber {
        /// What stands there.
        found: Box<str>,
        /// The field's type.
        wanted: &'static str,
    },
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// A number is too large or too small for its type.
    #[error("{found} does not fit the type {wanted}")]
    OutOfRange {
        /// What stands there.
        found: Box<str>,
        /// The field's type.
        wanted: &'static str,
    },
    /// The text of the record ends before its last field.
    #[error("the record ends; {record} has more fields")]
    TooFewFields {
        /// The record type.
        record: Box<str>,
    },
    /// The line is longer than [`super::LogSettings::line_bytes`], with the lines that continue it.
    #[error("the line is longer than {limit} bytes, with the lines up to the next $")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The map has too many classes.
    #[error("the map has more than {limit} classes")]
    TooManyClasses {
        /// The limit.
        limit: usize,
    },
    /// Fields are left where the record ends.
    #[error("{extra} fields too many for {record}; is there a semicolon in one of its strings?")]
    TooManyFields {
        /// The record type.
        record: Box<str>,
        /// How many are left.
        extra: usize,
    },
    /// A text log cannot hold a field's type.
    #[error("a text log cannot hold {record}.{field} of type {field_type}")]
    UnfitRecordType {
        /// The record type.
        record: Box<str>,
        /// The field.
        field: Box<str>,
        /// The field's type.
        field_type: Box<str>,
    },
    /// The map does not have the number.
    #[error("the map has no class {number}{}", nearest_class(near.as_ref()))]
    UnknownClass {
        /// The number.
        number: i32,
        /// The nearest number that it has, and its class.
        near: Option<(i32, Box<str>)>,
    },
    /// The catalog does not have the class.
    #[error("the record type {name} is not in the catalog{}", nearest_type(near.as_deref()))]
    UnknownRecordType {
        /// The class.
        name: Box<str>,
        /// The most similar one that it has.
        near: Option<Box<str>>,
    },
    /// The values do not make a record.
    #[error(transparent)]
    Values(#[from] ValueError),
    /// An enum has no variant with this number.
    #[error("{found} is not the number of a variant of {wanted}, which has {variants}")]
    UnknownVariant {
        /// What stands there.
        found: Box<str>,
        /// The enum.
        wanted: Box<str>,
        /// How many variants it has.
        variants: usize,
    },
}

impl Problem {
    /// How many characters of the log a message shows at most.
    pub const SHOWN_CHARS: usize = 200;

    /// What to show of a text of the log.
    pub(super) fn shown(text: &str) -> Box<str> {
        match text.char_indices().nth(Self::SHOWN_CHARS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
            None => text.into(),
        }
    }

    /// The reason's name in tables and JSON.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::ClassNumber { .. } => "class_number",
            Self::ClassTwice { .. } => "class_twice",
            Self::ListLength { .. } => "list_length",
            Self::NoDollar => "no_dollar",
            Self::NoEquals => "no_equals",
            Self::NotABool { .. } => "not_a_bool",
            Self::NotAChar { .. } => "not_a_char",
            Self::NotANumber { .. } => "not_a_number",
            Self::NotUtf8 => "not_utf8",
            Self::OutOfRange { .. } => "out_of_range",
            Self::TooFewFields { .. } => "too_few_fields",
            Self::TooLong { .. } => "too_long",
            Self::TooManyClasses { .. } => "too_many_classes",
            Self::TooManyFields { .. } => "too_many_fields",
            Self::UnfitRecordType { .. } => "unfit_record_type",
            Self::UnknownClass { .. } => "unknown_class",
            Self::UnknownRecordType { .. } => "unknown_record_type",
            Self::UnknownVariant { .. } => "unknown_variant",
            Self::Values(_) => "values",
        }
    }
}

fn nearest_class(near: Option<&(i32, Box<str>)>) -> String {
    near.map_or_else(String::new, |(number, class)| {
        format!("; the nearest is {number}, {class}")
    })
}

fn nearest_type(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
}
