//! The text of an expression -> tokens.

use std::borrow::Cow;

use super::value::Value;

/// Longer symbols first.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

/// Longer quotes first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// A text that is no expression.
#[derive(Debug)]
pub(super) struct SyntaxError {
    offset: usize,
    message: String,
}

impl SyntaxError {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }

    /// Returns the message with its place in the text.
    pub(super) fn in_text(&self, text: &str) -> String {
        let before = text.char_indices().take_while(|(at, _)| *at < self.offset);
        let (line, column) = before.fold((1, 1), |(line, column), (_, letter)| match letter {
            '\n' => (line + 1, 1),
            _ => (line, column + 1),
        });
        format!("line {line}, column {column}: {}", self.message)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Token<'t> {
    Name(&'t str),
    /// An integer without its sign. The number 2^63 needs a minus before it.
    Integer(u64),
    Literal(Value<'static>),
    Symbol(&'static str),
    End,
}

#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    rest: &'t str,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, rest: text }
    }

    /// Returns the next token and its offset.
    ///
    /// # Errors
    ///
    /// The text has no token here.
    pub(super) fn token(&mut self) -> Result<(usize, Token<'t>), SyntaxError> {
        self.skip_blanks();
        let (offset, mut letters) = (self.offset(), self.rest.chars());
        let Some(first) = letters.next() else {
            return Ok((offset, Token::End));
        };
        let is_fraction = first == '.' && letters.next().is_some_and(|it| it.is_ascii_digit());
        let token = if first.is_ascii_digit() || is_fraction {
            self.number(offset)?
        } else if let Some(text) = self.quoted()? {
            Token::Literal(text)
        } else if first.is_ascii_alphabetic() || first == '_' {
            match self.take_while(|it| it.is_ascii_alphanumeric() || it == '_') {
                "true" => Token::Literal(Value::Bool(true)),
                "false" => Token::Literal(Value::Bool(false)),
                "null" => Token::Literal(Value::Null),
                "in" => Token::Symbol("in"),
                name => Token::Name(name),
            }
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|it| self.take(it)) {
            Token::Symbol(symbol)
        } else {
            let hint = match first {
                '=' | '&' | '|' => format!("; write `{first}{first}`"),
                _ => String::new(),
            };
            let message = format!("`{first}` has no meaning here{hint}");
            return Err(SyntaxError::new(offset, message));
        };
        Ok((offset, token))
    }

    fn offset(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn skip_blanks(&mut self) {
        self.take_while(is_blank);
        while self.take("//") {
            self.take_while(|it| it != '\n');
            self.take_while(is_blank);
        }
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|it| !accepts(it));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn take_char(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let first = letters.next();
        self.rest = letters.as_str();
        first
    }

    fn number(&mut self, offset: usize) -> Result<Token<'t>, SyntaxError> {
        let text = self.rest;
        let is_hexadecimal = self.take("0x");
        let radix = if is_hexadecimal { 16 } else { 10 };
        let digits = self.take_while(|it| it.is_digit(radix));
        if is_hexadecimal && digits.is_empty() {
            return Err(SyntaxError::new(offset, "digits are missing"));
        }
        let is_double = !is_hexadecimal && {
            let has_fraction = self.take_digits_behind(&["."]);
            let has_exponent = self.take_digits_behind(&["e", "E", "e+", "e-", "E+", "E-"]);
            has_fraction || has_exponent
        };
        let (text, _) = text.split_at(text.len() - self.rest.len());
        let invalid = || SyntaxError::new(offset, format!("`{text}` does not fit into 64 bits"));
        if is_double {
            let value = text.parse().ok().filter(|it: &f64| it.is_finite());
            return Ok(Token::Literal(Value::Double(value.ok_or_else(invalid)?)));
        }
        let value = u64::from_str_radix(digits, radix).map_err(|_| invalid())?;
        Ok(match self.take("u") || self.take("U") {
            true => Token::Literal(Value::Uint(value)),
            false => Token::Integer(value),
        })
    }

    /// Takes one of the prefixes and the digits behind it, if there are any.
    fn take_digits_behind(&mut self, prefixes: &[&str]) -> bool {
        let is_digit = |it: char| it.is_ascii_digit();
        let mut rests = prefixes
            .iter()
            .filter_map(|prefix| self.rest.strip_prefix(prefix));
        let Some(digits) = rests.find(|rest| rest.starts_with(is_digit)) else {
            return false;
        };
        self.rest = digits;
        self.take_while(is_digit);
        true
    }

    /// Takes a string or bytes, if there are any.
    fn quoted(&mut self) -> Result<Option<Value<'static>>, SyntaxError> {
        let (start, text) = (self.offset(), self.rest);
        let is_bytes = self.take("b") || self.take("B");
        let is_raw = self.take("r") || self.take("R");
        let Some(quote) = QUOTES.into_iter().find(|it| self.take(it)) else {
            self.rest = text;
            return Ok(None);
        };
        let mut content = Vec::new();
        while !self.take(quote) {
            let offset = self.offset();
            match self.take_char() {
                Some('\\') if !is_raw => self.escape(offset, is_bytes, &mut content)?,
                Some('\n' | '\r') if quote.len() == 1 => {
                    let message = "a text of several lines has three quotes at each end";
                    return Err(SyntaxError::new(offset, message));
                }
                Some('\r') => {
                    self.take("\n");
                    content.push(b'\n');
                }
                Some(letter) => push(letter, &mut content),
                None => {
                    let message = format!("the text has no {quote} at its end");
                    return Err(SyntaxError::new(start, message));
                }
            }
        }
        if is_bytes {
            return Ok(Some(Value::Bytes(Cow::Owned(content))));
        }
        let content = String::from_utf8(content);
        let content = content.map_err(|error| SyntaxError::new(start, error.to_string()))?;
        Ok(Some(Value::String(Cow::Owned(content))))
    }

    /// Takes an escape sequence without its backslash, and appends its meaning.
    fn escape(
        &mut self,
        offset: usize,
        is_bytes: bool,
        content: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let invalid = || SyntaxError::new(offset, "this escape sequence has no meaning");
        let escaped = self.rest;
        let letter = self.take_char().ok_or_else(invalid)?;
        let plain = match letter {
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            '\\' | '\'' | '"' | '`' | '?' => Some(letter),
            _ => None,
        };
        if let Some(letter) = plain {
            push(letter, content);
            return Ok(());
        }
        let (digits, radix) = match letter {
            'x' | 'X' => (self.rest.get(..2), 16),
            'u' if !is_bytes => (self.rest.get(..4), 16),
            'U' if !is_bytes => (self.rest.get(..8), 16),
            '0'..='3' => (escaped.get(..3), 8),
            _ => return Err(invalid()),
        };
        let digits = digits.filter(|it| it.chars().all(|digit| digit.is_digit(radix)));
        let digits = digits.ok_or_else(invalid)?;
        let code = u32::from_str_radix(digits, radix).map_err(|_| invalid())?;
        match is_bytes {
            true => content.push(u8::try_from(code).map_err(|_| invalid())?),
            false => push(char::from_u32(code).ok_or_else(invalid)?, content),
        }
        // The first of octal digits is taken already.
        let left = digits.len() - usize::from(radix == 8);
        self.rest = self.rest.split_at(left).1;
        Ok(())
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n' | '\x0c')
}

fn push(letter: char, content: &mut Vec<u8>) {
    content.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}
