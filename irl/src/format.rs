//! The layout of a file: the same tokens and comments with other white space.
//!
//! The syntax tree tells which tokens begin a line. All others follow the one before, except where
//! the author broke the line in a list.

use crate::lexer::{Token, TokenKind, tokens};
use crate::syntax::{LineKind, LineStart};
use crate::{Edition, Finding, Severity, parser};

/// Lays a file out: members on lines of their own behind a tabulator, one blank line between
/// declarations. Only white space changes. The layout of a result is that result.
///
/// # Errors
///
/// The syntax errors of the file, or that it is larger than [`MAX_BYTES`](crate::MAX_BYTES).
pub fn format(text: &str, edition: Edition) -> Result<String, Vec<Finding>> {
    if let Some(error) = crate::too_large(text.len()) {
        return Err(vec![error]);
    }
    let (file, mut findings) = parser::parse(text, 0, edition);
    findings.retain(|it| it.severity == Severity::Error && it.rule != "legacy");
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut lines = file.lines;
    // A declaration without annotations is noted once, one with annotations at two tokens.
    lines.sort_by_key(|it| it.start);
    let mut layout = Layout {
        out: String::with_capacity(text.len()),
        lines: lines.into_iter().peekable(),
        before: None,
        section: None,
        in_body: false,
        nesting: 0,
    };
    tokens(text).for_each(|token| layout.push(token));
    if !layout.out.is_empty() {
        layout.out.push('\n');
    }
    Ok(layout.out)
}

struct Layout<'a> {
    out: String,
    lines: std::iter::Peekable<std::vec::IntoIter<LineStart>>,
    before: Option<Token<'a>>,
    /// The part of the file to which the last token belongs, until a blank line ended it.
    section: Option<LineKind>,
    in_body: bool,
    /// Braces inside a member.
    nesting: usize,
}

impl<'a> Layout<'a> {
    fn push(&mut self, token: Token<'a>) {
        if token.kind == TokenKind::Comment {
            self.comment(token);
        } else if let Some(line) = self.lines.next_if(|it| it.start == token.start) {
            self.begin_line(line.kind, token);
            self.out.push_str(token.text);
        } else {
            self.follow(token);
            self.out.push_str(token.text);
        }
        self.before = Some(token);
    }

    fn begin_line(&mut self, kind: LineKind, token: Token<'a>) {
        self.nesting = 0;
        match kind {
            LineKind::Close => self.in_body = false,
            LineKind::Member => self.in_body = true,
            LineKind::Declaration | LineKind::Import | LineKind::Package => {
                self.in_body = false;
                self.end_section(kind);
            }
            LineKind::Head => {}
        }
        let may_be_blank = match kind {
            LineKind::Close | LineKind::Head => false,
            LineKind::Member => !self.is_after_open(),
            _ => true,
        };
        self.break_line(may_be_blank && token.breaks_before > 1);
        if kind == LineKind::Declaration || kind == LineKind::Package || kind == LineKind::Import {
            self.section = Some(kind);
        }
    }

    /// Puts a blank line between a declaration and the next one, and between imports and others.
    fn end_section(&mut self, next: LineKind) {
        let is_end = match self.section {
            None => false,
            Some(LineKind::Import) => next != LineKind::Import,
            Some(_) => true,
        };
        if is_end {
            self.section = None;
            self.break_line(true);
        }
    }

    fn comment(&mut self, token: Token<'a>) {
        let is_on_line = token.breaks_before == 0 && self.before.is_some();
        if is_on_line {
            if !self.out.ends_with(['\n', '\t', ' ']) {
                self.out.push(' ');
            }
        } else {
            // At the end of a body, the lines of the tree only begin with the brace.
            let next = self.lines.peek().map(|it| it.kind);
            let starts_body = self.is_after_open() && matches!(next, Some(LineKind::Member));
            if starts_body {
                self.in_body = true;
                self.nesting = 0;
            }
            if !self.in_body && self.nesting == 0 && next != Some(LineKind::Head) {
                match next {
                    Some(kind) if kind != LineKind::Close => self.end_section(kind),
                    None => self.end_section(LineKind::Declaration),
                    _ => {}
                }
            }
            self.break_line(token.breaks_before > 1 && !starts_body);
        }
        let indent = self.indent();
        for (number, line) in token.text.lines().enumerate() {
            let line = line.trim_end();
            match line.trim_start() {
                rest if number > 0 && rest.starts_with('*') => {
                    self.out.push('\n');
                    (0..indent).for_each(|_| self.out.push('\t'));
                    self.out.push(' ');
                    self.out.push_str(rest);
                }
                _ if number > 0 => {
                    self.out.push('\n');
                    self.out.push_str(line);
                }
                _ => self.out.push_str(line),
            }
        }
    }

    /// Puts a token behind the one before it.
    fn follow(&mut self, token: Token<'a>) {
        let Some(before) = self.before else {
            return;
        };
        // A brace that ends a body may stand here, too.
        if token.text == "}" && self.nesting > 0 {
            self.nesting -= 1;
        }
        let is_list = matches!(before.text, "," | "{") || token.text == "}";
        let is_broken =
            token.breaks_before > 0 && is_list && !(before.text == "{" && token.text == "}");
        if is_line_comment(before) || is_broken {
            self.break_line(false);
            // A list after a colon has no braces.
            if self.nesting == 0 && token.text != "}" {
                self.out.push('\t');
            }
        } else if is_apart(before, token) {
            self.out.push(' ');
        }
        if token.text == "{" {
            self.nesting += 1;
        }
    }

    /// Ends the line, if there is anything on it, and indents the next one.
    fn break_line(&mut self, is_blank: bool) {
        let end = self.out.trim_end_matches('\t').len();
        self.out.truncate(end);
        if !self.out.is_empty() {
            if !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            if is_blank && !self.out.ends_with("\n\n") {
                self.out.push('\n');
            }
        }
        let indent = self.indent();
        (0..indent).for_each(|_| self.out.push('\t'));
    }

    fn indent(&self) -> usize {
        self.nesting + usize::from(self.in_body)
    }

    fn is_after_open(&self) -> bool {
        self.before.is_some_and(|it| it.text == "{")
    }
}

fn is_line_comment(token: Token<'_>) -> bool {
    token.kind == TokenKind::Comment && token.text.starts_with("//")
}

/// Whether there is a space between two tokens of a line.
fn is_apart(before: Token<'_>, token: Token<'_>) -> bool {
    let is_sign =
        |it: Token<'_>, signs: &str| it.kind == TokenKind::Punctuation && signs.contains(it.text);
    let is_empty = before.text == "{" && token.text == "}";
    !(is_empty || is_sign(before, ".[@") || is_sign(token, ".,[]*"))
}
