//! The parts of patterns that several dialects have: modifiers, names and lists of parameters.

use super::dialect::Dialect;
use super::error::Misfit;

/// The allowed characters of an identifier, as a part of a class of characters.
macro_rules! identifier {
    () => {
        r"\w$\x{80}-\x{10ffff}"
    };
}

/// A character of an identifier.
pub(super) const PART: &str = concat!("[", identifier!(), "]");
/// A character of an identifier, or a dot.
pub(super) const PART_OR_DOT: &str = concat!("[.", identifier!(), "]");
/// A type of any form: the text between blanks and commas.
pub(super) const ANY_TYPE: &str = r"[^\s,()]+";

pub(super) const SCOPES: [&str; 3] = ["public", "private", "protected"];
/// The modifiers beside the scopes, in the order that Kieker requires. Each of them has an opposite
/// that begins with `non_`.
pub(super) const MODIFIERS: [(&str, ModifierKind); 6] = [
    ("abstract", ModifierKind::Abstract),
    ("default", ModifierKind::Default),
    ("static", ModifierKind::Static),
    ("final", ModifierKind::Final),
    ("synchronized", ModifierKind::Synchronized),
    ("native", ModifierKind::Native),
];

/// Modifiers of which an operation has one at most. They are in the order that Kieker requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModifierKind {
    /// A scope, or none: `package`.
    Visibility,
    Abstract,
    Default,
    Static,
    Final,
    Synchronized,
    Native,
}

impl ModifierKind {
    /// Returns the kind of a word in a pattern; `None` if it is no modifier.
    pub(super) fn of(word: &str) -> Option<Self> {
        if word == "package" || SCOPES.contains(&word) {
            return Some(Self::Visibility);
        }
        let word = word.strip_prefix("non_").unwrap_or(word);
        let mut modifiers = MODIFIERS.into_iter();
        modifiers.find_map(|(modifier, kind)| (modifier == word).then_some(kind))
    }
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Returns the text before, inside and after the only pair of parentheses.
pub(super) fn split_at_parentheses(text: &str) -> Result<(&str, &str, &str), Misfit<'_>> {
    let Some((head, rest)) = text.split_once('(') else {
        return Err(Misfit::new(text, "`(` and the parameters"));
    };
    if let Some((_, early)) = head.match_indices(')').next() {
        return Err(Misfit::new(early, "`(` in front of `)`"));
    }
    let Some((list, tail)) = rest.split_once(')') else {
        return Err(Misfit::new(rest, "`)`"));
    };
    for part in [list, tail] {
        if let Some((_, second)) = part.match_indices(['(', ')']).next() {
            return Err(Misfit::new(second, "no second pair of parentheses"));
        }
    }
    Ok((head.trim(), list, tail))
}

/// Returns the words before the name of an operation, and the name.
pub(super) fn split_head(head: &str) -> Result<(Vec<&str>, &str), Misfit<'_>> {
    let mut words: Vec<_> = head.split(is_space).filter(|it| !it.is_empty()).collect();
    let name = words.pop();
    let name = name.ok_or_else(|| Misfit::new(head, "the name of an operation"))?;
    Ok((words, name))
}

/// Returns the class and the method of an operation that returns this type.
pub(super) fn split_name<'t>(
    name: &'t str,
    returned: Option<&str>,
) -> Result<(&'t str, &'t str), Misfit<'t>> {
    let Some((class, method)) = name.rsplit_once('.') else {
        let expected = "a class and an operation, joined by a dot";
        return Err(Misfit::new(name, expected));
    };
    if returned == Some("new") && method != "<init>" {
        return Err(Misfit::new(method, "`<init>`, the name of constructors"));
    }
    Ok((class, method))
}

/// Returns the exceptions behind `throws`, if the text behind the parameters has them.
pub(super) fn parse_exceptions(tail: &str) -> Result<Option<&str>, Misfit<'_>> {
    let tail = tail.trim();
    if tail.is_empty() {
        return Ok(None);
    }
    let exceptions = tail.strip_prefix("throws");
    let Some(exceptions) = exceptions.filter(|it| it.starts_with(is_space)) else {
        let expected = "`throws`, a blank and exceptions, or the end";
        return Err(Misfit::new(tail, expected));
    };
    Ok(Some(exceptions.trim()))
}

/// Checks that there is one modifier of a kind, in [`Dialect::Kieker`] also their order.
pub(super) fn check_modifiers<'t>(words: &[&'t str], dialect: Dialect) -> Result<(), Misfit<'t>> {
    let mut kinds = Vec::new();
    for word in words {
        let expected = match ModifierKind::of(word) {
            None => "a modifier such as `public`, `static` or `non_native`",
            Some(kind) if kinds.contains(&kind) => "one modifier of a kind",
            Some(kind) if dialect == Dialect::Kieker && kinds.last() > Some(&kind) => {
                "modifiers in the order visibility, abstract, default, static, final, \
                 synchronized, native"
            }
            Some(kind) => {
                kinds.push(kind);
                continue;
            }
        };
        return Err(Misfit::new(word, expected));
    }
    Ok(())
}

