//! The settings of a URI, taken one by one, and values with units.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{UriError, proposal};

/// Words that mark the name of a setting with a secret value.
const SECRETS: [&str; 9] = [
    "credential",
    "header",
    "jaas",
    "passphrase",
    "passwd",
    "password",
    "private",
    "secret",
    "token",
];

/// Stores a setting if it was given, and keeps the default otherwise.
pub fn set<T>(place: &mut T, taken: Option<T>) {
    if let Some(value) = taken {
        *place = value;
    }
}

/// One `name=value`.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) name: Box<str>,
    pub(super) value: Box<str>,
    /// Where the name starts.
    pub(super) offset: usize,
    /// Where the value starts.
    pub(super) value_offset: usize,
}

/// The remaining settings, and the requested names.
#[derive(Clone, Default)]
pub(super) struct Settings {
    left: Vec<Setting>,
    known: Vec<Box<str>>,
}

impl Settings {
    pub(super) fn push(&mut self, setting: Setting) -> Result<(), UriError> {
        if let Some(first) = self.left.iter().find(|first| first.name == setting.name) {
            let message = format!(
                "{} is given a second time; it was already given at byte {}",
                setting.name, first.offset
            );
            return Err(UriError::at(setting.offset, message));
        }
        self.left.push(setting);
        Ok(())
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Setting> {
        self.known.push(name.into());
        let at = self.left.iter().position(|left| *left.name == *name)?;
        Some(self.left.remove(at))
    }

    pub(super) fn take_parsed<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, UriError> {
        let Some(setting) = self.take(name) else {
            return Ok(None);
        };
        let value = parse(&setting.value).ok_or_else(|| {
            let (name, found) = (&setting.name, setting.shown());
            let message = format!("{name} is {found:?}, not {expected}");
            UriError::at(setting.value_offset, message)
        });
        value.map(Some)
    }

    pub(super) fn take_choice<T: Clone>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, UriError> {
        let Some(setting) = self.take(name) else {
            return Ok(None);
        };
        let words = || choices.iter().map(|(word, _)| *word);
        match choices.iter().find(|(word, _)| **word == *setting.value) {
            Some((_, choice)) => Ok(Some(choice.clone())),
            None => {
                let (name, found) = (&setting.name, setting.shown());
                let known = words().collect::<Vec<_>>().join(", ");
                let proposal = proposal(&setting.value, words());
                let message = format!("{name} is {found}, not one of {known}{proposal}");
                Err(UriError::at(setting.value_offset, message))
            }
        }
    }

    pub(super) fn take_rest(&mut self) -> Vec<(Box<str>, Box<str>)> {
        self.left
            .drain(..)
            .map(|setting| (setting.name, setting.value))
            .collect()
    }

    pub(super) fn finish(self) -> Result<(), UriError> {
        let Some(unknown) = self.left.into_iter().next() else {
            return Ok(());
        };
        Err(UriError {
            offset: Some(unknown.offset),
            ..UriError::unknown(unknown.name, self.known.iter().map(|known| &**known))
        })
    }
}

impl Setting {
    /// Returns the value, or stars if the name suggests a secret, even with a spelling error.
    fn shown(&self) -> &str {
        if is_secret(&self.name) {
            "***"
        } else {
            &self.value
        }
    }
}

/// Whether the name of a setting contains a word for a secret, even with a spelling error.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let resembles = |part: &str, word: &str| {
        let distance = strsim::damerau_levenshtein(part, word);
        distance <= word.len() / 3
    };
    SECRETS.iter().any(|word| {
        let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
        name.contains(word) || parts.any(|part| resembles(part, word))
    })
}

/// The remaining settings, from the question mark on.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, setting) in self.left.iter().enumerate() {
            let mark = if at == 0 { '?' } else { '&' };
            let value = setting.shown();
            let equals = if value.is_empty() { "" } else { "=" };
            write!(f, "{mark}{}{equals}{value}", setting.name)?;
        }
        Ok(())
    }
}

/// Factors of units of time to nanoseconds.
const TIMES: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Factors of units of size to bytes.
const SIZES: [(&str, u128); 9] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "" | "1" | "on" | "true" | "yes" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Digits and nothing else.
pub(super) fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A number of bytes: `4096`, `64KiB`, `1MB`; `kB`, `MB` and `GB` are powers of 1,000.
///
/// For settings outside a URI, such as flags.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let bytes = parse_quantity(&text.to_ascii_lowercase(), &SIZES)?;
    u64::try_from(bytes).ok()
}

/// A time: `200ms`, `5s`, `2m`, `1.5h`; units are `ns`, `us`, `ms`, `s`, `m`, `h` and `d`, and only
/// 0 needs no unit.
///
/// For settings outside a URI, such as flags.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let nanos = parse_quantity(text, &TIMES)?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// Digits, perhaps a point and more digits, then a unit. Parts below the smallest unit are cut off.
fn parse_quantity(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok().filter(|n| *n <= 9)?)?;
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let scaled = u128::from(whole)
        .checked_mul(scale)?
        .checked_add(u128::from(fraction))?;
    Some(scaled.checked_mul(*factor)? / scale)
}
