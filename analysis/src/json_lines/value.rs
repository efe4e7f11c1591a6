//! A line of JSON as a tree that keeps the text of each value.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Arrays and objects nested deeper than this are kept as text: with an optional at each level, a
/// schema then stays within its own limit.
const MAX_NESTING: usize = 6;

/// A JSON value.
#[derive(Debug)]
pub(super) struct Json<'a> {
    /// The value as it was written.
    pub(super) text: &'a str,
    pub(super) kind: JsonKind<'a>,
}

#[derive(Debug)]
pub(super) enum JsonKind<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of the line.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// It is nested too deep to be taken apart.
    Opaque,
}

/// A number that a field can hold without changing it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Signed(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    /// None of these is equal to what was written.
    Inexact,
}

impl<'a> Json<'a> {
    /// Takes a line apart.
    pub(super) fn parse(line: &'a str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(line)?;
        Self::of(raw, 0)
    }

    fn of(raw: &'a RawValue, depth: usize) -> Result<Self, serde_json::Error> {
        let text = raw.get();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let kind = match text.as_bytes().first() {
            Some(b'n') => JsonKind::Null,
            Some(b't' | b'f') => JsonKind::Bool(text == "true"),
            Some(b'"') => JsonKind::Text(deserializer.deserialize_str(Text)?),
            Some(b'[' | b'{') if depth == MAX_NESTING => JsonKind::Opaque,
            Some(b'[') => JsonKind::Array(deserializer.deserialize_seq(Items { depth })?),
            Some(b'{') => JsonKind::Object(deserializer.deserialize_map(Members { depth })?),
            _ => JsonKind::Number(Number::of(text)),
        };
        Ok(Self { text, kind })
    }
}

/// Borrows text without escapes.
struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

/// The items of an array at this depth.
struct Items {
    depth: usize,
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<Json<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(raw) = from.next_element()? {
            items.push(Json::of(raw, self.depth + 1).map_err(A::Error::custom)?);
        }
        Ok(items)
    }
}

/// The members of an object at this depth.
struct Members {
    depth: usize,
}

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, Json<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = from.next_key_seed(Text)? {
            let value = Json::of(from.next_value()?, self.depth + 1);
            members.push((key, value.map_err(A::Error::custom)?));
        }
        Ok(members)
    }
}

impl Number {
    fn of(text: &str) -> Self {
        let is_whole = !text.contains(['.', 'e', 'E']);
        // A whole number has no negative zero.
        if is_whole && text != "-0" {
            let signed = text.parse().map(Self::Signed);
            let unsigned = || text.parse().map(Self::Unsigned);
            return signed.or_else(|_| unsigned()).unwrap_or(Self::Inexact);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && is_exact(text, number) => Self::Float(number),
            _ => Self::Inexact,
        }
    }
}

/// Whether a float, written in its shortest form, is the decimal number in the text.
fn is_exact(text: &str, number: f64) -> bool {
    let Some(written) = Decimal::of(text) else {
        return false;
    };
    // Any 15 digits survive in 53 bits, unless the number is too small for all of the bits.
    (written.digits.len() <= 15 && (number.abs() > 1e-300 || written.digits.is_empty()))
        || Decimal::of(&format!("{number:e}")) == Some(written)
}

/// A decimal number: its digits without zeros at either end, and the power of ten of the last one.
#[derive(PartialEq)]
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().ok()?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let digits = digits.trim_start_matches('0').to_owned();
        Some(match digits.is_empty() {
            true => Self {
                digits,
                exponent: 0,
            },
            false => Self {
                digits,
                exponent: exponent.checked_add(zeros)?,
            },
        })
    }
}
