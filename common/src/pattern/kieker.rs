//! Kieker's syntax, in two dialects.
//!
//! ```text
//! pattern  = { modifier } returned class "." method "(" params ")" [ "throws" params ]
//!          | { modifier } [ returned ] type          (strict alone: any parameters)
//! returned = type | "new"
//! type     = [ ".." ] name { ( "." | ".." ) name }
//! name     = identifier with "*" for parts of it, { "[]" }
//! params   = "" | ( ".." | "*" | type ) { "," ( ".." | "*" | type ) }
//! ```
//!
//! Kieker (`kieker.monitoring.core.signaturePattern.PatternParser`) translates patterns to regular
//! expressions. [`Dialect::Kieker`] makes the same expressions. [`Dialect::Strict`] makes the
//! expressions that a user expects.

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
const PART_OR_DOT: &str = concat!("[.", identifier!(), "]");
/// A type of any form: the text between blanks and commas.
pub(super) const ANY_TYPE: &str = r"[^\s,()]+";

const SCOPES: [&str; 3] = ["public", "private", "protected"];
/// Each of them has an opposite that begins with `non_`. They are in the order that Kieker
/// requires.
const MODIFIERS: [&str; 6] = [
    "abstract",
    "default",
    "static",
    "final",
    "synchronized",
    "native",
];

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Returns the required modifiers, and the expression for the rest of a signature.
///
/// In [`Dialect::Kieker`] the expression also covers the modifiers.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<(Vec<&str>, String), Misfit<'_>> {
    let is_strict = dialect != Dialect::Kieker;
    let names_alone = is_strict && !text.contains(['(', ')']);
    let (head, list, tail) = match names_alone {
        true => (text, "", ""),
        false => split_at_parentheses(text)?,
    };
    let mut words: Vec<_> = head.split(is_space).filter(|it| !it.is_empty()).collect();
    let Some(name) = words.pop() else {
        return Err(Misfit::new(head, "the name of an operation"));
    };
    let returned = match words.last() {
        Some(word) if is_strict && modifier_kind(word).is_some() => None,
        Some(_) => words.pop(),
        None if is_strict => None,
        None => {
            let expected = "a type or `new` in front of the operation's name";
            return Err(Misfit::new(name, expected));
        }
    };
    let Some((class, method)) = name.rsplit_once('.') else {
        return Err(Misfit::new(
            name,
            "a class and an operation, joined by a dot",
        ));
    };
    if returned == Some("new") && method != "<init>" {
        return Err(Misfit::new(method, "`<init>`, the name of constructors"));
    }
    check_modifiers(&words, dialect)?;

    let (space, blanks) = if is_strict {
        (r"\s+", r"\s*")
    } else {
        (r"\s", "")
    };
    let mut expression = String::new();
    if !is_strict {
        expression += &modifiers_of_kieker(&words);
    }
    expression += &match returned {
        Some("new") => format!("(?:new{space})?"),
        None => format!("(?:{ANY_TYPE}{space})?"),
        Some("*" | "..*") if is_strict => format!("(?:{ANY_TYPE}{space})?"),
        Some(returned) => format!("{}{space}", parse_type(returned, dialect)?),
    };
    if names_alone {
        expression += &parse_path(name, dialect)?;
        return Ok((words, expression + r"(?:\s*\(.*)?"));
    }
    expression += &parse_path(class, dialect)?;
    expression += r"\.";
    expression += &match method {
        "<init>" => method.to_owned(),
        "" => return Err(Misfit::new(method, "the name of an operation")),
        _ => parse_name(method, dialect)?,
    };
    let list = parse_parameters(list.trim(), dialect, true)?;
    expression += &format!(r"{blanks}\({list}\)");
    let tail = tail.trim();
    if !tail.is_empty() {
        let exceptions = tail.strip_prefix("throws");
        let Some(exceptions) = exceptions.filter(|it| it.starts_with(is_space)) else {
            return Err(Misfit::new(
                tail,
                "`throws`, a blank and exceptions, or the end",
            ));
        };
        let exceptions = exceptions.trim();
        expression += &match exceptions {
            ".." => format!("(?:{space}throws{space}.*)?"),
            _ => {
                // Kieker trims parameters, but not exceptions.
                let list = parse_parameters(exceptions, dialect, is_strict)?;
                format!("{space}throws{space}{list}")
            }
        };
    }
    Ok((words, expression))
}

/// Returns the text before, inside and after the only pair of parentheses.
fn split_at_parentheses(text: &str) -> Result<(&str, &str, &str), Misfit<'_>> {
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

/// The modifiers of one kind exclude each other.
fn modifier_kind(word: &str) -> Option<usize> {
    if word == "package" || SCOPES.contains(&word) {
        return Some(0);
    }
    let word = word.strip_prefix("non_").unwrap_or(word);
    let kind = MODIFIERS.iter().position(|modifier| *modifier == word);
    kind.map(|kind| kind.saturating_add(1))
}

