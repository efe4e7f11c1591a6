//! The text of a source file, with positions of tokens as offsets of its bytes.

use std::fs;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{Span, TokenStream, TokenTree};

use super::problem::Problem;

/// The deepest nesting of brackets. More would exhaust the stack while the file is parsed.
const MAX_DEPTH: usize = 200;

/// The longest file.
const MAX_BYTES: usize = 16 << 20;

/// The end of each attribute that this crate inserts. It tells them from those written by hand.
pub(crate) const MARK: &str = "/* baler instrument */]";

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A source file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    /// The bytes before the parsed text: a byte order mark, and the line `#!/usr/bin/…`.
    skipped: usize,
    tokens: TokenStream,
}

impl Source {
    /// Reads a file and takes it apart.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not UTF-8, or has no balanced brackets.
    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let bytes = fs::read(path).map_err(|error| Problem::io(path, &error))?;
        if bytes.len() > MAX_BYTES {
            let message = format!("it is larger than {} MiB", MAX_BYTES >> 20);
            return Err(Problem::at(path, 1, message));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let before = error.as_bytes().iter().take(valid);
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            Problem::at(path, line, "it is not UTF-8")
        })?;
        Self::new(text).map_err(|(line, message)| Problem::at(path, line, message))
    }

    /// Takes a text apart. An error is a line and a message.
    pub(crate) fn new(text: String) -> Result<Self, (usize, String)> {
        // Otherwise the positions of all files so far would stay in memory.
        proc_macro2::extra::invalidate_current_thread_spans();
        let skipped = skipped(&text);
        let first_line = lines_before(&text, skipped);
        let tokens: TokenStream =
            text[skipped..]
                .parse()
                .map_err(|error: proc_macro2::LexError| {
                    let line = first_line + error.span().start().line;
                    (line, "a bracket, text or comment has no end".to_owned())
                })?;
        let source = Self {
            text,
            skipped,
            tokens,
        };
        let mut deepest = None;
        visit(&source.tokens, |tree, depth| {
            if depth > MAX_DEPTH {
                deepest.get_or_insert_with(|| tree.span());
            }
        });
        match deepest {
            Some(span) => Err((
                source.line(source.range(span).start),
                format!("brackets are nested deeper than {MAX_DEPTH}"),
            )),
            None => Ok(source),
        }
    }

    /// Parses it as a file of Rust.
    ///
    /// # Errors
    ///
    /// The line and the message of the error.
    pub(crate) fn parse(&self) -> Result<syn::File, (usize, String)> {
        syn::parse2(self.tokens.clone()).map_err(|error| {
            let start = self.range(error.span()).start;
            (self.line(start), error.to_string())
        })
    }

    /// Returns the bytes of a token, or of what lies between the first and the last of several.
    pub(crate) fn range(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        range.start + self.skipped..range.end + self.skipped
    }

    /// Returns the number of the line of a byte, from 1.
    pub(crate) fn line(&self, position: usize) -> usize {
        1 + lines_before(&self.text, position)
    }

    /// Whether these bytes are an attribute that was inserted.
    pub(crate) fn is_inserted(&self, attribute: &Range<usize>) -> bool {
        self.text[attribute.clone()].ends_with(MARK)
    }

    /// Returns all attributes that were inserted, each with the line end or the blank behind it.
    /// This needs no valid items, so that inserted attributes can always be removed.
    pub(crate) fn inserted(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut hash = None;
        visit(&self.tokens, |tree, _| match tree {
            TokenTree::Punct(punct) => {
                hash = (punct.as_char() == '#').then(|| self.range(punct.span()).start);
            }
            TokenTree::Group(group) => {
                let end = self.range(group.span()).end;
                if let Some(start) = hash.take()
                    && self.is_inserted(&(start..end))
                {
                    ranges.push(start..self.end_of_inserted(start, end));
                }
            }
            _ => hash = None,
        });
        ranges
    }

    /// Returns the end of the text that was inserted with an attribute.
    fn end_of_inserted(&self, start: usize, end: usize) -> usize {
        let rest = &self.text[end..];
        let line_end = ["\r\n", "\n"].into_iter().find(|it| rest.starts_with(it));
        let Some(line_end) = line_end else {
            return end + usize::from(rest.starts_with(' '));
        };
        let indent = indent_before(&self.text, start);
        let rest = &rest[line_end.len()..];
        let same = indent.bytes().zip(rest.bytes()).take_while(|(a, b)| a == b);
        end + line_end.len() + same.count()
    }
}

/// Calls a function with each token, outer ones first, and the number of brackets around it.
pub(crate) fn visit(tokens: &TokenStream, mut see: impl FnMut(&TokenTree, usize)) {
    let mut stack = vec![tokens.clone().into_iter()];
    while let Some(top) = stack.last_mut() {
        match top.next() {
            Some(tree) => {
                see(&tree, stack.len());
                if let TokenTree::Group(group) = tree {
                    stack.push(group.stream().into_iter());
                }
            }
            None => {
                stack.pop();
            }
        }
    }
}

/// Returns the length of a byte order mark and of the line `#!/usr/bin/…`, by the rules of rustc.
fn skipped(text: &str) -> usize {
    let rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mark = text.len() - rest.len();
    let is_shebang = rest
        .strip_prefix("#!")
        .is_some_and(|rest| !rest.trim_start().starts_with('['));
    match is_shebang {
        true => mark + rest.find('\n').unwrap_or(rest.len()),
        false => mark,
    }
}

pub(crate) fn lines_before(text: &str, position: usize) -> usize {
    let before = text.bytes().take(position);
    before.filter(|byte| *byte == b'\n').count()
}

/// Returns the text to insert at a position, so that an attribute stands before the item there: on a
/// line of its own, if the item begins its line.
pub(crate) fn text_to_insert(text: &str, position: usize, attribute: &str) -> String {
    let indent = indent_before(text, position);
    let before = &text[..position - indent.len()];
    if !(before.is_empty() || before.ends_with('\n')) {
        return format!("{attribute} ");
    }
    let line = text[position..].split_inclusive('\n').next();
    let line_end = match line {
        Some(line) if line.ends_with("\r\n") => "\r\n",
        _ => "\n",
    };
    format!("{attribute}{line_end}{indent}")
}

/// Returns the blanks and tabs before a position.
fn indent_before(text: &str, position: usize) -> &str {
    let before = &text[..position];
    &before[before.trim_end_matches([' ', '\t']).len()..]
}

#[cfg(test)]
mod tests;
