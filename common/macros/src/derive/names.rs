//! Names of types, fields and variants: their limits, their case, and duplicates.

use std::collections::HashMap;

use proc_macro2::Span;
use syn::{Ident, LitStr};

/// `baler_common::record::MAX_NAME_BYTES`.
const MAX_NAME_BYTES: usize = 1_024;

/// The default case of the names of a type's fields or variants.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Camel,
    Pascal,
    ScreamingSnake,
    Snake,
}

impl Case {
    const CHOICES: [(&str, Self); 4] = [
        ("camelCase", Self::Camel),
        ("PascalCase", Self::Pascal),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("snake_case", Self::Snake),
    ];

    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let value = text.value();
        let known = Self::CHOICES.iter().find(|(name, _)| *name == value);
        known.map(|(_, case)| *case).ok_or_else(|| {
            let names = Self::CHOICES.map(|(name, _)| name);
            syn::Error::new(text.span(), unknown("case", &value, &names))
        })
    }

    fn apply(self, name: &str) -> String {
        let words = words(name);
        let spelled = words.iter().enumerate().map(|(index, word)| match self {
            Self::Camel if index == 0 => word.to_lowercase(),
            Self::Camel | Self::Pascal => capitalised(word),
            Self::ScreamingSnake => word.to_uppercase(),
            Self::Snake => word.to_lowercase(),
        });
        let separator = match self {
            Self::Camel | Self::Pascal => "",
            Self::ScreamingSnake | Self::Snake => "_",
        };
        spelled.collect::<Vec<_>>().join(separator)
    }
}

/// Splits an identifier in snake case, camel case or a mixture into words.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut word = String::new();
        let mut before_is_lower = false;
        for letter in part.chars() {
            if letter.is_uppercase() && before_is_lower {
                words.push(std::mem::take(&mut word));
            }
            before_is_lower = !letter.is_uppercase();
            word.push(letter);
        }
        words.push(word);
    }
    words
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first
            .to_uppercase()
            .chain(letters.as_str().to_lowercase().chars())
            .collect()
    })
}

/// Returns the identifier without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#")
        .map_or_else(|| text.clone(), str::to_owned)
}

/// Returns the name of a field or variant: the given one, or its identifier in the type's case.
pub(crate) fn name_of(ident: &Ident, rename: Option<&LitStr>, case: Option<Case>) -> String {
    match (rename, case) {
        (Some(name), _) => name.value(),
        (None, Some(case)) => case.apply(&plain(ident)),
        (None, None) => plain(ident),
    }
}

/// Refuses names that a schema refuses, and duplicates in one type.
#[derive(Default)]
pub(crate) struct Names {
    used: HashMap<String, &'static str>,
}

impl Names {
    /// Notes the name of a field or variant (`what`), or an alias of one.
    pub(crate) fn note(&mut self, name: &str, what: &'static str, span: Span) -> syn::Result<()> {
        check(name, span)?;
        match self.used.insert(name.to_owned(), what) {
            None => Ok(()),
            Some(earlier) => Err(syn::Error::new(
                span,
                format!("`{name}` is used twice: here as {what}, before as {earlier}"),
            )),
        }
    }
}

/// Refuses names that a schema refuses.
pub(crate) fn check(name: &str, span: Span) -> syn::Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        let bytes = name.len();
        return Err(syn::Error::new(
            span,
            format!("a name must have 1 to {MAX_NAME_BYTES} bytes; this one has {bytes}"),
        ));
    }
    Ok(())
}

/// Returns the message for an unknown word, with the nearest known one.
pub(crate) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|choice| (strsim::jaro_winkler(word, choice), *choice))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness > 0.7);
    match nearest {
        Some((_, choice)) => format!("unknown {what} `{word}`; did you mean `{choice}`?"),
        None => format!("unknown {what} `{word}`; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
