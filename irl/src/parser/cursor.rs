//! The tokens of a file as the parser takes them, skipping after an error, and findings.

use super::{Failed, MAX_FINDINGS, MAX_PARTS, Parsed, Parser};
use crate::lexer::{Token, TokenKind};
use crate::syntax::{LineKind, LineStart};
use crate::{Edition, Finding, MAX_DEPTH, Severity, Span};

impl<'a> Parser<'a> {
    pub(super) fn word(&mut self, word: &str) -> Parsed<Token<'a>> {
        match self.peek().text == word {
            true => Ok(self.advance()),
            false => Err(self.expected(word)),
        }
    }

    pub(super) fn sign(&mut self, sign: &str) -> Parsed<Token<'a>> {
        self.word(sign)
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.peek().text == sign
    }

    pub(super) fn accept(&mut self, text: &str) -> bool {
        let is_it = self.peek().text == text;
        if is_it {
            self.advance();
        }
        is_it
    }

    pub(super) fn expect(&mut self, kind: TokenKind, expected: &str) -> Parsed<Token<'a>> {
        match self.peek().kind == kind {
            true => Ok(self.advance()),
            false => Err(self.expected(expected)),
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token<'a> {
        let token = self.tokens.get(self.next + ahead);
        token.copied().unwrap_or(self.end)
    }

    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.next += 1;
            self.before = token.span().end;
        }
        token
    }

    /// Notes where the formatter begins a line.
    pub(super) fn line(&mut self, kind: LineKind) {
        let start = self.peek().start;
        self.lines.push(LineStart { start, kind });
    }

    /// Skips the rest of a member that began at this token.
    pub(super) fn skip_line(&mut self, before: usize) {
        if self.next == before {
            self.advance();
        }
        let mut depth = 0_usize;
        loop {
            let token = self.peek();
            match token.text {
                _ if token.kind == TokenKind::End => return,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                _ if token.lines > 0 && depth == 0 => return,
                "{" => depth += 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// Skips everything up to the next declaration or import.
    pub(super) fn skip_to_declaration(&mut self) {
        let mut depth = 0_usize;
        loop {
            let token = self.peek();
            match token.text {
                _ if token.kind == TokenKind::End => return,
                _ if depth == 0 && is_start(token) => return,
                "{" => depth += 1,
                // A file may have braces that close nothing.
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    pub(super) fn count(&mut self) -> Parsed<()> {
        self.parts += 1;
        if self.parts <= MAX_PARTS {
            return Ok(());
        }
        let message = format!("the file has more than {MAX_PARTS} declarations and members");
        let span = self.peek().span();
        self.note(Finding::error("too-large", self.number, span, message));
        self.next = self.tokens.len();
        Err(Failed)
    }

    pub(super) fn deep(&mut self, depth: usize) -> Parsed<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let message = format!("braces are nested more than {MAX_DEPTH} deep");
        let span = self.peek().span();
        self.note(Finding::error("too-large", self.number, span, message));
        Err(Failed)
    }

    /// Notes that another token was expected.
    pub(super) fn expected(&mut self, expected: &str) -> Failed {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end".to_owned(),
            TokenKind::Wrong(what) => what.to_owned(),
            TokenKind::Text => "a string".to_owned(),
            _ => token.text.chars().take(64).collect(),
        };
        let mut span = token.span();
        if let TokenKind::Wrong(_) = token.kind {
            // A string or comment without an end may have many lines.
            let line = token.text.lines().next().unwrap_or(token.text);
            span.end = span.start + line.len();
        }
        let message = format!("{found} where {expected} should be");
        let mut error = Finding::error("syntax", self.number, span, message);
        if token.kind == TokenKind::End && expected.ends_with('}') {
            error = error.hint("add } at the end of the declaration");
        }
        self.note(error);
        Failed
    }

    /// Notes a construct of the legacy edition.
    pub(super) fn legacy(&mut self, span: Span, what: &str, replacement: Option<&'static str>) {
        let message = format!("{what} belongs to the legacy edition of 2013");
        let mut finding = Finding::error("legacy", self.number, span, message);
        finding.replacement = replacement;
        finding.hint = Some(match replacement {
            Some(newer) => format!("write `{newer}`"),
            None => "the current edition has nothing like it".to_owned(),
        });
        if self.edition == Edition::Legacy {
            finding.severity = Severity::Warning;
        }
        self.note(finding);
    }

    pub(super) fn note(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            // Nothing more is read.
            self.next = self.tokens.len();
        }
    }
}

/// Whether a token begins a declaration or an import.
pub(super) fn is_start(token: Token<'_>) -> bool {
    matches!(
        token.text,
        "@" | "abstract"
            | "entity"
            | "enum"
            | "event"
            | "import"
            | "model"
            | "pattern"
            | "struct"
            | "sub"
            | "tag"
            | "template"
            | "use"
    )
}
