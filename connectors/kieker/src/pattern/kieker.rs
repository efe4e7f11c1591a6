//! Kieker's dialect: the regular expressions that Kieker makes of patterns
//! (`kieker.monitoring.core.signaturePattern.PatternParser`).
//!
//! ```text
//! pattern  = { modifier } returned class "." method "(" params ")" [ "throws" params ]
//! returned = type | "new"
//! type     = [ ".." ] name { ( "." | ".." ) name }
//! name     = identifier with "*" for parts of it, { "[]" }
//! params   = "" | ( ".." | "*" | type ) { "," ( ".." | "*" | type ) }
//! ```

use super::dialect::Dialect;
use super::error::Misfit;
use super::syntax::{
    MODIFIERS, PART, PART_OR_DOT, SCOPES, check_modifiers, parse_exceptions, parse_method,
    parse_path, split_at_parentheses, split_head, split_name,
};

/// Returns the expression for a signature with its modifiers.
pub(super) fn parse(text: &str) -> Result<String, Misfit<'_>> {
    let (head, parameters, tail) = split_at_parentheses(text)?;
    let (mut modifiers, name) = split_head(head)?;
    let Some(returned) = modifiers.pop() else {
        let expected = "a type or `new` in front of the operation's name";
        return Err(Misfit::new(name, expected));
    };
    let (class, method) = split_name(name, Some(returned))?;
    check_modifiers(&modifiers, Dialect::Kieker)?;

    let mut expression = modifiers_expression(&modifiers);
    expression += &match returned {
        "new" => r"(?:new\s)?".to_owned(),
        _ => parse_path(returned, Dialect::Kieker)? + r"\s",
    };
    expression += &parse_path(class, Dialect::Kieker)?;
    expression += r"\.";
    expression += &parse_method(method, Dialect::Kieker)?;
    let parameters = parameters.split(',').map(str::trim).collect();
    expression += &format!(r"\({}\)", parse_parameters(parameters)?);
    expression += &match parse_exceptions(tail)? {
        None => String::new(),
        Some("..") => r"(?:\sthrows\s.*)?".to_owned(),
        Some(exceptions) => {
            // Kieker trims parameters, but not exceptions.
            let exceptions = exceptions.split(',').collect();
            format!(r"\sthrows\s{}", parse_parameters(exceptions)?)
        }
    };
    Ok(expression)
}

/// A modifier that the pattern does not name is allowed. But without any modifier in the pattern,
/// `default` is not: Kieker forgot it in that case.
fn modifiers_expression(modifiers: &[&str]) -> String {
    let mut expression = match modifiers.first() {
        Some(&"package") => String::new(),
        Some(scope) if SCOPES.contains(scope) => format!(r"{scope}\s"),
        _ => r"(?:(?:public|private|protected)\s)?".to_owned(),
    };
    for (name, _) in MODIFIERS {
        let is_default_without_any = name == "default" && modifiers.is_empty();
        if modifiers.contains(&name) {
            expression += &format!(r"{name}\s");
        } else if !is_default_without_any && !modifiers.contains(&&*format!("non_{name}")) {
            expression += &format!(r"(?:{name}\s)?");
        }
    }
    expression
}

fn parse_parameters(mut items: Vec<&str>) -> Result<String, Misfit<'_>> {
    if items == [""] {
        return Ok(String::new());
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
    for (index, item) in items.into_iter().enumerate() {
        // The comma is optional, so that `(int, ..)` matches `(integer)`.
        let comma = if index == 0 { "" } else { ",?" };
        expression += &match item {
            ".." if index == 0 => format!("(?:{name},)*"),
            ".." => format!("(?:{comma}{name})*"),
            "*" => format!(r"{comma}\s?{PART}+\s?"),
            item => format!(r"{comma}\s?{}\s?", parse_path(item, Dialect::Kieker)?),
        };
    }
    Ok(expression)
}
