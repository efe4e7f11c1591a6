//! Media named by URI: `scheme://user:password@host:port,host:port/path?setting=value&…`, or
//! `scheme:path`.
//!
//! ```
//! use baler_common::transport::uri::Uri;
//!
//! let mut uri = Uri::parse("tcp://collector.example:9400?heartbeat=5s&window=4MiB")?;
//! assert_eq!(uri.scheme(), "tcp");
//! let heartbeat = uri.take_duration("heartbeat")?;
//! let window = uri.take_bytes("window")?;
//! uri.finish()?;
//! assert_eq!(heartbeat, Some(std::time::Duration::from_secs(5)));
//! assert_eq!(window, Some(4 << 20));
//! # Ok::<(), baler_common::transport::uri::UriError>(())
//! ```
//!
//! A connector takes its settings one by one and then calls [`Uri::finish`]. That reports an
//! unknown setting, together with the nearest known one. Credentials never appear in `Display`,
//! `Debug` or an error.
//!
//! It follows RFC 3986 with these exceptions: several hosts may follow each other, as in Kafka's
//! `bootstrap.servers` and MongoDB's URIs; a fragment is an error; the last `@` before the path
//! ends the credentials.

mod error;
mod parse;
mod settings;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use settings::{Settings, parse_bool, parse_number};

pub use error::UriError;
pub use settings::{parse_bytes, parse_duration, set};

/// The name of a medium, split into its parts.
#[derive(Clone)]
pub struct Uri {
    scheme: Box<str>,
    has_authority: bool,
    user: Option<Box<str>>,
    password: Option<Box<str>>,
    hosts: Vec<Host>,
    path: Box<str>,
    path_as_typed: Box<str>,
    path_offset: usize,
    /// The end of the path.
    path_end: usize,
    settings: Settings,
}

