//! Patterns in Rust's style.
//!
//! ```text
//! pattern = [ "pub" ] [ "fn" ] path [ "(" params ")" ] [ "->" type ]
//! path    = segment { "::" segment }
//! segment = "**" | identifier with "*" for parts of it
//! params  = "" | ( ".." | type ) { "," ( ".." | type ) }
//! type    = path { "[]" } | "()"
//! ```
//!
//! They match signatures in Kieker's form, which `#[probe]` makes (`public Result
//! shop.till.Till.order(str, u32)`), signatures in Rust's form
//! (`pub fn shop::order(str) -> Result`), and names with neither result nor parameters.

use super::dialect::Dialect;
use super::error::Misfit;
use super::syntax::{ANY_TYPE, PART, is_space, join_parameters, parse_name};

/// Returns the required modifiers, and the expression for the rest of a signature.
pub(super) fn parse(text: &str) -> Result<(Vec<&str>, String), Misfit<'_>> {
    let without = |text, word| strip_word(text, word).unwrap_or(text);
    let modifiers = match strip_word(text, "pub") {
        Some(_) => vec!["public"],
        None => Vec::new(),
    };
    let text = without(without(text, "pub"), "fn");
    let (text, returned) = match text.split_once("->") {
        Some((text, returned)) => (text.trim(), Some(parse_type(returned.trim())?)),
        None => (text, None),
    };
    let call = match text.split_once('(') {
        None => format!(r"{}(?:\s*\(.*\))?", parse_path(text)?),
        Some((path, list)) => {
            let path = parse_path(path.trim())?;
            let Some(list) = list.strip_suffix(')') else {
                let expected = "`)`, and then `->` or the end";
                return Err(Misfit::new(list, expected));
            };
            format!(r"{path}\s*\({}\)", parse_parameters(list.trim())?)
        }
    };
    let expression = match returned {
        None => format!(r"(?:fn\s+)?{call}(?:\s*->\s*.*)?|{ANY_TYPE}\s+{call}"),
        Some(returned) => format!(r"(?:fn\s+)?{call}\s*->\s*{returned}|{returned}\s+{call}"),
    };
    Ok((modifiers, expression))
}

/// Returns the text after this word; `None` if the text does not begin with it.
fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with(is_space).then(|| rest.trim())
}

/// Segments joined by `::`; signatures in Kieker's form have dots instead.
fn parse_path(path: &str) -> Result<String, Misfit<'_>> {
    let separator = r"(?:::|\.)";
    let mut expression = String::new();
    let mut segments = path.split("::").peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if segment == "**" && is_last {
            expression += &format!("{PART}+(?:{separator}{PART}+)*");
        } else if segment == "**" {
            expression += &format!("(?:{PART}+{separator})*");
        } else if let Some((_, stars)) = segment.match_indices("**").next() {
            return Err(Misfit::new(
                stars,
                "`*`, since `**` stands alone between `::`",
            ));
        } else {
            expression += &parse_name(segment, Dialect::Rust)?;
            expression += if is_last { "" } else { separator };
        }
    }
    Ok(expression)
}

fn parse_type(text: &str) -> Result<String, Misfit<'_>> {
    match text {
        "*" | "**" => Ok(ANY_TYPE.to_owned()),
        "()" => Ok(r"(?:void|\(\))".to_owned()),
        _ => parse_path(text),
    }
}

fn parse_parameters(list: &str) -> Result<String, Misfit<'_>> {
    let mut parameters = Vec::new();
    if !list.is_empty() {
        for item in list.split(',') {
            parameters.push(match item.trim() {
                ".." => None,
                item => Some(parse_type(item)?),
            });
        }
    }
    Ok(join_parameters(&parameters))
}
