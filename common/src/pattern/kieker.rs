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
use super::syntax::{
    ANY_TYPE, MODIFIERS, PART, PART_OR_DOT, SCOPES, check_modifiers, is_space, join_parameters,
    modifier_kind, parse_name, parse_path, split_at_parentheses,
};

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
