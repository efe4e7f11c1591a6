//! Text to [`Uri`].

use percent_encoding::percent_decode_str;

use super::settings::{Setting, Settings};
use super::{Host, Uri, UriError, UriErrorKind};

/// A piece of the text, and where it starts.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Piece<'a> {
    /// What stands before and after a character.
    fn split(self, at: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.split_once(at)?;
        Some(self.halves(before, after, at))
    }

    /// What stands before and after the last such character.
    fn split_last(self, at: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.rsplit_once(at)?;
        Some(self.halves(before, after, at))
    }

    fn halves(self, before: &'a str, after: &'a str, at: char) -> (Self, Self) {
        let offset = self.offset + before.len() + at.len_utf8();
        let before = Self {
            text: before,
            offset: self.offset,
        };
        (
            before,
            Self {
                text: after,
                offset,
            },
        )
    }

    /// The pieces between these characters.
    fn pieces(self, at: char) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let piece = rest?;
            let split = piece.split(at);
            rest = split.map(|(_, after)| after);
            Some(split.map_or(piece, |(before, _)| before))
        })
    }

    fn error(self, kind: UriErrorKind) -> UriError {
        UriError {
            offset: Some(self.offset),
            kind,
        }
    }

    /// The text with its percent signs resolved.
    fn decode(self) -> Result<Box<str>, UriError> {
        for (at, _) in self.text.match_indices('%') {
            let followed = self
                .text
                .as_bytes()
                .get(at + 1..at + 3)
                .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
            if !followed {
                return Err(UriError {
                    offset: Some(self.offset + at),
                    kind: UriErrorKind::Percent,
                });
            }
        }
        match percent_decode_str(self.text).decode_utf8() {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(self.error(UriErrorKind::Percent)),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Uri, UriError> {
    let whole = Piece { text, offset: 0 };
    if let Some((at, found)) = text
        .char_indices()
        .find(|(_, c)| *c == '#' || c.is_whitespace() || c.is_control())
    {
        let mut utf8 = [0; 4];
        let encoded = found
            .encode_utf8(&mut utf8)
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        return Err(UriError {
            offset: Some(at),
            kind: UriErrorKind::Character { found, encoded },
        });
    }
    let (scheme, rest) = whole
        .split(':')
        .filter(|(scheme, _)| is_scheme(scheme.text))
        .ok_or_else(|| whole.error(UriErrorKind::Scheme))?;
    let (rest, query) = match rest.split('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let mut uri = Uri {
        scheme: scheme.text.to_ascii_lowercase().into(),
        authority: false,
        user: None,
        password: None,
        hosts: Vec::new(),
        path: "".into(),
        path_as_typed: "".into(),
        path_offset: rest.offset,
        path_end: rest.offset + rest.text.len(),
        settings: query.map_or_else(|| Ok(Settings::default()), parse_settings)?,
    };
    let path = match rest.text.strip_prefix("//") {
        Some(after) => {
            uri.authority = true;
            let offset = rest.offset + 2;
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
            parse_authority(
                Piece {
                    text: authority,
                    offset,
                },
                &mut uri,
            )?;
            Piece {
                text: path,
                offset: offset + end,
            }
        }
        None => rest,
    };
    uri.path_offset = path.offset;
    uri.path_end = path.offset + path.text.len();
    uri.path = path.decode()?;
    uri.path_as_typed = path.text.into();
    Ok(uri)
}

/// RFC 3986, section 3.1: a letter, then letters, digits, `+`, `-` and `.`.
fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn parse_authority(authority: Piece<'_>, uri: &mut Uri) -> Result<(), UriError> {
    let hosts = match authority.split_last('@') {
        Some((credentials, hosts)) => {
            let (user, password) = match credentials.split(':') {
                Some((user, password)) => (user, Some(password)),
                None => (credentials, None),
            };
            uri.user = Some(user.decode()?);
            uri.password = password.map(Piece::decode).transpose()?;
            hosts
        }
        None => authority,
    };
    if hosts.text.is_empty() && uri.user.is_none() {
        return Ok(());
    }
    uri.hosts = hosts
        .pieces(',')
        .map(parse_host)
        .collect::<Result<_, _>>()?;
    Ok(())
}

fn parse_host(host: Piece<'_>) -> Result<Host, UriError> {
    let (name, port) = match host.text.strip_prefix('[') {
        // An IPv6 address has colons of its own.
        Some(_) => {
            let (name, rest) = host
                .split(']')
                .ok_or_else(|| host.error(UriErrorKind::Host))?;
            let port = match rest.text.strip_prefix(':') {
                Some(text) => Some(Piece {
                    text,
                    offset: rest.offset + 1,
                }),
                None if rest.text.is_empty() => None,
                None => return Err(rest.error(UriErrorKind::Host)),
            };
            let inner = Piece {
                text: name.text.trim_start_matches('['),
                offset: name.offset + 1,
            };
            if inner.text.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(inner.error(UriErrorKind::Host));
            }
            (inner, port)
        }
        None => match host.split(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if name.text.is_empty() {
        return Err(name.error(UriErrorKind::Host));
    }
    let port = port
        .map(|port| {
            let digits = port.text.bytes().all(|byte| byte.is_ascii_digit());
            let number = port.text.parse().ok().filter(|_| digits);
            number.ok_or_else(|| port.error(UriErrorKind::Port))
        })
        .transpose()?;
    Ok(Host {
        name: name.decode()?,
        port,
    })
}

fn parse_settings(query: Piece<'_>) -> Result<Settings, UriError> {
    let mut settings = Settings::default();
    for piece in query.pieces('&').filter(|piece| !piece.text.is_empty()) {
        let (name, value) = match piece.split('=') {
            Some((name, value)) => (name, Some(value)),
            None => (piece, None),
        };
        settings.push(Setting {
            name: name.decode()?,
            value: match value {
                Some(value) => value.decode()?,
                None => "".into(),
            },
            offset: name.offset,
            value_offset: value.map_or(name.offset, |value| value.offset),
        })?;
    }
    Ok(settings)
}
