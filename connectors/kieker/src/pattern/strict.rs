//! The strict dialect: Kieker's syntax with the meaning that a user expects.
//!
//! ```text
//! pattern  = { modifier } [ returned ] type [ "(" params ")" [ "throws" params ] ]
//! returned = type | "new"
//! type     = [ ".." ] name { ( "." | ".." ) name }
//! name     = identifier with "*" for parts of it, { "[]" }
//! params   = "" | ( ".." | "*" | type ) { "," ( ".." | "*" | type ) }
//! ```
//!
//! Without parentheses a pattern matches any parameters.

use super::dialect::Dialect;
use super::error::Misfit;
use super::syntax::{
    ANY_TYPE, ModifierKind, check_modifiers, join_parameters, parse_exceptions, parse_method,
    parse_path, split_at_parentheses, split_head, split_name,
};

/// Returns the required modifiers, and the expression for the rest of a signature.
pub(super) fn parse(text: &str) -> Result<(Vec<&str>, String), Misfit<'_>> {
    let has_parameters = text.contains(['(', ')']);
    let (head, parameters, tail) = match has_parameters {
        true => split_at_parentheses(text)?,
        false => (text, "", ""),
    };
    let (mut modifiers, name) = split_head(head)?;
    let returned = match modifiers.last() {
        Some(word) if ModifierKind::of(word).is_none() => modifiers.pop(),
        _ => None,
    };
    let (class, method) = split_name(name, returned)?;
    check_modifiers(&modifiers, Dialect::Strict)?;

    let mut expression = match returned {
        None | Some("*" | "..*") => format!(r"(?:{ANY_TYPE}\s+)?"),
        Some("new") => r"(?:new\s+)?".to_owned(),
        Some(returned) => parse_type(returned)? + r"\s+",
    };
    if !has_parameters {
        expression += &parse_path(name, Dialect::Strict)?;
        return Ok((modifiers, expression + r"(?:\s*\(.*)?"));
    }
    expression += &parse_path(class, Dialect::Strict)?;
    expression += r"\.";
    expression += &parse_method(method, Dialect::Strict)?;
    expression += &format!(r"\s*\({}\)", parse_parameters(parameters)?);
    expression += &match parse_exceptions(tail)? {
        None => String::new(),
        Some("..") => r"(?:\s+throws\s+.*)?".to_owned(),
        Some(exceptions) => format!(r"\s+throws\s+{}", parse_parameters(exceptions)?),
    };
    Ok((modifiers, expression))
}

fn parse_parameters(list: &str) -> Result<String, Misfit<'_>> {
    let list = list.trim();
    if list.is_empty() {
        return Ok(join_parameters(&[]));
    }
    let items = list.split(',').map(|item| match item.trim() {
        ".." => Ok(None),
        item => parse_type(item).map(Some),
    });
    Ok(join_parameters(&items.collect::<Result<Vec<_>, _>>()?))
}

/// A type that ends with `*` may be an array.
fn parse_type(text: &str) -> Result<String, Misfit<'_>> {
    match text {
        "*" | "..*" => Ok(ANY_TYPE.to_owned()),
        _ if text.ends_with('*') => Ok(parse_path(text, Dialect::Strict)? + r"(?:\[\])*"),
        _ => parse_path(text, Dialect::Strict),
    }
}