/// Removes the modifiers from a signature, in any order. `None` if they do not match the pattern.
pub(super) fn strip_modifiers<'s>(signature: &'s str, wanted: &[Box<str>]) -> Option<&'s str> {
    let mut rest = signature.trim();
    let mut found = Vec::new();
    while let Some((word, after)) = rest.split_once(is_space) {
        let word = if word == "pub" { "public" } else { word };
        if !SCOPES.contains(&word) && !MODIFIERS.iter().any(|(it, _)| *it == word) {
            break;
        }
        found.push(word);
        rest = after.trim_start();
    }
    let is_there = |wanted: &str| match wanted.strip_prefix("non_") {
        Some(unwanted) => !found.contains(&unwanted),
        None if wanted == "package" => !found.iter().any(|word| SCOPES.contains(word)),
        None => found.contains(&wanted),
    };
    wanted.iter().all(|it| is_there(it)).then_some(rest)
}

/// Returns a list with commas and any blanks around the items. `None` stands for any number of
/// items.
pub(super) fn join_parameters(items: &[Option<String>]) -> String {
    let mut expression = r"\s*".to_owned();
    match items.iter().position(Option::is_some) {
        None if items.is_empty() => {}
        None => expression += &format!(r"(?:{ANY_TYPE}\s*(?:,\s*{ANY_TYPE}\s*)*)?"),
        Some(first) => {
            for (index, item) in items.iter().enumerate() {
                let comma = if index > first { r",\s*" } else { "" };
                expression += &match item {
                    Some(item) => format!(r"{comma}{item}\s*"),
                    None if index < first => format!(r"(?:{ANY_TYPE}\s*,\s*)*"),
                    None => format!(r"(?:{comma}{ANY_TYPE}\s*)*"),
                };
            }
        }
    }
    expression
}

/// Names joined by dots.
pub(super) fn parse_path(text: &str, dialect: Dialect) -> Result<String, Misfit<'_>> {
    if let Some((_, dots)) = text.match_indices("...").next() {
        return Err(Misfit::new(dots, "one or two dots"));
    }
    let packages = match dialect {
        Dialect::Kieker => format!(r"(?:{PART_OR_DOT}*\.)?"),
        _ => format!(r"(?:{PART}+\.)*"),
    };
    let (mut expression, rest) = match text.strip_prefix("..") {
        Some(rest) => (packages.clone(), rest),
        None => (String::new(), text),
    };
    let mut names = rest.split('.').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        if name.is_empty() && (is_last || expression.is_empty()) {
            return Err(Misfit::new(name, "the name of a type or package"));
        } else if name.is_empty() {
            expression += &packages;
        } else {
            expression += &parse_name(name, dialect)?;
            expression += if is_last { "" } else { r"\." };
        }
    }
    Ok(expression)
}

/// Returns the expression for the name of an operation; `<init>` is that of constructors.
pub(super) fn parse_method(method: &str, dialect: Dialect) -> Result<String, Misfit<'_>> {
    match method {
        "<init>" => Ok(method.to_owned()),
        "" => Err(Misfit::new(method, "the name of an operation")),
        _ => parse_name(method, dialect),
    }
}

/// In [`Dialect::Kieker`] a star at the start also spans dots. Elsewhere no star does, and a name
/// that is only a star has at least one character.
pub(super) fn parse_name(text: &str, dialect: Dialect) -> Result<String, Misfit<'_>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let name = text.trim_end_matches("[]");
    let is_start = |c: char| c == '*' || (is_part(c) && !c.is_ascii_digit());
    if !name.starts_with(is_start) {
        return Err(Misfit::new(name, "a letter, `_`, `$` or `*`"));
    }
    if let Some((_, wrong)) = name.match_indices(|c| c != '*' && !is_part(c)).next() {
        return Err(Misfit::new(wrong, "letters, digits, `_`, `$`, `*` or `[]`"));
    }
    let mut expression = String::new();
    for (at, c) in name.char_indices() {
        let is_kiekers_start = dialect == Dialect::Kieker && at == 0;
        match c {
            '*' if is_kiekers_start => expression += &format!("{PART_OR_DOT}*"),
            '*' if name == "*" => expression += &format!("{PART}+"),
            '*' => expression += &format!("{PART}*"),
            // Kieker does not escape it here, so it means the end of the text.
            '$' if !is_kiekers_start => expression += r"\$",
            _ => expression.push(c),
        }
    }
    let (_, brackets) = text.split_at(name.len());
    Ok(expression + &regex_lite::escape(brackets))
}
