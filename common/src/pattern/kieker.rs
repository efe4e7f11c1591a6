//! What Kieker makes of a pattern, bug for bug.
//!
//! Kieker (`kieker.monitoring.core.signaturePattern.PatternParser`) translates patterns to regular
//! expressions of Java; here they become the same expressions for a matcher of linear time.

use super::program::{Class, Node};
use super::syntax::MODIFIERS;
use super::tree::{Method, Name, Operation, Parameter, Part, Piece, Returned, TypePattern};
use super::word::Word;

pub(super) fn expression(operation: &Operation<'_>) -> Node {
    let mut all = modifiers(&operation.modifiers);
    match &operation.returned {
        Some(Returned::Type(returned)) => all.extend([type_name(returned), space()]),
        _ => all.push(word("new").maybe()),
    }
    all.extend([type_name(&operation.class), character('.')]);
    all.push(match &operation.method {
        Method::Constructor => Node::text("<init>"),
        Method::Named(method) => name(method),
    });
    all.extend([
        character('('),
        parameters(&operation.parameters),
        character(')'),
    ]);
    match operation.throws.as_deref() {
        None => {}
        Some([Parameter::Any]) => {
            let throws = vec![space(), Node::text("throws"), space(), anything()];
            all.push(Node::All(throws).maybe());
        }
        Some(exceptions) => {
            all.extend([
                space(),
                Node::text("throws"),
                space(),
                parameters(exceptions),
            ]);
        }
    }
    Node::All(all)
}

/// A modifier that is not named may be there, except that without any modifier at all `default` may
/// not: Kieker forgot it in that case.
fn modifiers(words: &[Word<'_>]) -> Vec<Node> {
    let count = words.len();
    let mut all = Vec::new();
    match words.first().map(|word| word.text) {
        Some(scope @ ("public" | "private" | "protected")) => all.push(word(scope)),
        Some("package") => {}
        _ => {
            let scopes = ["public", "private", "protected"].map(Node::text);
            all.push(Node::All(vec![Node::Either(scopes.into()), space()]).maybe());
        }
    }
    for (kind, names) in MODIFIERS.iter().enumerate().skip(1) {
        // Kieker looks for a modifier only where one can stand if none is there twice.
        let first = kind.saturating_sub(MODIFIERS.len().saturating_sub(count.max(1)));
        let looked_at = words.get(first..).unwrap_or_default();
        let looked_at = looked_at
            .iter()
            .take(kind.saturating_add(1).saturating_sub(first));
        let (Some(name), Some(negated)) = (names.first(), names.get(1)) else {
            continue;
        };
        let has = |wanted: &str| looked_at.clone().any(|word| word.text == wanted);
        if has(name) {
            all.push(word(name));
        } else if !has(negated) && (count > 0 || *name != "default") {
            all.push(word(name).maybe());
        }
    }
    all
}

fn parameters(parameters: &[Parameter<'_>]) -> Node {
    if parameters == [Parameter::Any] {
        return anything();
    }
    let mut all = Vec::new();
    for (at, parameter) in parameters.iter().enumerate() {
        let is_first = at == 0;
        match parameter {
            Parameter::Any if is_first => {
                let one = vec![full_name(), blank(), character(',')];
                all.push(Node::All(one).any_times());
            }
            // The comma is optional, here and below, so that `(int, ..)` matches `(integer)`.
            Parameter::Any => {
                let one = vec![character(',').maybe(), full_name(), blank()];
                all.push(Node::All(one).any_times());
            }
            Parameter::One | Parameter::Type(_) => {
                if !is_first {
                    all.push(character(',').maybe());
                }
                all.push(blank());
                all.push(match parameter {
                    Parameter::Type(parameter) => type_name(parameter),
                    _ => Node::One(Class::Identifier).once_or_more(),
                });
                all.push(blank());
            }
        }
    }
    Node::All(all)
}

fn type_name(pattern: &TypePattern<'_>) -> Node {
    let mut all = Vec::new();
    let last = pattern.parts.len().saturating_sub(1);
    for (at, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Packages => {
                let packages = Node::One(Class::IdentifierOrDot).any_times();
                all.push(Node::All(vec![packages, character('.')]).maybe());
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

/// A star at the start also spans dots, one elsewhere does not.
fn name(name: &Name<'_>) -> Node {
    let mut all = Vec::new();
    for (at, piece) in name.pieces.iter().enumerate() {
        all.push(match piece {
            Piece::Star if at == 0 => Node::One(Class::IdentifierOrDot).any_times(),
            Piece::Star => Node::One(Class::Identifier).any_times(),
            // Not escaped by Kieker in the first place, where it means the end of the text.
            Piece::Text(text) if at == 0 && text.starts_with('$') => Node::Never,
            Piece::Text(text) => Node::text(text),
        });
    }
    all.push(Node::text(name.brackets));
    Node::All(all)
}

/// `((\s)?[\p{javaJavaIdentifierPart}\.])*\p{javaJavaIdentifierPart}+`: with blanks anywhere.
fn full_name() -> Node {
    Node::All(vec![
        Node::All(vec![blank(), Node::One(Class::IdentifierOrDot)]).any_times(),
        Node::One(Class::Identifier).once_or_more(),
    ])
}

fn anything() -> Node {
    Node::One(Class::Any).any_times()
}

fn space() -> Node {
    Node::One(Class::Space)
}

/// At most one blank.
fn blank() -> Node {
    space().maybe()
}

fn character(c: char) -> Node {
    Node::One(Class::Exactly(c))
}

/// A word and a blank.
fn word(text: &str) -> Node {
    Node::All(vec![Node::text(text), space()])
}
