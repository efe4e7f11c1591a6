//! Parses text to a [`Uri`].

use std::str::FromStr;

use percent_encoding::percent_decode_str;

use super::error::UriError;
use super::settings::{Setting, Settings, parse_number};
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

impl Uri {
    /// Parses a URI.
    ///
    /// # Errors
    ///
    /// The text is not a URI, or contains a setting twice; the error has the position.
    pub fn parse(text: &str) -> Result<Self, UriError> {
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
                let (authority, path) = after.split_at(end);
                (Some(authority), path)
            }
            None => (None, rest),
        };
        let (credentials, hosts) = match authority.and_then(|it| it.rsplit_once('@')) {
            Some((credentials, hosts)) => (Some(split_optional(credentials, ':')), Some(hosts)),
            None => (None, authority),
        };
        let password = credentials.and_then(|(_, password)| password);
        let hosts = match hosts {
            Some(hosts) if !hosts.is_empty() || credentials.is_some() => {
                let hosts = hosts.split(',').map(|host| whole.host(host));
                hosts.collect::<Result<Vec<_>, _>>()?
            }
            _ => Vec::new(),
        };
        let path_offset = whole.offset(path);
        Ok(Self {
            scheme: scheme.to_ascii_lowercase().into(),
            has_authority: authority.is_some(),
            user: credentials
                .map(|(user, _)| whole.decode(user))
                .transpose()?,
            password: password.map(|it| whole.decode(it)).transpose()?,
            hosts,
            path: whole.decode(path)?,
            path_as_typed: path.into(),
            path_offset,
            path_end: path_offset + path.len(),
            settings: whole.settings(query)?,
        })
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        Self::parse(text)
    }
}

/// Reads a string. The reverse does not exist, because a displayed URI has no secrets.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Uri {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
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
    /// Returns the position of a piece, which must be a slice of this text.
    fn offset(self, piece: &str) -> usize {
        let from = self.0.as_ptr().addr();
        piece.as_ptr().addr() - from
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
        let port = port.map(|port| parse_number(port).ok_or_else(|| self.error(port, BAD_PORT)));
        Ok(Host {
            port: port.transpose()?,
            name: self.decode(name)?,
        })
    }

    fn settings(self, query: Option<&str>) -> Result<Settings, UriError> {
        let mut settings = Settings::default();
        let pieces = query.into_iter().flat_map(|query| query.split('&'));
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let (name, value) = split_optional(piece, '=');
            settings.push(Setting {
                name: self.decode(name)?,
                value: match value {
                    Some(value) => self.decode(value)?,
                    None => Box::default(),
                },
                offset: self.offset(name),
                value_offset: self.offset(value.unwrap_or(name)),
            })?;
        }
        Ok(settings)
    }
}
