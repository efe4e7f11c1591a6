//! The head of a template: reserved words, the spelling of names and the escapes of strings.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The head of a template.
pub(super) struct Head<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Head<'a> {
    /// Reads lines `key: word word`. A key can have several lines.
    pub(super) fn parse(text: &'a str) -> Self {
        let mut entries: HashMap<_, Vec<_>> = HashMap::new();
        for (key, words) in text.lines().filter_map(|it| it.split_once(':')) {
            let entry = entries.entry(key).or_default();
            entry.extend(words.split_whitespace());
        }
        Self(entries)
    }

    pub(super) fn words(&self, key: &str) -> &[&'a str] {
        self.0.get(key).map_or(&[], |it| it.as_slice())
    }

    pub(super) fn word(&self, key: &str) -> &'a str {
        self.words(key)
            .first()
            .expect("the head of a template has the key")
    }

    /// Returns a set of names without the words that this key reserves.
    pub(super) fn names(&self, key: &str) -> Names {
        let words = self.words("reserved").iter().chain(self.words(key));
        Names(words.map(|it| (*it).to_owned()).collect())
    }

    /// Writes a name in the spelling of the language.
    pub(super) fn spelled(&self, key: &str, name: &str) -> String {
        match self.word(key) {
            "snake" => snake(name),
            "upper" if name.starts_with(|it: char| it.is_ascii_alphabetic()) => {
                let (first, rest) = name.split_at(1);
                first.to_ascii_uppercase() + rest
            }
            "upper" => format!("X{name}"),
            _ => name.to_owned(),
        }
    }

    /// Writes a string literal. All but plain ASCII is escaped with numbers.
    pub(super) fn quoted(&self, text: &str) -> String {
        let style = self.word("text");
        let mut out = String::from('"');
        let mut push = |code: u32| {
            let is_plain = |it: &char| match it {
                '"' | '\\' => false,
                // Trigraphs of C.
                '?' => style != "octal",
                // Variables of Perl.
                '$' | '@' => style != "perl",
                _ => matches!(it, ' '..='~'),
            };
            let plain = char::from_u32(code).filter(is_plain);
            match (plain, style) {
                (Some(plain), _) => {
                    out.push(plain);
                    Ok(())
                }
                (_, "rust") => write!(out, "\\u{{{code:x}}}"),
                (_, "perl") => write!(out, "\\x{{{code:x}}}"),
                (_, "octal") => write!(out, "\\{code:03o}"),
                _ if code < 0x80 => write!(out, "\\{code:03o}"),
                (_, "utf16") => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            }
            .expect("a string takes everything");
        };
        match style {
            "octal" => text.bytes().for_each(|it| push(it.into())),
            "utf16" => text.encode_utf16().for_each(|it| push(it.into())),
            _ => text.chars().for_each(|it| push(it.into())),
        }
        out + "\""
    }
}

/// Writes `traceId` as `trace_id` and `CPUTime` as `cpu_time`.
fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (position, letter) in chars.iter().enumerate() {
        let begins_word = match position.checked_sub(1).map(|before| chars[before]) {
            Some(before) if before.is_ascii_uppercase() => chars
                .get(position + 1)
                .is_some_and(char::is_ascii_lowercase),
            Some(before) => before != '_',
            None => false,
        };
        if letter.is_ascii_uppercase() && begins_word {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// The names of a scope that are taken.
pub(super) struct Names(pub(super) HashSet<String>);

impl Names {
    /// Returns the name, with underscores behind it if it is taken.
    pub(super) fn claim(&mut self, mut name: String) -> String {
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}