/// A host, and its port if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// A name or an address; an IPv6 address without its brackets.
    pub name: Box<str>,
    /// The port.
    pub port: Option<u16>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]", self.name)?;
        } else {
            f.write_str(&self.name)?;
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Uri {
    /// Returns the part before the first colon, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether `//` follows the scheme. `file:///folder` has an empty authority, `null:` has none.
    pub fn has_authority(&self) -> bool {
        self.has_authority
    }

    /// The user, decoded.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password, decoded. Keep it out of every output.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The hosts, as written; none for `scheme:path` and `scheme:///path`.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The only host.
    ///
    /// # Errors
    ///
    /// There is none, or more than one.
    pub fn host(&self) -> Result<&Host, UriError> {
        match self.hosts.as_slice() {
            [host] => Ok(host),
            hosts => {
                let found = hosts.len();
                let message = format!("exactly one host is needed here, {found} are given");
                Err(UriError::at(self.hosts_offset(), message))
            }
        }
    }

    /// The only host, which has a port and nothing after it.
    ///
    /// # Errors
    ///
    /// There is not one host, it has no port, or a path follows.
    pub fn address(&self) -> Result<Host, UriError> {
        let host = self.host()?;
        if host.port.is_none() {
            return Err(self.missing_after_hosts("the port"));
        }
        self.no_path()?;
        Ok(host.clone())
    }

    /// Checks that no host is given.
    ///
    /// # Errors
    ///
    /// There is one.
    pub fn no_host(&self) -> Result<(), UriError> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        let message = "no host can stand here";
        Err(UriError::at(self.hosts_offset(), message))
    }

    fn hosts_offset(&self) -> usize {
        self.scheme.len() + 1
    }

    /// Returns the decoded path, with its leading slash if it has one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path as it was typed, for messages.
    pub fn path_as_typed(&self) -> &str {
        &self.path_as_typed
    }

    /// Checks that no path is given; a single slash does not count.
    ///
    /// # Errors
    ///
    /// There is one.
    pub fn no_path(&self) -> Result<(), UriError> {
        if matches!(&*self.path, "" | "/") {
            return Ok(());
        }
        Err(UriError::at(self.path_offset, "no path can stand here"))
    }

    /// Returns the error that a part after the hosts is missing.
    pub fn missing_after_hosts(&self, what: impl fmt::Display) -> UriError {
        UriError {
            offset: Some(self.path_offset),
            ..UriError::missing(what)
        }
    }

    /// Returns the error that a part in the path, or at its end, is missing.
    pub fn missing_in_path(&self, what: impl fmt::Display) -> UriError {
        UriError {
            offset: Some(self.path_end),
            ..UriError::missing(what)
        }
    }

    /// Takes a setting as text.
    pub fn take_text(&mut self, name: &str) -> Option<Box<str>> {
        self.settings.take(name).map(|setting| setting.value)
    }

    /// Takes a path.
    pub fn take_path(&mut self, name: &str) -> Option<PathBuf> {
        self.take_text(name).map(|path| PathBuf::from(&*path))
    }

    /// Takes a setting that is `true`, `yes`, `on`, `1` or `false`, `no`, `off`, `0`; a setting
    /// without a value is true.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn take_bool(&mut self, name: &str) -> Result<Option<bool>, UriError> {
        self.settings.take_parsed(name, "true or false", parse_bool)
    }

    /// Takes a setting that is a whole number, in the range of `T`, such as `u16` or
    /// `NonZeroU32`.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn take_number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, UriError> {
        self.settings
            .take_parsed(name, "a whole number in its range", parse_number)
    }

    /// Takes a setting that is a number of bytes: `4096`, `64KiB`, `1MB`, `2GiB`.
    /// `kB`, `MB` and `GB` are powers of 1,000; `KiB`, `MiB` and `GiB` of 1,024.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn take_bytes(&mut self, name: &str) -> Result<Option<u64>, UriError> {
        self.take_bytes_in(name)
    }

    /// Takes a setting that is a number of bytes, in the range of `T`, such as `NonZeroU32`.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn take_bytes_in<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, UriError> {
        let expected = "a size in its range, such as 64KiB or 1MB";
        self.settings.take_parsed(name, expected, |text| {
            // Every type of number can parse plain digits.
            parse_number(&parse_bytes(text)?.to_string())
        })
    }

    /// Takes a setting that is a time: `200ms`, `5s`, `2m`, `1.5h`. Units are `ns`, `us`, `ms`,
    /// `s`, `m`, `h` and `d`; only 0 needs no unit.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn take_duration(&mut self, name: &str) -> Result<Option<std::time::Duration>, UriError> {
        self.settings
            .take_parsed(name, "a time such as 200ms or 5s", parse_duration)
    }

    /// Takes a setting that is one of several words.
    ///
    /// # Errors
    ///
    /// It is none of them; the error contains the nearest.
    pub fn take_choice<T: Clone>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, UriError> {
        self.settings.take_choice(name, choices)
    }

    /// Takes a setting that only its connector understands; `expected` describes its values.
    ///
    /// # Errors
    ///
    /// `parse` returns nothing.
    pub fn take_with<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, UriError> {
        self.settings.take_parsed(name, expected, parse)
    }

    /// Takes every remaining setting, with its name: for a client library's own settings.
    pub fn take_rest(&mut self) -> Vec<(Box<str>, Box<str>)> {
        self.settings.take_rest()
    }

    /// Checks that every setting was taken.
    ///
    /// # Errors
    ///
    /// One was not taken: it is unknown. The error contains the nearest known one.
    pub fn finish(self) -> Result<(), UriError> {
        self.settings.finish()
    }
}

/// The URI, with stars in place of a password and of settings whose name suggests a secret.
/// Settings that were taken are left out.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        if self.has_authority {
            f.write_str("//")?;
        }
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if self.password.is_some() {
                f.write_str(":***")?;
            }
            f.write_str("@")?;
        }
        for (at, host) in self.hosts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        // If a slash is missing, credentials are read as a part of the path.
        match self.path_as_typed.rsplit_once('@') {
            Some((before, after)) if !self.has_authority && before.contains(':') => {
                write!(f, "***@{after}{}", self.settings)
            }
            _ => write!(f, "{}{}", self.path_as_typed, self.settings),
        }
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uri({self})")
    }
}

#[cfg(test)]
mod tests;
