//! What can be wrong with a URI, and where.

use std::fmt;

use super::settings::nearest;

/// A URI is wrong. Its text never holds credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{kind}", Place(*.offset))]
pub struct UriError {
    /// How many bytes into the text; nothing where it is in no one place.
    pub offset: Option<usize>,
    /// What is wrong.
    pub kind: UriErrorKind,
}

/// What is wrong with a URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriErrorKind {
    /// A setting is not one of the words that it may be.
    #[error("{name} is {found}, not one of {}{}", .choices.join(", "), Nearest(.nearest.as_deref()))]
    Choice {
        /// The setting.
        name: Box<str>,
        /// Its value; stars if the setting is secret.
        found: Box<str>,
        /// The words that it may be.
        choices: Vec<Box<str>>,
        /// The word that it resembles most.
        nearest: Option<Box<str>>,
    },
    /// The text holds a character that a URI cannot.
    #[error("{found:?} cannot stand here; write it as {encoded}")]
    Character {
        /// The character.
        found: char,
        /// What to write instead.
        encoded: Box<str>,
    },
    /// Two settings exclude each other.
    #[error("{first} conflicts with {second}: {why}")]
    Conflict {
        /// One of them.
        first: Box<str>,
        /// The other one.
        second: Box<str>,
        /// Why they do.
        why: Box<str>,
    },
    /// A setting is given twice.
    #[error("{name} is given a second time; it was already given at byte {first_offset}")]
    Duplicate {
        /// The setting.
        name: Box<str>,
        /// Where it stands first.
        first_offset: usize,
    },
    /// There must be exactly one host.
    #[error("exactly one host is needed here, {found} are given")]
    Hosts {
        /// How many there are.
        found: usize,
    },
    /// A host has no name, or its brackets do not match.
    #[error("a host is missing or malformed")]
    Host,
    /// There is a host where none can be.
    #[error("no host can stand here")]
    HostGiven,
    /// Something that the medium needs is missing.
    #[error("{what} is missing")]
    Missing {
        /// What is missing.
        what: Box<str>,
    },
    /// There is a path where none can be.
    #[error("no path can stand here")]
    Path,
    /// A percent sign is not followed by two hexadecimal digits, or what it yields is not UTF-8.
    #[error("% must be followed by two hexadecimal digits, and the text must be UTF-8")]
    Percent,
    /// A port is not a number from 0 to 65535.
    #[error("the port must be a number from 0 to 65535")]
    Port,
    /// What the medium finds wrong by itself, such as a setting of its client library.
    #[error("{why}")]
    Refused {
        /// What is wrong.
        why: Box<str>,
    },
    /// The text does not start with a scheme and a colon.
    #[error("a URI starts with a scheme and a colon, such as tcp: or file:")]
    Scheme,
    /// Nobody knows this setting.
    #[error("the setting {name} is unknown{}", Nearest(.nearest.as_deref()))]
    Unknown {
        /// The setting.
        name: Box<str>,
        /// The setting that it resembles most.
        nearest: Option<Box<str>>,
    },
    /// No medium has this scheme.
    #[error("{scheme}: is no known scheme, use one of {}{}", .schemes.join(", "), Nearest(.nearest.as_deref()))]
    UnknownScheme {
        /// The scheme.
        scheme: Box<str>,
        /// The schemes that there are, each with its colon.
        schemes: Vec<Box<str>>,
        /// The scheme that it resembles most.
        nearest: Option<Box<str>>,
    },
    /// A setting's value cannot be understood.
    #[error("{name} is {found:?}, not {expected}")]
    Value {
        /// The setting.
        name: Box<str>,
        /// Its value; stars if the setting is secret.
        found: Box<str>,
        /// What it may be.
        expected: &'static str,
    },
}

impl UriError {
    /// A connector misses something that its URI must have, wherever it stands.
    pub fn missing(what: impl Into<Box<str>>) -> Self {
        Self {
            offset: None,
            kind: UriErrorKind::Missing { what: what.into() },
        }
    }

    /// Nobody knows a setting; `known` are those that somebody does.
    pub fn unknown<'a>(
        name: impl Into<Box<str>>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let name = name.into();
        let nearest = nearest(&name, known.into_iter());
        Self {
            offset: None,
            kind: UriErrorKind::Unknown { name, nearest },
        }
    }

    /// The medium finds something wrong by itself.
    pub fn refused(why: impl Into<Box<str>>) -> Self {
        Self {
            offset: None,
            kind: UriErrorKind::Refused { why: why.into() },
        }
    }

    /// This build lacks the medium with this scheme.
    pub(in crate::transport) fn absent_scheme(scheme: &str, why: &str) -> Self {
        Self {
            offset: Some(0),
            ..Self::refused(format!("{scheme}: {why}"))
        }
    }

    /// No medium has this scheme; media have those in `known`.
    pub(in crate::transport) fn unknown_scheme<'a>(
        scheme: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut schemes: Vec<Box<str>> = known.map(|known| format!("{known}:").into()).collect();
        schemes.sort_unstable();
        Self {
            offset: Some(0),
            kind: UriErrorKind::UnknownScheme {
                nearest: nearest(&format!("{scheme}:"), schemes.iter().map(|known| &**known)),
                scheme: scheme.into(),
                schemes,
            },
        }
    }

    /// Two settings exclude each other.
    pub fn conflict(
        first: impl Into<Box<str>>,
        second: impl Into<Box<str>>,
        why: impl Into<Box<str>>,
    ) -> Self {
        Self {
            offset: None,
            kind: UriErrorKind::Conflict {
                first: first.into(),
                second: second.into(),
                why: why.into(),
            },
        }
    }
}

/// The beginning of a message, if it is about one place.
struct Place(Option<usize>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |offset| write!(f, "byte {offset} of the URI: "))
    }
}

/// The end of a message that proposes a word.
struct Nearest<'a>(Option<&'a str>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
    }
}
