//! Parses text to a [`Uri`], and describes errors in it.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::settings::{Setting, Settings, nearest};
use super::{Host, Uri};

/// The whole text of a URI. The arguments of its methods are pieces of it.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

/// The errors of a piece.
pub(super) const NO_SCHEME: &str = "a URI starts with a scheme and a colon, such as tcp: or file:";
pub(super) const BAD_HOST: &str = "a host is missing or malformed";
pub(super) const BAD_PORT: &str = "the port must be a number from 0 to 65535";
pub(super) const BAD_PERCENT: &str =
    "% must be followed by two hexadecimal digits, and the text must be UTF-8";

pub(super) fn parse(text: &str) -> Result<Uri, UriError> {
    let whole = Text(text);
    if let Some((at, found)) = text
        .char_indices()
        .find(|(_, c)| *c == '#' || c.is_whitespace() || c.is_control())
    {
        let mut utf8 = [0; 4];
        let encoded: String = found
            .encode_utf8(&mut utf8)
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let message = format!("{found:?} cannot stand here; write it as {encoded}");
        return Err(UriError::at(at, message));
    }
    let (scheme, rest) = text
        .split_once(':')
        .filter(|(scheme, _)| is_scheme(scheme))
        .ok_or_else(|| whole.error(text, NO_SCHEME))?;
    let (rest, query) = split_optional(rest, '?');
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or((after, after));
            (Some(authority), path)
        }
        None => (None, rest),
    };
    let (credentials, hosts) = match authority.unwrap_or_default().rsplit_once('@') {
        Some((credentials, hosts)) => (Some(split_optional(credentials, ':')), hosts),
        None => (None, authority.unwrap_or_default()),
    };
    let password = credentials.and_then(|(_, password)| password);
    let hosts = if hosts.is_empty() && credentials.is_none() {
        Vec::new()
    } else {
        let hosts = hosts.split(',').map(|host| whole.host(host));
        hosts.collect::<Result<_, _>>()?
    };
    let path_offset = whole.offset(path);
    Ok(Uri {
        scheme: scheme.to_ascii_lowercase().into(),
        authority: authority.is_some(),
        user: credentials
            .map(|(user, _)| whole.decode(user))
            .transpose()?,
        password: password.map(|it| whole.decode(it)).transpose()?,
        hosts,
        path: whole.decode(path)?,
        path_as_typed: path.into(),
        path_offset,
        path_end: path_offset + path.len(),
        settings: whole.settings(query.unwrap_or_default())?,
    })
}

/// Returns the text before a character, and the text after it if there is one.
fn split_optional(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// RFC 3986, section 3.1: a letter, then letters, digits, `+`, `-` and `.`.
fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

impl Text<'_> {
    /// Returns the position of a piece.
    fn offset(self, piece: &str) -> usize {
        let from = self.0.as_ptr().addr();
        piece.as_ptr().addr().saturating_sub(from)
    }

    fn error(self, piece: &str, message: &str) -> UriError {
        UriError::at(self.offset(piece), message)
    }

    /// Returns a piece with its percent signs decoded.
    fn decode(self, piece: &str) -> Result<Box<str>, UriError> {
        for (at, _) in piece.match_indices('%') {
            let two = piece.as_bytes().get(at + 1..at + 3);
            if !two.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)) {
                return Err(UriError::at(self.offset(piece) + at, BAD_PERCENT));
            }
        }
        match percent_decode_str(piece).decode_utf8() {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(self.error(piece, BAD_PERCENT)),
        }
    }

    fn host(self, host: &str) -> Result<Host, UriError> {
        let (name, port) = match host.strip_prefix('[') {
            // An IPv6 address has colons of its own.
            Some(inner) => {
                let (name, rest) = inner
                    .split_once(']')
                    .ok_or_else(|| self.error(host, BAD_HOST))?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(self.error(rest, BAD_HOST));
                }
                if name.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(self.error(name, BAD_HOST));
                }
                (name, port)
            }
            None => split_optional(host, ':'),
        };
        if name.is_empty() {
            return Err(self.error(name, BAD_HOST));
        }
        let port = port.map(|port| {
            super::settings::parse_number(port).ok_or_else(|| self.error(port, BAD_PORT))
        });
        Ok(Host {
            port: port.transpose()?,
            name: self.decode(name)?,
        })
    }

    fn settings(self, query: &str) -> Result<Settings, UriError> {
        let mut settings = Settings::default();
        for piece in query.split('&').filter(|piece| !piece.is_empty()) {
            let (name, value) = split_optional(piece, '=');
            settings.push(Setting {
                name: self.decode(name)?,
                value: self.decode(value.unwrap_or_default())?,
                offset: self.offset(name),
                value_offset: self.offset(value.unwrap_or(name)),
            })?;
        }
        Ok(settings)
    }
}

/// A URI is wrong. The text of the error never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", Place(*.offset))]
pub struct UriError {
    /// The position in the text, in bytes; `None` if there is no single position.
    pub offset: Option<usize>,
    /// The mistake, and its correction.
    pub message: Box<str>,
}

impl UriError {
    /// Something is wrong at this byte of the text.
    pub(in crate::transport) fn at(offset: usize, message: impl Into<Box<str>>) -> Self {
        Self {
            offset: Some(offset),
            ..Self::refused(message)
        }
    }

    /// A connector lacks a required part of its URI, at no particular position.
    pub fn missing(what: impl fmt::Display) -> Self {
        Self::refused(format!("{what} is missing"))
    }

    /// A setting is unknown; `known` are the known ones.
    pub fn unknown<'a>(name: impl AsRef<str>, known: impl IntoIterator<Item = &'a str>) -> Self {
        let name = name.as_ref();
        let proposal = proposal(name, known.into_iter());
        Self::refused(format!("the setting {name} is unknown{proposal}"))
    }

    /// The medium itself refuses the URI.
    pub fn refused(why: impl Into<Box<str>>) -> Self {
        Self {
            offset: None,
            message: why.into(),
        }
    }

    /// This build lacks the medium with this scheme.
    pub(in crate::transport) fn absent_scheme(scheme: &str, why: &str) -> Self {
        Self::at(0, format!("{scheme}: {why}"))
    }

    /// No medium has this scheme; `known` are the schemes of all media.
    pub(in crate::transport) fn unknown_scheme<'a>(
        scheme: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut schemes: Vec<_> = known.map(|known| format!("{known}:")).collect();
        schemes.sort_unstable();
        let proposal = proposal(&format!("{scheme}:"), schemes.iter().map(String::as_str));
        let known = schemes.join(", ");
        let message = format!("{scheme}: is no known scheme, use one of {known}{proposal}");
        Self::at(0, message)
    }

    /// Two settings exclude each other.
    pub fn conflict(
        first: impl fmt::Display,
        second: impl fmt::Display,
        why: impl fmt::Display,
    ) -> Self {
        Self::refused(format!("{first} conflicts with {second}: {why}"))
    }
}

/// The beginning of a message, if it has a position.
struct Place(Option<usize>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |offset| write!(f, "byte {offset} of the URI: "))
    }
}

/// The end of a message about a word: the most similar known word, if there is one.
pub(super) fn proposal<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}
