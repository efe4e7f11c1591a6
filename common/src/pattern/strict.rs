//! What a pattern says when it is taken at its word.
//!
//! The modifiers of a signature are read off as words, in any order; the rest is matched.

use super::program::{Class, Node, is_space};
use super::syntax::{MODIFIERS, is_modifier};
use super::tree::{Method, Name, Operation, Parameter, Part, Piece, Returned, TypePattern};
use super::word::Word;

/// Which modifiers a signature must have and must not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Modifiers {
    wanted: Vec<&'static str>,
    unwanted: Vec<&'static str>,
}

impl Modifiers {
    pub(super) fn new(words: &[Word<'_>]) -> Self {
        let mut modifiers = Self::default();
        for word in words {
            match word.text {
                "package" => modifiers
                    .unwanted
                    .extend(["public", "private", "protected"]),
                text => match text.strip_prefix("non_") {
                    Some(text) => modifiers.unwanted.extend(known(text)),
                    None => modifiers.wanted.extend(known(text)),
                },
            }
        }
        modifiers
    }

    pub(super) fn public() -> Self {
        Self::new(&[Word::new("public")])
    }

    /// The signature without its modifiers, if these are as they should be.
    pub(super) fn strip<'s>(&self, signature: &'s str) -> Option<&'s str> {
        let mut rest = signature.trim();
        let mut missing = self.wanted.clone();
        while let Some((word, after)) = rest.split_once(is_space) {
            let word = if word == "pub" { "public" } else { word };
            // As a word of a signature `package` is no modifier.
            if word == "package" || word.starts_with("non_") || !is_modifier(word) {
                break;
            }
            if self.unwanted.contains(&word) {
                return None;
            }
            missing.retain(|wanted| *wanted != word);
            rest = after.trim_start();
        }
        missing.is_empty().then_some(rest)
    }
}

fn known(word: &str) -> Option<&'static str> {
    let mut names = MODIFIERS.iter().flat_map(|kind| kind.iter());
    names.find(|name| **name == word).copied()
}

pub(super) fn expression(operation: &Operation<'_>) -> Node {
    let mut all = Vec::new();
    all.push(match &operation.returned {
        Some(Returned::Constructor) => Node::All(vec![Node::text("new"), spaces()]).maybe(),
        Some(Returned::Type(returned)) if !is_any(returned) => {
            Node::All(vec![type_name(returned), spaces()])
        }
        _ => Node::All(vec![any_type(), spaces()]).maybe(),
    });
    all.extend([path(&operation.class), character('.')]);
    all.push(match &operation.method {
        Method::Constructor => Node::text("<init>"),
        Method::Named(method) => name(method),
    });
    all.extend([blanks(), character('(')]);
    all.extend([parameters(&operation.parameters), character(')')]);
    match operation.throws.as_deref() {
        None => {}
        Some([Parameter::Any]) => {
            let anything = Node::One(Class::Any).any_times();
            all.push(Node::All(vec![throws(), anything]).maybe());
        }
        Some(exceptions) => all.extend([throws(), parameters(exceptions)]),
    }
    Node::All(all)
}

fn parameters(parameters: &[Parameter<'_>]) -> Node {
    let items = parameters.iter().map(|parameter| match parameter {
        Parameter::Any => None,
        Parameter::Type(pattern) if !is_any(pattern) => Some(type_name(pattern)),
        _ => Some(any_type()),
    });
    list(&items.collect::<Vec<_>>())
}

/// A list with commas, `None` for any number of items, and any blanks around the items.
pub(super) fn list(items: &[Option<Node>]) -> Node {
    let comma = || Node::All(vec![character(','), blanks()]);
    let item = |node: Node| Node::All(vec![node, blanks()]);
    let any = || item(any_type());
    let mut all = vec![blanks()];
    let first = items.iter().position(Option::is_some);
    let (before, after) = items.split_at(first.unwrap_or(items.len()));
    // Any that come before one that is wanted end with a comma, any others begin with one.
    match after.split_first() {
        Some((wanted, after)) => {
            if !before.is_empty() {
                all.push(Node::All(vec![any(), comma()]).any_times());
            }
            all.extend(wanted.clone().map(item));
            all.extend(after.iter().map(|wanted| match wanted.clone() {
                Some(wanted) => Node::All(vec![comma(), item(wanted)]),
                None => Node::All(vec![comma(), any()]).any_times(),
            }));
        }
        None if before.is_empty() => {}
        None => {
            let others = Node::All(vec![comma(), any()]).any_times();
            all.push(Node::All(vec![any(), others]).maybe());
        }
    }
    Node::All(all)
}

/// `*` and `..*` are any type, arrays and those that only Rust can write included.
fn is_any(pattern: &TypePattern<'_>) -> bool {
    let is_star = |name: &Name<'_>| name.pieces == [Piece::Star] && name.brackets.is_empty();
    match pattern.parts.as_slice() {
        [Part::Name(name)] | [Part::Packages, Part::Name(name)] => is_star(name),
        _ => false,
    }
}

/// A type, whose `*` may be an array.
fn type_name(pattern: &TypePattern<'_>) -> Node {
    let ends_in_star = match pattern.parts.last() {
        Some(Part::Name(name)) => name.pieces.last() == Some(&Piece::Star),
        _ => false,
    };
    if !ends_in_star {
        return path(pattern);
    }
    Node::All(vec![path(pattern), Node::text("[]").any_times()])
}

/// Names joined by dots.
fn path(pattern: &TypePattern<'_>) -> Node {
    let mut all = Vec::new();
    let last = pattern.parts.len().saturating_sub(1);
    for (at, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Packages => {
                let package = vec![identifier(), character('.')];
                all.push(Node::All(package).any_times());
            }
            Part::Name(part) => {
                all.push(name(part));
                if at < last {
                    all.push(character('.'));
                }
            }
        }
    }
    Node::All(all)
}

/// A name in which a star spans no dot; one that is a star alone has at least a character.
fn name(name: &Name<'_>) -> Node {
    if name.pieces == [Piece::Star] {
        return Node::All(vec![identifier(), Node::text(name.brackets)]);
    }
    let mut all: Vec<_> = name
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Star => Node::One(Class::Identifier).any_times(),
            Piece::Text(text) => Node::text(text),
        })
        .collect();
    all.push(Node::text(name.brackets));
    Node::All(all)
}

pub(super) fn identifier() -> Node {
    Node::One(Class::Identifier).once_or_more()
}

/// Whatever stands between blanks and commas.
pub(super) fn any_type() -> Node {
    Node::One(Class::WordBut(",()")).once_or_more()
}

pub(super) fn character(c: char) -> Node {
    Node::One(Class::Exactly(c))
}

pub(super) fn blanks() -> Node {
    Node::One(Class::Space).any_times()
}

pub(super) fn spaces() -> Node {
    Node::One(Class::Space).once_or_more()
}

fn throws() -> Node {
    Node::All(vec![spaces(), Node::text("throws"), spaces()])
}
