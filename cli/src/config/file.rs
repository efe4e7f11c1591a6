//! A TOML file as a list of settings with their lines.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::{Code, Failure};

/// The settings of a configuration file, in the order of its lines.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) section: Box<str>,
    pub(crate) key: Box<str>,
    pub(crate) kind: Kind,
    /// The values as they would be typed for a flag: one, or the items of a list.
    pub(crate) values: Vec<String>,
    /// The line in the file, from 1.
    pub(crate) line: usize,
}

/// The kind of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    List,
    Number,
    Text,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::List => "a list",
            Self::Number => "a number",
            Self::Text => "a text",
        }
    }
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or has a value that no flag can have: a date, a table
    /// in a section, a setting outside of a section.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("the configuration {}", path.display());
            match error.kind() {
                std::io::ErrorKind::InvalidData => {
                    Failure::configuration(format!("{what}: it is not UTF-8"))
                }
                _ => Failure::new(Code::Unavailable, format!("cannot read {what}: {error}")),
            }
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let mut file = Self {
            path: path.to_owned(),
            entries: Vec::new(),
        };
        let document = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, &span));
            file.failure(line, error.message())
        })?;
        for (section, content) in document.get_ref() {
            let line = line_of(text, &section.span());
            let DeValue::Table(keys) = content.get_ref() else {
                return Err(file.failure(
                    line,
                    format_args!(
                        "{} stands outside of a section: put it below [global], [shipping] or the \
                         name of a command",
                        section.get_ref()
                    ),
                ));
            };
            for (key, value) in keys {
                let line = line_of(text, &key.span());
                let (kind, values) = values_of(value).map_err(|what| {
                    file.failure(line, format_args!("{}: {what}", key.get_ref()))
                })?;
                file.entries.push(Entry {
                    section: section.get_ref().as_ref().into(),
                    key: key.get_ref().as_ref().into(),
                    kind,
                    values,
                    line,
                });
            }
        }
        file.entries.sort_by_key(|entry| entry.line);
        Ok(file)
    }

    /// Returns the settings in the order of their lines.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the setting with this key in this section.
    pub(crate) fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|it| *it.section == *section && *it.key == *key)
    }

    /// Returns a failure that names the file and the line.
    pub(crate) fn failure(&self, line: usize, what: impl std::fmt::Display) -> Failure {
        Failure::configuration(format!("{}:{line}: {what}", self.path.display()))
    }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.bytes().take(span.start);
    before.filter(|byte| *byte == b'\n').count() + 1
}

/// Converts a value to its typed form. The error says why that is impossible.
fn values_of(value: &Spanned<DeValue<'_>>) -> Result<(Kind, Vec<String>), String> {
    if let DeValue::Array(items) = value.get_ref() {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let (kind, text) = scalar(item.get_ref())?;
            if kind == Kind::Boolean {
                return Err("a list of true and false is no setting".to_owned());
            }
            values.push(text);
        }
        return Ok((Kind::List, values));
    }
    let (kind, text) = scalar(value.get_ref())?;
    Ok((kind, vec![text]))
}

fn scalar(value: &DeValue<'_>) -> Result<(Kind, String), String> {
    Ok(match value {
        DeValue::String(text) => (Kind::Text, text.as_ref().to_owned()),
        DeValue::Boolean(value) => (Kind::Boolean, value.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => {
            (Kind::Number, number.as_str().to_owned())
        }
        DeValue::Integer(_) => return Err("write the number in decimal".to_owned()),
        DeValue::Float(number) => (Kind::Number, number.as_str().to_owned()),
        other => {
            return Err(format!(
                "a {} is no setting; write a text",
                other.type_str()
            ));
        }
    })
}

#[cfg(test)]
mod tests;
