//! Patterns in the manner of Rust.
//!
//! ```text
//! pattern = [ "pub" ] [ "fn" ] path [ "(" params ")" ] [ "->" type ]
//! path    = segment { "::" segment }
//! segment = "**" | identifier with "*" for parts of it
//! params  = "" | ( ".." | type ) { "," ( ".." | type ) }
//! type    = path { "[]" } | "()"
//! ```
//!
//! They match signatures of Kieker's form, which `#[probe]` makes (`public Result
//! shop.till.Till.order(str, u32)`), of Rust's (`pub fn shop::order(str) -> Result`), and names with
//! neither result nor parameters.

use super::error::{Misfit, Problem};
use super::program::{Class, Node, is_identifier_part};
use super::strict::{Modifiers, any_type, blanks, character, identifier, list, spaces};
use super::word::Word;

/// The modifiers and the rest of the signatures that match.
pub(super) fn parse(text: Word<'_>) -> Result<(Modifiers, Node), Misfit> {
    let (text, is_public) = skip_word(text, "pub");
    let (text, _) = skip_word(text, "fn");
    let (text, returned) = match text.text.find("->") {
        Some(at) => {
            let (before, arrow) = text.split_at(at);
            let returned = arrow.skip(2);
            (before.trim(), Some(returned.trim()))
        }
        None => (text, None),
    };
    let (path, parameters) = match text.text.find('(') {
        None => (text, None),
        Some(at) => {
            let (path, list) = text.split_at(at);
            let Some(inner) = list
                .text
                .strip_prefix('(')
                .and_then(|it| it.strip_suffix(')'))
            else {
                let end = list.skip(list.text.len());
                return Err(end.expected("`)`, and then `->` or the end"));
            };
            let at = list.at.saturating_add(1);
            (path.trim(), Some(Word { text: inner, at }.trim()))
        }
    };
    let mut call = vec![parse_path(path)?];
    call.push(match parameters {
        None => {
            let within = Node::One(Class::Any).any_times();
            Node::All(vec![blanks(), character('('), within, character(')')]).maybe()
        }
        Some(list) => {
            let list = parse_parameters(list)?;
            Node::All(vec![blanks(), character('('), list, character(')')])
        }
    });
    let call = Node::All(call);
    let arrow = || Node::All(vec![blanks(), Node::text("->"), blanks()]);
    let function = || Node::All(vec![Node::text("fn"), spaces()]).maybe();
    let returned = returned.map(parse_type).transpose()?;
    let rest = match returned {
        None => Node::Either(vec![
            Node::All(vec![
                function(),
                call.clone(),
                Node::All(vec![arrow(), Node::One(Class::Any).any_times()]).maybe(),
            ]),
            Node::All(vec![any_type(), spaces(), call]),
        ]),
        Some(returned) => Node::Either(vec![
            Node::All(vec![function(), call.clone(), arrow(), returned.clone()]),
            Node::All(vec![returned, spaces(), call]),
        ]),
    };
    let modifiers = if is_public {
        Modifiers::public()
    } else {
        Modifiers::default()
    };
    Ok((modifiers, rest))
}

/// Without this word in front, if it is there.
fn skip_word<'t>(text: Word<'t>, word: &str) -> (Word<'t>, bool) {
    match text.text.strip_prefix(word) {
        Some(rest) if rest.starts_with(char::is_whitespace) => (text.skip(word.len()).trim(), true),
        _ => (text, false),
    }
}

/// Segments joined by `::`; in signatures of Kieker's form these are dots.
fn parse_path(path: Word<'_>) -> Result<Node, Misfit> {
    let separator = || Node::Either(vec![Node::text("::"), Node::text(".")]);
    let mut all = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.text.find("::");
        let (segment, after) = rest.split_at(end.unwrap_or(rest.text.len()));
        let any_segments = segment.text == "**";
        match (any_segments, end) {
            (true, None) => {
                let more = Node::All(vec![separator(), identifier()]).any_times();
                all.extend([identifier(), more]);
            }
            (true, Some(_)) => all.push(Node::All(vec![identifier(), separator()]).any_times()),
            (false, _) => all.push(parse_segment(segment)?),
        }
        if end.is_none() {
            return Ok(Node::All(all));
        }
        if !any_segments {
            all.push(separator());
        }
        rest = after.skip(2);
    }
}

fn parse_segment(segment: Word<'_>) -> Result<Node, Misfit> {
    if segment.text.is_empty() {
        return Err(segment.expected("a name, `*` or `**`"));
    }
    if segment.text == "*" {
        return Ok(identifier());
    }
    let mut all = Vec::new();
    for (at, c) in segment.text.char_indices() {
        let at = segment.at.saturating_add(at);
        all.push(match c {
            '*' if segment.text.contains("**") => {
                return Err(Problem::Unsupported("`**` within a name").at(at));
            }
            '*' => Node::One(Class::Identifier).any_times(),
            '<' | '>' => return Err(Problem::Unsupported("a generic argument").at(at)),
            _ if is_identifier_part(c) => character(c),
            _ => return Err(Problem::Expected("letters, digits, `_`, `*` or `::`").at(at)),
        });
    }
    Ok(Node::All(all))
}

fn parse_type(text: Word<'_>) -> Result<Node, Misfit> {
    match text.text {
        "*" | "**" => return Ok(any_type()),
        "()" => return Ok(Node::Either(vec![Node::text("void"), Node::text("()")])),
        _ => {}
    }
    let mut path = text;
    let mut brackets = Vec::new();
    while let Some(inner) = path.text.strip_suffix("[]") {
        path.text = inner;
        brackets.push(Node::text("[]"));
    }
    let mut all = vec![parse_path(path.trim())?];
    all.append(&mut brackets);
    Ok(Node::All(all))
}

fn parse_parameters(text: Word<'_>) -> Result<Node, Misfit> {
    let mut parameters = Vec::new();
    if !text.text.is_empty() {
        for item in text.split(|c| c == ',') {
            let item = item.trim();
            parameters.push(match item.text {
                ".." => None,
                _ => Some(parse_type(item)?),
            });
        }
    }
    Ok(list(&parameters))
}
