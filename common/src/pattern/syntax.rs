//! The grammar of Kieker's patterns.
//!
//! ```text
//! pattern  = { modifier } returned class "." method "(" params ")" [ "throws" params ]
//! returned = type | "new"
//! type     = [ ".." ] name { ( "." | ".." ) name }
//! name     = identifier with "*" for parts of it, { "[]" }
//! params   = "" | ( ".." | "*" | type ) { "," ( ".." | "*" | type ) }
//! ```
//!
//! The tree is the same for the dialects [`Kieker`](super::Dialect::Kieker) and
//! [`Strict`](super::Dialect::Strict); what they make of it is not.

use super::error::{Misfit, Problem};
use super::program::{is_identifier_part, is_identifier_start, is_space};
use super::tree::{Method, Name, Operation, Parameter, Part, Piece, Returned, TypePattern};
use super::word::Word;

/// How exact a pattern must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// What Kieker's parser takes, its oversights included.
    Kieker,
    Strict,
}

/// Parses a pattern that is neither `*` nor one for sensors.
pub(super) fn parse(text: Word<'_>, care: Care) -> Result<Operation<'_>, Misfit> {
    let (head, parameters, tail) = split_at_parentheses(text)?;
    let mut words = head.words();
    let Some(name) = words.pop() else {
        return Err(head.expected("the name of an operation"));
    };
    let returned = match words.last() {
        Some(word) if care == Care::Strict && is_modifier(word.text) => None,
        Some(_) => words.pop(),
        None if care == Care::Strict => None,
        None => return Err(name.expected("a type or `new` in front of the operation's name")),
    };
    let Some(dot) = name.text.rfind('.') else {
        return Err(name.expected("a class and an operation, joined by a dot"));
    };
    let (class, method) = name.split_at(dot);
    let method = method.skip(1);
    let method = match method.text {
        "" => return Err(method.expected("the name of an operation")),
        "<init>" => Method::Constructor,
        _ => Method::Named(parse_name(method, care)?),
    };
    let returned = match returned {
        Some(word) if word.text == "new" => Some(Returned::Constructor),
        Some(word) => Some(Returned::Type(parse_type(word, care)?)),
        None => None,
    };
    if returned == Some(Returned::Constructor) && method != Method::Constructor {
        return Err(name
            .skip(dot.saturating_add(1))
            .expected("`<init>`, the name of constructors"));
    }
    let modifiers = words;
    check_modifiers(&modifiers, care)?;
    Ok(Operation {
        modifiers,
        returned,
        class: parse_type(class, care)?,
        method,
        parameters: parse_parameters(parameters.trim(), care, true)?,
        throws: parse_throws(tail, care)?,
    })
}

/// What is before, within and after the only pair of parentheses.
fn split_at_parentheses(text: Word<'_>) -> Result<(Word<'_>, Word<'_>, Word<'_>), Misfit> {
    let Some(open) = text.text.find('(') else {
        let end = text.skip(text.text.len());
        return Err(end.expected("`(` and the parameters"));
    };
    let (head, rest) = text.split_at(open);
    if let Some(early) = head.text.find(')') {
        return Err(head.skip(early).expected("`(` in front of `)`"));
    }
    let rest = rest.skip(1);
    let Some(close) = rest.text.find([')', '(']) else {
        return Err(rest.skip(rest.text.len()).expected("`)`"));
    };
    let (parameters, tail) = rest.split_at(close);
    if tail.text.starts_with('(') {
        return Err(tail.expected("`)`"));
    }
    let tail = tail.skip(1);
    if let Some(second) = tail.text.find(['(', ')']) {
        return Err(tail.skip(second).expected("no second pair of parentheses"));
    }
    Ok((head.trim(), parameters, tail))
}

/// The modifiers in the order in which Kieker wants them; those of visibility are one kind.
pub(super) const MODIFIERS: [&[&str]; 7] = [
    &["public", "private", "protected", "package"],
    &["abstract", "non_abstract"],
    &["default", "non_default"],
    &["static", "non_static"],
    &["final", "non_final"],
    &["synchronized", "non_synchronized"],
    &["native", "non_native"],
];

fn modifier_kind(word: &str) -> Option<usize> {
    MODIFIERS.iter().position(|kind| kind.contains(&word))
}

pub(super) fn is_modifier(word: &str) -> bool {
    modifier_kind(word).is_some()
}

fn check_modifiers(modifiers: &[Word<'_>], care: Care) -> Result<(), Misfit> {
    let mut seen = [false; MODIFIERS.len()];
    let mut before = 0;
    for word in modifiers {
        let Some(kind) = modifier_kind(word.text) else {
            return Err(word.expected("a modifier such as `public`, `static` or `non_native`"));
        };
        let repeated = seen.get_mut(kind).map(|seen| std::mem::replace(seen, true));
        match care {
            Care::Strict if repeated == Some(true) => {
                return Err(word.expected("one modifier of a kind"));
            }
            Care::Kieker if kind < before => {
                return Err(word.expected(
                    "modifiers in the order visibility, abstract, default, static, final, \
                     synchronized, native",
                ));
            }
            _ => before = kind,
        }
    }
    // Kieker takes seven only if there is one of each kind.
    let complete = seen.iter().all(|seen| *seen);
    match modifiers.get(MODIFIERS.len() - usize::from(!complete)) {
        Some(word) => Err(word.expected("one modifier of a kind")),
        None => Ok(()),
    }
}

fn parse_throws(tail: Word<'_>, care: Care) -> Result<Option<Vec<Parameter<'_>>>, Misfit> {
    let tail = tail.trim();
    if tail.text.is_empty() {
        return Ok(None);
    }
    if !tail.text.starts_with("throws") {
        return Err(tail.expected("`throws` or the end"));
    }
    let rest = tail.skip("throws".len());
    let blank = rest.text.starts_with(is_space);
    match care {
        Care::Strict if !blank => Err(rest.expected("a blank and exceptions, or `..`")),
        Care::Strict => parse_parameters(rest.trim(), care, true).map(Some),
        // Without a blank the word is taken for a part of the first exception's name.
        Care::Kieker if !blank => parse_parameters(tail, care, false).map(Some),
        Care::Kieker => parse_parameters(rest.trim(), care, false).map(Some),
    }
}

/// Kieker does not trim exceptions, so that `A, B` is an error there.
fn parse_parameters(list: Word<'_>, care: Care, trim: bool) -> Result<Vec<Parameter<'_>>, Misfit> {
    if list.text.is_empty() {
        return Ok(Vec::new());
    }
    let mut items = list.items(trim);
    if care == Care::Kieker {
        // Java's `String.split` forgets what is empty at the end.
        while items.last().is_some_and(|item| item.text.is_empty()) {
            items.pop();
        }
        if items.is_empty() {
            return Err(list.expected("a type, `*` or `..`"));
        }
    }
    items
        .into_iter()
        .map(|item| match item.text {
            "" => Err(item.expected("a type, `*` or `..`")),
            ".." => Ok(Parameter::Any),
            "*" => Ok(Parameter::One),
            _ => parse_type(item, care).map(Parameter::Type),
        })
        .collect()
}

fn parse_type(text: Word<'_>, care: Care) -> Result<TypePattern<'_>, Misfit> {
    if text.text.is_empty() {
        return Err(text.expected("a type"));
    }
    if let Some(at) = text.text.find("...") {
        return Err(text.skip(at).expected("one or two dots"));
    }
    let mut names = text.split(|c| c == '.').into_iter().peekable();
    let mut parts = Vec::new();
    if text.text.starts_with("..") {
        parts.push(Part::Packages);
        names.next();
        names.next();
    }
    while let Some(name) = names.next() {
        match name.text {
            // Nothing at the end, or one dot at the start.
            "" if names.peek().is_none() || parts.is_empty() => {
                return Err(name.expected("the name of a type or package"));
            }
            "" => parts.push(Part::Packages),
            _ => parts.push(Part::Name(parse_name(name, care)?)),
        }
    }
    Ok(TypePattern { parts })
}

fn parse_name(text: Word<'_>, care: Care) -> Result<Name<'_>, Misfit> {
    let bracket = text.text.find('[').unwrap_or(text.text.len());
    let (name, brackets) = text.split_at(bracket);
    check_brackets(brackets, care)?;
    match name.text.chars().next() {
        Some(c) if c == '*' || is_identifier_start(c) => {}
        _ => return Err(name.expected("a letter, `_`, `$` or `*`")),
    }
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(c) = rest.text.chars().next() {
        if c == '*' {
            pieces.push(Piece::Star);
            rest = rest.skip(1);
            continue;
        }
        let end = rest
            .text
            .find(|c| !is_identifier_part(c))
            .unwrap_or(rest.text.len());
        if end == 0 {
            return Err(rest.expected("letters, digits, `_`, `$` or `*`"));
        }
        let (part, after) = rest.split_at(end);
        pieces.push(Piece::Text(part.text));
        rest = after;
    }
    Ok(Name {
        pieces,
        brackets: brackets.text,
    })
}

fn check_brackets(brackets: Word<'_>, care: Care) -> Result<(), Misfit> {
    match care {
        Care::Strict => {
            let mut rest = brackets;
            while !rest.text.is_empty() {
                if !rest.text.starts_with("[]") {
                    return Err(rest.expected("`[]`"));
                }
                rest = rest.skip(2);
            }
            Ok(())
        }
        // Kieker hands what is between brackets to Java's regular expressions as it is.
        Care::Kieker => {
            let plain = |c| matches!(c, '[' | ']') || (c != '$' && is_identifier_part(c));
            match brackets.text.find(|c| !plain(c)) {
                None => Ok(()),
                Some(at) => {
                    let what = "a regular expression between brackets";
                    Err(Problem::Unsupported(what).at(brackets.skip(at).at))
                }
            }
        }
    }
}
