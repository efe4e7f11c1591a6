//! A line of JSON as a list of its values, which keep their text, or value by value.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// Arrays and objects with deeper nesting are kept as text. With an optional at each level, a
/// schema then stays within its own limit.
const MAX_NESTING: usize = 6;

/// The memory for more values is not kept for the next line.
const KEPT_NODES: usize = 4_096;

/// A value of a line.
#[derive(Debug, Default)]
struct Node<'a> {
    /// The key, if it is a member of an object.
    key: Cow<'a, str>,
    text: &'a str,
    kind: JsonKind<'a>,
    /// The number of nodes inside it.
    inside: usize,
}

/// A JSON value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'n, 'a> {
    node: &'n Node<'a>,
    inside: &'n [Node<'a>],
}

#[derive(Debug, Default)]
pub(super) enum JsonKind<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    /// With the number of its items.
    Array(usize),
    /// With the number of its members.
    Object(usize),
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

/// The memory of a line, for the next one.
#[derive(Debug, Default)]
pub(super) struct JsonMemory(Vec<Node<'static>>);

impl<'n, 'a> Json<'n, 'a> {
    /// Returns the value as it was written.
    pub(super) fn text(self) -> &'a str {
        self.node.text
    }

    pub(super) fn kind(self) -> &'n JsonKind<'a> {
        &self.node.kind
    }

    /// Returns the key, if it is a member of an object.
    pub(super) fn key(self) -> &'n str {
        &self.node.key
    }

    /// Returns the items of an array, or the members of an object in the order of the line.
    pub(super) fn items(self) -> impl Iterator<Item = Self> + Clone {
        let mut rest = self.inside;
        std::iter::from_fn(move || {
            let (node, behind) = rest.split_first()?;
            let (inside, behind) = behind.split_at_checked(node.inside)?;
            rest = behind;
            Some(Self { node, inside })
        })
    }
}

/// Parses a line from its beginning to its end, as a whole or value by value. The functions that take
/// something return `None` if it does not come next.
#[derive(Debug)]
pub(super) struct JsonLine<'a> {
    text: &'a str,
    at: usize,
    /// Each value comes before the values inside it.
    nodes: Vec<Node<'a>>,
    /// Whether a text has half of a surrogate pair. JSON allows it, but text in UTF-8 cannot have
    /// it.
    pub(super) has_lone_surrogate: bool,
}

impl<'a> JsonLine<'a> {
    pub(super) fn new(text: &'a str, memory: JsonMemory) -> Self {
        Self {
            text,
            at: 0,
            nodes: memory.0,
            has_lone_surrogate: false,
        }
    }

    /// Returns the memory, empty.
    pub(super) fn into_memory(mut self) -> JsonMemory {
        if self.nodes.capacity() > KEPT_NODES {
            return JsonMemory::default();
        }
        self.nodes.clear();
        // An empty list is collected in its own memory.
        JsonMemory(self.nodes.into_iter().map(|_| Node::default()).collect())
    }

    /// Parses the whole line, also after some of its values were taken.
    pub(super) fn parse(&mut self) -> Result<(), serde_json::Error> {
        self.at = 0;
        if self.line().is_some() {
            return Ok(());
        }
        // This parser finds that a line is wrong; the other one says where.
        match serde_json::from_str::<&RawValue>(self.text) {
            Err(error) => Err(error),
            Ok(_) => Err(serde::de::Error::custom(
                "it is, but its parser does not take it",
            )),
        }
    }

    /// Returns the value that was parsed last.
    pub(super) fn json(&self) -> Option<Json<'_, 'a>> {
        let (node, inside) = self.nodes.split_first()?;
        Some(Json { node, inside })
    }

    fn line(&mut self) -> Option<()> {
        self.skip_space();
        self.any(0)?;
        self.end()
    }

    /// Takes the end of the line.
    pub(super) fn end(&mut self) -> Option<()> {
        self.skip_space();
        self.rest().is_empty().then_some(())
    }

    /// Takes any value; [`Self::json`] returns it. `depth` counts the arrays and objects around it.
    pub(super) fn any(&mut self, depth: usize) -> Option<()> {
        self.nodes.clear();
        self.value(Cow::default(), depth)
    }

    /// Takes a key that is written without escapes, and the colon behind it.
    pub(super) fn key(&mut self, key: &str) -> Option<()> {
        let rest = self
            .rest()
            .strip_prefix(b"\"")?
            .strip_prefix(key.as_bytes())?;
        rest.starts_with(b"\"").then_some(())?;
        self.at += key.len() + 2;
        self.colon()
    }

    fn colon(&mut self) -> Option<()> {
        self.skip_space();
        self.take(b':').then_some(())?;
        self.skip_space();
        Some(())
    }

