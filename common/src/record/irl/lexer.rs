//! Splits a text into tokens.

use std::iter::Peekable;
use std::str::CharIndices;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    End,
    Number,
    /// Any other character, such as a brace.
    Sign(char),
    /// A string in quotation marks.
    Text,
    /// A name or keyword.
    Word(&'a str),
    /// A string or a comment does not end.
    Unended(&'static str),
}

/// Walks over a text.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            chars: text.char_indices().peekable(),
            line: 1,
        }
    }

    /// Returns the line of the next token.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The next token. White space and comments are skipped.
    pub(super) fn next(&mut self) -> Token<'a> {
        loop {
            let Some((start, char)) = self.char() else {
                return Token::End;
            };
            match char {
                _ if char.is_whitespace() => {}
                '/' if self.is_next('/') => while self.char().is_some_and(|it| it.1 != '\n') {},
                '/' if self.is_next('*') => {
                    if !self.skip_comment() {
                        return Token::Unended("a comment");
                    }
                }
                '"' | '\'' => return self.quoted(char),
                '-' if self.chars.peek().is_some_and(|it| it.1.is_ascii_digit()) => {
                    self.word(start);
                    return Token::Number;
                }
                _ if char.is_ascii_digit() => {
                    self.word(start);
                    return Token::Number;
                }
                // It allows a keyword as a name.
                '^' => {}
                _ if is_word(char) => return Token::Word(self.word(start)),
                other => return Token::Sign(other),
            }
        }
    }

    fn char(&mut self) -> Option<(usize, char)> {
        let next = self.chars.next();
        self.line += usize::from(next.is_some_and(|it| it.1 == '\n'));
        next
    }

    fn is_next(&mut self, char: char) -> bool {
        self.chars.peek().is_some_and(|it| it.1 == char)
    }

    /// Reads the rest of a name or number that begins here.
    fn word(&mut self, start: usize) -> &'a str {
        while self.chars.next_if(|it| is_word(it.1)).is_some() {}
        let end = self.chars.peek().map_or(self.text.len(), |it| it.0);
        self.text.get(start..end).unwrap_or_default()
    }

    fn skip_comment(&mut self) -> bool {
        self.char();
        while let Some((_, char)) = self.char() {
            if char == '*' && self.is_next('/') {
                self.char();
                return true;
            }
        }
        false
    }

    fn quoted(&mut self, end: char) -> Token<'a> {
        while let Some((_, char)) = self.char() {
            match char {
                '\\' => {
                    self.char();
                }
                _ if char == end => return Token::Text,
                _ => {}
            }
        }
        Token::Unended("a string")
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}
