//! Splits a text of the record language into tokens.

use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::Arc;

use crate::Span;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Comment,
    End,
    Float,
    Int,
    /// Any other character, such as a brace.
    Punctuation,
    /// A string in quotation marks.
    Text,
    /// A comment or a string without an end, or a malformed name or number.
    Invalid(&'static str),
    /// A name or keyword.
    Word,
}

/// A token with its text and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    /// The number of line breaks since the token before.
    pub(crate) breaks_before: u32,
}

impl Token<'_> {
    pub(crate) fn span(&self) -> Span {
        Span::new(self.start, self.start + self.text.len())
    }
}

/// Returns all tokens, with comments and without an [`End`](TokenKind::End).
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    Lexer {
        text,
        chars: text.char_indices().peekable(),
        breaks_before: 0,
        strings_end_in_line: false,
    }
}

#[derive(Debug)]
struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    breaks_before: u32,
    /// A string had no end. Later ones are looked for in their line only, so that the time stays
    /// linear.
    strings_end_in_line: bool,
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.breaks_before = 0;
        let is_blank = |char: char| char.is_whitespace() || char == '\u{feff}';
        while let Some((_, char)) = self.chars.next_if(|it| is_blank(it.1)) {
            self.breaks_before += u32::from(char == '\n');
        }
        let (start, first) = self.chars.next()?;
        let kind = match first {
            '/' if self.accept('/') => {
                while self.chars.next_if(|it| it.1 != '\n').is_some() {}
                TokenKind::Comment
            }
            '/' if self.accept('*') => self.comment(),
            '"' | '\'' => self.string(start, first),
            '+' | '-' | '.' if self.is_next(|it| it.is_ascii_digit()) => self.number(first),
            '0'..='9' => self.number(first),
            '^' if self.is_next(is_word) => self.word(true),
            _ if is_part_of_name(first) => self.word(is_word(first)),
            _ => TokenKind::Punctuation,
        };
        let mut end = self.position();
        let mut text = self.slice(start, end);
        if kind == TokenKind::Comment && text.starts_with("//") {
            text = text.trim_end();
            end = start + text.len();
        }
        // The only keyword with a hyphen.
        if text == "auto" && self.slice(end, self.text.len()).starts_with("-increment") {
            self.accept('-');
            self.word(true);
            end = self.position();
            text = self.slice(start, end);
        }
        Some(Token {
            kind,
            text,
            start,
            breaks_before: self.breaks_before,
        })
    }
}

impl<'a> Lexer<'a> {
    fn position(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |it| it.0)
    }

    #[expect(clippy::string_slice, reason = "both are positions of characters")]
    fn slice(&self, start: usize, end: usize) -> &'a str {
        &self.text[start..end]
    }

    fn is_next(&mut self, is_it: impl Fn(char) -> bool) -> bool {
        self.chars.peek().is_some_and(|it| is_it(it.1))
    }

    fn accept(&mut self, char: char) -> bool {
        self.chars.next_if(|it| it.1 == char).is_some()
    }

    fn digits(&mut self) {
        while self.chars.next_if(|it| it.1.is_ascii_digit()).is_some() {}
    }

    fn comment(&mut self) -> TokenKind {
        while let Some((_, char)) = self.chars.next() {
            if char == '*' && self.accept('/') {
                return TokenKind::Comment;
            }
        }
        TokenKind::Invalid("a comment without an end")
    }

    fn string(&mut self, start: usize, quote: char) -> TokenKind {
        while let Some((_, char)) = self.chars.next() {
            match char {
                '\\' => {
                    self.chars.next();
                }
                '\n' if self.strings_end_in_line => break,
                _ if char == quote => return TokenKind::Text,
                _ => {}
            }
        }
        if !self.strings_end_in_line {
            // The rest of the file may be valid.
            self.strings_end_in_line = true;
            let rest = self.slice(start, self.text.len());
            let end = start + rest.find('\n').unwrap_or(rest.len());
            self.chars = self.text.char_indices().peekable();
            while self.chars.next_if(|it| it.0 < end).is_some() {}
        }
        TokenKind::Invalid("a string without an end")
    }

    fn number(&mut self, first: char) -> TokenKind {
        let mut kind = TokenKind::Int;
        self.digits();
        if first == '.' || self.accept('.') {
            kind = TokenKind::Float;
            self.digits();
        }
        let mut ahead = self.chars.clone();
        let is_exponent = ahead.next_if(|it| matches!(it.1, 'e' | 'E')).is_some();
        ahead.next_if(|it| matches!(it.1, '+' | '-'));
        if is_exponent && ahead.peek().is_some_and(|it| it.1.is_ascii_digit()) {
            kind = TokenKind::Float;
            self.chars = ahead;
            self.digits();
        }
        if self.accept('f') {
            kind = TokenKind::Float;
        }
        if self.is_next(is_part_of_name) {
            self.word(true);
            return TokenKind::Invalid("a malformed number");
        }
        kind
    }

    /// Takes the rest of a word. `is_valid` is whether its first character may be in a word.
    fn word(&mut self, mut is_valid: bool) -> TokenKind {
        while let Some((_, char)) = self.chars.next_if(|it| is_part_of_name(it.1)) {
            is_valid &= is_word(char);
        }
        match is_valid {
            true => TokenKind::Word,
            false => TokenKind::Invalid("a name with a character other than A-Z, a-z, 0-9 and _"),
        }
    }
}

/// Whether somebody may have meant a character as a part of a name.
fn is_part_of_name(char: char) -> bool {
    is_word(char) || char.is_alphanumeric()
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Returns the text of a comment that begins with `/**`, without the asterisks at its edges.
pub(crate) fn doc_text(comment: &str) -> Option<Arc<str>> {
    let inner = comment.strip_prefix("/**")?.strip_suffix("*/")?;
    // A line of asterisks begins a licence, not documentation.
    if inner.starts_with('*') {
        return None;
    }
    let lines = inner.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix('*').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

/// Returns the text of a string without its quotation marks, with escape sequences replaced. A
/// sequence without a meaning stands for the character behind the backslash.
pub(crate) fn unescaped(quoted: &str) -> String {
    let mut chars = quoted.chars();
    chars.next();
    chars.next_back();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        text.push(match char {
            '\\' => match chars.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('u') => {
                    let code = chars.as_str().get(..4);
                    let code = code.and_then(|it| u32::from_str_radix(it, 16).ok());
                    match code.and_then(char::from_u32) {
                        Some(char) => {
                            chars.nth(3);
                            char
                        }
                        None => 'u',
                    }
                }
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}
