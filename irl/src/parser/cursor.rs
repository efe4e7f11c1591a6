//! The tokens of a file as the parser takes them, skipping after an error, and findings.

use std::collections::HashMap;
use std::sync::Arc;

use crate::finding::MAX_FINDINGS;
use crate::lexer::{Token, TokenKind, doc_text, tokens};
use crate::syntax::{LineKind, LineStart};
use crate::{Edition, Finding, MAX_DEPTH, Severity, Span};

/// The most declarations, members and items of lists in a file.
const MAX_PARTS: usize = 100_000;

/// A finding tells why.
#[derive(Debug)]
pub(super) struct Failed;

pub(super) type Parsed<T> = Result<T, Failed>;

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    /// The texts of `/** … */` by the start of the token behind them.
    docs: HashMap<usize, Arc<str>>,
    end: Token<'a>,
    pub(super) next: usize,
    /// The end of the last token that was taken.
    pub(super) before: usize,
    pub(super) number: usize,
    edition: Edition,
    parts: usize,
    pub(super) lines: Vec<LineStart>,
    pub(super) findings: Vec<Finding>,
}

impl<'a> Parser<'a> {
    /// Takes the tokens of a file, with comments apart.
    pub(super) fn new(text: &'a str, number: usize, edition: Edition) -> Self {
        let mut docs = HashMap::new();
        let mut without_comments = Vec::new();
        let mut doc = None;
        // Whether a comment here stands behind a token in its line, and so belongs to that line.
        let mut is_behind = false;
        for token in tokens(text) {
            if token.breaks_before > 0 && std::mem::replace(&mut is_behind, false) {
                doc = None;
            }
            if token.kind == TokenKind::Comment {
                doc = doc_text(token.text).or(doc);
                continue;
            }
            docs.extend(doc.take().map(|doc| (token.start, doc)));
            is_behind = token.text != "{";
            without_comments.push(token);
        }
        Self {
            end: Token {
                kind: TokenKind::End,
                text: "",
                start: text.len(),
                breaks_before: 1,
            },
            tokens: without_comments,
            docs,
            next: 0,
            before: 0,
            number,
            edition,
            parts: 0,
            lines: Vec::new(),
            findings: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, text: &str) -> Parsed<Token<'a>> {
        match self.peek().text == text {
            true => Ok(self.advance()),
            false => Err(self.expected(text)),
        }
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

    /// Returns the documentation of the declaration or member that begins here.
    pub(super) fn doc(&mut self) -> Option<Arc<str>> {
        self.docs.remove(&self.peek().start)
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
                _ if token.breaks_before > 0 && depth == 0 => return,
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
                "}" if depth > 0 => depth -= 1,
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
            TokenKind::Invalid(what) => what.to_owned(),
            TokenKind::Text => "a string".to_owned(),
            _ => token.text.chars().take(64).collect(),
        };
        let mut span = token.span();
        if let TokenKind::Invalid(_) = token.kind {
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
