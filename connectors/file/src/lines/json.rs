//! A line of JSON as a tree that keeps the text of each value.

use std::borrow::Cow;

use memchr::memchr2;
use serde_json::value::RawValue;

/// Arrays and objects with deeper nesting are kept as text. With an optional at each level, a
/// schema then stays within its own limit.
const MAX_NESTING: usize = 6;

/// A line.
#[derive(Debug)]
pub(super) struct JsonLine<'a> {
    pub(super) json: Json<'a>,
    /// Whether a text has half of a surrogate pair. JSON allows it, but text in UTF-8 cannot have
    /// it.
    pub(super) has_lone_surrogate: bool,
}

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
    /// It is nested too deep to be parsed.
    Opaque,
}

/// A number that a field can hold without changing it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Signed(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    /// None of these equals the written number.
    Inexact,
}

impl<'a> JsonLine<'a> {
    /// Parses a line.
    pub(super) fn parse(line: &'a str) -> Result<Self, serde_json::Error> {
        let valid: &RawValue = serde_json::from_str(line)?;
        let mut rest = Rest {
            text: valid.get(),
            has_lone_surrogate: false,
        };
        Ok(Self {
            json: rest.value(0)?,
            has_lone_surrogate: rest.has_lone_surrogate,
        })
    }
}

/// The rest of a valid JSON text that was not parsed yet.
struct Rest<'a> {
    text: &'a str,
    has_lone_surrogate: bool,
}

impl<'a> Rest<'a> {
    /// Takes the value at the beginning; `depth` counts the arrays and objects around it.
    fn value(&mut self, depth: usize) -> Result<Json<'a>, serde_json::Error> {
        let before = self.text;
        let kind = match self.first() {
            Some(b'"') => JsonKind::Text(self.string()),
            Some(b'n') => self.skip(4, JsonKind::Null),
            Some(b't') => self.skip(4, JsonKind::Bool(true)),
            Some(b'f') => self.skip(5, JsonKind::Bool(false)),
            Some(b'[' | b'{') if depth == MAX_NESTING => {
                let mut values = serde_json::Deserializer::from_str(before).into_iter();
                let raw: Option<&RawValue> = values.next().transpose()?;
                self.skip(raw.map_or(0, |raw| raw.get().len()), JsonKind::Opaque)
            }
            Some(b'[') => {
                let mut items = Vec::new();
                while self.has_next() {
                    items.push(self.value(depth + 1)?);
                }
                JsonKind::Array(items)
            }
            Some(b'{') => {
                let mut members = Vec::new();
                while self.has_next() {
                    let key = self.string();
                    self.text = self.text.trim_start_matches([':', ' ', '\t', '\n', '\r']);
                    members.push((key, self.value(depth + 1)?));
                }
                JsonKind::Object(members)
            }
            _ => {
                let is_part = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'E' | b'e');
                let end = before.bytes().position(|byte| !is_part(byte));
                let number = self.take(end.unwrap_or(before.len()));
                JsonKind::Number(Number::of(number))
            }
        };
        let length = before.len() - self.text.len();
        let (text, _) = before.split_at(length);
        Ok(Json { text, kind })
    }

    /// Takes text in quotes. Text without escapes is borrowed.
    fn string(&mut self) -> Cow<'a, str> {
        let (mut end, mut has_escapes) = (1, false);
        let bytes = self.text.as_bytes();
        while let Some(next) = bytes.get(end..).and_then(|it| memchr2(b'"', b'\\', it)) {
            end += next + 1;
            if bytes.get(end - 1) == Some(&b'"') {
                break;
            }
            has_escapes = true;
            end += 1;
        }
        let quoted = self.take(end);
        let (_, inner) = quoted.split_at(1);
        let (inner, _) = inner.split_at(end - 2);
        let inner = Cow::Borrowed(inner);
        if !has_escapes {
            return inner;
        }
        // The text is valid JSON, so nothing else can be wrong with it.
        let unescaped = serde_json::from_str(quoted).map(Cow::Owned);
        unescaped.unwrap_or_else(|_| {
            self.has_lone_surrogate = true;
            inner
        })
    }

    /// Advances to the next item of an array or an object; returns whether there is one.
    fn has_next(&mut self) -> bool {
        let is_closing = |rest: &Self| matches!(rest.first(), Some(b']' | b'}'));
        self.text = self.text.trim_ascii_start();
        if !is_closing(self) {
            // The opening bracket or a comma.
            self.take(1);
            self.text = self.text.trim_ascii_start();
        }
        let has_next = !is_closing(self);
        self.take(usize::from(!has_next));
        has_next
    }

    fn first(&self) -> Option<u8> {
        self.text.bytes().next()
    }

    fn skip(&mut self, bytes: usize, kind: JsonKind<'a>) -> JsonKind<'a> {
        self.take(bytes);
        kind
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.text.split_at(bytes);
        self.text = rest;
        taken
    }
}

impl Number {
    fn of(text: &str) -> Self {
        // A whole number has no negative zero.
        if text != "-0" {
            if let Ok(number) = text.parse() {
                return Self::Signed(number);
            }
            if !text.contains(['.', 'e', 'E']) {
                return text.parse().map_or(Self::Inexact, Self::Unsigned);
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && is_exact(text, number) => Self::Float(number),
            _ => Self::Inexact,
        }
    }
}

/// Whether a float, written in its shortest form, equals the decimal number in the text.
fn is_exact(text: &str, number: f64) -> bool {
    // Any 15 digits fit into 53 bits, unless the number is too small for all bits. One more
    // character is the point or the exponent's letter.
    (text.len() <= 16 && number.abs() > 1e-300)
        || Decimal::of(text).is_some_and(|it| Decimal::of(&format!("{number:e}")) == Some(it))
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