    /// Returns the next byte.
    pub(super) fn next(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn value(&mut self, key: Cow<'a, str>, depth: usize) -> Option<()> {
        let (start, position) = (self.at, self.nodes.len());
        let kind = match self.rest().first()? {
            b'"' => JsonKind::Text(self.string()?),
            b'n' => self.word("null", JsonKind::Null)?,
            b't' => self.word("true", JsonKind::Bool(true))?,
            b'f' => self.word("false", JsonKind::Bool(false))?,
            b'[' | b'{' if depth == MAX_NESTING => {
                let rest = self.text.get(start..)?;
                let mut values = serde_json::Deserializer::from_str(rest).into_iter();
                let raw: &RawValue = values.next()?.ok()?;
                self.at += raw.get().len();
                JsonKind::Opaque
            }
            b'[' => JsonKind::Array(self.items(b']', |it| it.value(Cow::default(), depth + 1))?),
            b'{' => JsonKind::Object(self.items(b'}', |it| {
                let key = it.string()?;
                it.colon()?;
                it.value(key, depth + 1)
            })?),
            _ => JsonKind::Number(self.number()?),
        };
        let node = Node {
            key,
            text: self.text.get(start..self.at)?,
            kind,
            inside: self.nodes.iter().skip(position + 1).len(),
        };
        match self.nodes.get_mut(position) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        Some(())
    }

    /// Takes the values between brackets behind a place for all of them; returns their number.
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<usize> {
        self.nodes.push(Node::default());
        self.at += 1;
        self.skip_space();
        let mut items = 0;
        while !self.take(end) {
            if items > 0 {
                self.take(b',').then_some(())?;
                self.skip_space();
            }
            item(self)?;
            items += 1;
            self.skip_space();
        }
        Some(items)
    }

    /// Takes text in quotes. Text without escapes is borrowed.
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        self.take(b'"').then_some(())?;
        let mut has_escapes = false;
        loop {
            self.at += plain_bytes(self.rest());
            match self.rest().first()? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    self.at += 2;
                }
                _ => return None,
            }
        }
        let inner = Cow::Borrowed(self.text.get(start + 1..self.at)?);
        self.at += 1;
        if !has_escapes {
            return Some(inner);
        }
        let quoted = self.text.get(start..self.at)?;
        match serde_json::from_str(quoted) {
            Ok(unescaped) => Some(Cow::Owned(unescaped)),
            Err(_) => {
                // If it is JSON nevertheless, nothing else can be wrong with it.
                serde_json::from_str::<&RawValue>(quoted).ok()?;
                self.has_lone_surrogate = true;
                Some(inner)
            }
        }
    }

    pub(super) fn number(&mut self) -> Option<Number> {
        let start = self.at;
        self.take(b'-');
        let has_leading_zero = self.rest().first() == Some(&b'0');
        let digits = self.digits();
        if digits == 0 || has_leading_zero && digits > 1 {
            return None;
        }
        let mut is_whole = true;
        if self.take(b'.') {
            is_whole = false;
            (self.digits() > 0).then_some(())?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_whole = false;
            let _is_signed = self.take(b'-') || self.take(b'+');
            (self.digits() > 0).then_some(())?;
        }
        Some(Number::of(self.text.get(start..self.at)?, is_whole))
    }

    /// Takes all digits that come next; returns their number.
    fn digits(&mut self) -> usize {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        let digits = end.unwrap_or(rest.len());
        self.at += digits;
        digits
    }

    fn word(&mut self, word: &str, kind: JsonKind<'a>) -> Option<JsonKind<'a>> {
        let is_next = self.rest().starts_with(word.as_bytes());
        self.at += word.len();
        is_next.then_some(kind)
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.rest().first() {
            self.at += 1;
        }
    }

    /// Takes this byte if it comes next; returns whether it does.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.rest().first() == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

/// Returns the number of bytes before the first quote, backslash or control character. It looks at
/// eight bytes at a time, since text is most of a line.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let mut plain = 0;
    while let Some(word) = bytes.get(plain..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*word);
        // The lowest byte whose highest bit remains is the first one below `limit`.
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
        let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let stops = (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES << 7);
        if stops != 0 {
            return plain + (stops.trailing_zeros() / 8) as usize;
        }
        plain += 8;
    }
    let is_stop = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let rest = bytes.get(plain..).unwrap_or_default();
    plain + rest.iter().position(is_stop).unwrap_or(rest.len())
}

impl Number {
    fn of(text: &str, is_whole: bool) -> Self {
        // A whole number has no negative zero.
        if is_whole && text != "-0" {
            return match text.parse() {
                Ok(number) => Self::Signed(number),
                Err(_) => text.parse().map_or(Self::Inexact, Self::Unsigned),
            };
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