fn check_modifiers<'t>(words: &[&'t str], dialect: Dialect) -> Result<(), Misfit<'t>> {
    let mut kinds = Vec::new();
    for word in words {
        let expected = match modifier_kind(word) {
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

/// A modifier that the pattern does not name is allowed. But without any modifier in the pattern,
/// `default` is not: Kieker forgot it in that case.
fn modifiers_of_kieker(words: &[&str]) -> String {
    let mut expression = match words.first() {
        Some(&"package") => String::new(),
        Some(scope) if SCOPES.contains(scope) => format!(r"{scope}\s"),
        _ => r"(?:(?:public|private|protected)\s)?".to_owned(),
    };
    for name in MODIFIERS {
        let is_default_without_any = name == "default" && words.is_empty();
        if words.contains(&name) {
            expression += &format!(r"{name}\s");
        } else if !is_default_without_any && !words.contains(&&*format!("non_{name}")) {
            expression += &format!(r"(?:{name}\s)?");
        }
    }
    expression
}

/// Removes the modifiers from a signature, in any order. `None` if they do not match the pattern.
pub(super) fn strip_modifiers<'s>(signature: &'s str, wanted: &[Box<str>]) -> Option<&'s str> {
    let mut rest = signature.trim();
    let mut found = Vec::new();
    while let Some((word, after)) = rest.split_once(is_space) {
        let word = if word == "pub" { "public" } else { word };
        if !SCOPES.contains(&word) && !MODIFIERS.contains(&word) {
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
    let is_as_wanted = wanted.iter().all(|wanted| is_there(wanted));
    is_as_wanted.then_some(rest)
}

fn parse_parameters(list: &str, dialect: Dialect, trim: bool) -> Result<String, Misfit<'_>> {
    let mut items: Vec<_> = list.split(',').collect();
    if trim {
        items.iter_mut().for_each(|item| *item = item.trim());
    }
    if list.is_empty() {
        items.clear();
    }
    if dialect != Dialect::Kieker {
        let items = items.into_iter().map(|item| match item {
            ".." => Ok(None),
            _ => parse_type(item, dialect).map(Some),
        });
        return Ok(join_parameters(&items.collect::<Result<Vec<_>, _>>()?));
    }
    // Java's `String.split` drops empty items at the end.
    while items.len() > 1 && items.last().is_some_and(|item| item.is_empty()) {
        items.pop();
    }
    if items == [".."] {
        return Ok(".*".to_owned());
    }
    // A name, with blanks anywhere.
    let name = format!(r"(?:\s?{PART_OR_DOT})*{PART}+\s?");
    let mut expression = String::new();
    for (at, item) in items.into_iter().enumerate() {
        // The comma is optional, so that `(int, ..)` matches `(integer)`.
        let comma = if at == 0 { "" } else { ",?" };
        expression += &match item {
            ".." if at == 0 => format!("(?:{name},)*"),
            ".." => format!("(?:{comma}{name})*"),
            "*" => format!(r"{comma}\s?{PART}+\s?"),
            _ => format!(r"{comma}\s?{}\s?", parse_type(item, dialect)?),
        };
    }
    Ok(expression)
}

/// Returns a list with commas and any blanks around the items. `None` stands for any number of
/// items.
pub(super) fn join_parameters(items: &[Option<String>]) -> String {
    let mut expression = r"\s*".to_owned();
    match items.iter().position(Option::is_some) {
        None if items.is_empty() => {}
        None => expression += &format!(r"(?:{ANY_TYPE}\s*(?:,\s*{ANY_TYPE}\s*)*)?"),
        Some(first) => {
            for (at, item) in items.iter().enumerate() {
                let comma = if at > first { r",\s*" } else { "" };
                expression += &match item {
                    Some(item) => format!(r"{comma}{item}\s*"),
                    None if at < first => format!(r"(?:{ANY_TYPE}\s*,\s*)*"),
                    None => format!(r"(?:{comma}{ANY_TYPE}\s*)*"),
                };
            }
        }
    }
    expression
}

/// In the strict dialect `*` may be an array.
fn parse_type(text: &str, dialect: Dialect) -> Result<String, Misfit<'_>> {
    if dialect == Dialect::Kieker {
        return parse_path(text, dialect);
    }
    match text {
        "*" | "..*" => Ok(ANY_TYPE.to_owned()),
        _ if text.ends_with('*') => Ok(parse_path(text, dialect)? + r"(?:\[\])*"),
        _ => parse_path(text, dialect),
    }
}

/// Names joined by dots.
fn parse_path(text: &str, dialect: Dialect) -> Result<String, Misfit<'_>> {
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
    let brackets = text.strip_prefix(name).unwrap_or_default();
    Ok(expression + &regex_lite::escape(brackets))
}
