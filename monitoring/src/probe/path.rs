//! The class of an operation, from the type name of a function inside it.
//!
//! A macro that sees one method knows neither its module nor its type, but a function declared
//! inside the method has both in its type name:
//!
//! | type name | class |
//! |---|---|
//! | `shop::cart::total::here` | `shop.cart` |
//! | `shop::Cart<_>::add::{{closure}}::here` | `shop.Cart` |
//! | `shop::rules::<impl shop::Cart>::check::here` | `shop.Cart` |
//! | `<shop::Cart as shop::Priced>::price::here` | `shop.Cart` |
//! | `<_ as shop::Priced>::price::here` | `shop.Priced` |
//! | `shop::Priced::discount::here` (a provided method) | `shop.Priced` |
//!
//! The standard library does not promise this form (`std::any::type_name` is for people to read).
//! Other forms are kept, without the characters that would confuse Kieker's tools.

/// Returns the class whose operation contains the function with this type name.
pub(super) fn class_of(type_name: &str) -> String {
    let mut segments = Vec::new();
    for segment in split(type_name, "::") {
        if segment.starts_with("{{") {
            continue;
        }
        match segment.strip_prefix('<').and_then(|s| s.strip_suffix('>')) {
            // The path before an implementation belongs to its module, not to the type.
            Some(implementation) => segments = vec![implementing(implementation)],
            None => segments.push(plain(segment)),
        }
    }
    // The function itself and the operation.
    segments.pop();
    segments.pop();
    segments.retain(|segment| !segment.is_empty());
    segments.join(".")
}

/// Returns the class of an operation, from its signature: `shop.Till` of
/// `public void shop.Till.close()`; empty if the signature does not name one.
pub(super) fn declaring_class(signature: &str) -> &str {
    let (name, _) = signature.split_once('(').unwrap_or((signature, ""));
    let name = name.trim_end();
    let (_, name) = name.rsplit_once(char::is_whitespace).unwrap_or(("", name));
    name.rsplit_once('.').map_or("", |(class, _)| class)
}

/// Returns the class of `impl Type`, `impl Trait for Type` or `Type as Trait`. It is the trait's
/// class if the type has no path: a tuple, a slice or a generic type.
fn implementing(implementation: &str) -> String {
    let (written, traits) = match implementation.strip_prefix("impl ") {
        Some(rest) => match split(rest, " for ").as_slice() {
            [traits, written] => (*written, Some(*traits)),
            _ => (rest, None),
        },
        None => match split(implementation, " as ").as_slice() {
            [written, traits] => (*written, Some(*traits)),
            _ => (implementation, None),
        },
    };
    let written = written.trim_start_matches(['&', '*']);
    let written = ["mut ", "const ", "dyn "]
        .iter()
        .fold(written, |rest, prefix| {
            rest.strip_prefix(prefix).unwrap_or(rest)
        });
    let has_path = written != "_" && written.starts_with(|c: char| c.is_alphabetic() || c == '_');
    path(if has_path {
        written
    } else {
        traits.unwrap_or(written)
    })
}

fn path(written: &str) -> String {
    let segments: Vec<_> = split(written, "::").into_iter().map(plain).collect();
    segments.join(".")
}

/// Returns a segment without its generic arguments and without characters that are no part of a
/// name.
fn plain(segment: &str) -> String {
    segment
        .chars()
        .take_while(|c| *c != '<' && *c != '(' && !c.is_whitespace())
        .filter(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Splits where the separator stands outside of all brackets.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut chars = text.chars();
    while let (tail, Some(c)) = (chars.as_str(), chars.next()) {
        if depth == 0 {
            // `None` within the last separator: there the rest begins later than the tail.
            let part = rest.strip_suffix(tail);
            if let (Some(part), Some(after)) = (part, tail.strip_prefix(separator)) {
                parts.push(part);
                rest = after;
            }
        }
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of a function type is not a bracket.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests;
