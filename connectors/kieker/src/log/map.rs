//! The map of a log: numbers to class names.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use baler_common::record::{Catalog, Schema};

use super::error::{BadLine, LogError, Problem};
use super::line::check_fields;
use super::lines::{LineReader, LogLine};
use super::number::integer;

/// Which class has which number in the lines of a log.
#[derive(Debug, Clone, Default)]
pub struct LogMap {
    classes: BTreeMap<i32, MapClass>,
    catalog: Arc<Catalog>,
}

/// A class that a log names.
#[derive(Debug, Clone)]
struct MapClass {
    name: Box<str>,
    /// Its schema; `None` when the catalog does not have it.
    schema: Option<Arc<Schema>>,
    /// The class of the catalog that is most like it, looked for when it is needed.
    near: OnceLock<Option<Box<str>>>,
}

impl LogMap {
    /// How many classes a map may have. Kieker has 72.
    pub const MAX_CLASSES: usize = 65_536;

    /// Reads `kieker.map`: a line is `$NUMBER=CLASS`; the `$` may be missing, empty lines may be
    /// there, and `\\`, `\r` and `\n` stand for backslash and line ends, as in Kieker up to 1.12.
    ///
    /// Wrong lines are passed to `bad_line`; when it returns an error, reading stops with it.
    ///
    /// # Errors
    ///
    /// The errors of `input` and of `bad_line`.
    pub(super) fn read(
        file: &Arc<Path>,
        input: impl BufRead,
        line_bytes: usize,
        catalog: &Arc<Catalog>,
        mut bad_line: impl FnMut(BadLine) -> Result<(), LogError>,
    ) -> Result<Self, LogError> {
        let mut map = Self {
            classes: BTreeMap::new(),
            catalog: Arc::clone(catalog),
        };
        let mut lines = LineReader::new(input, line_bytes);
        let mut number = 0_u64;
        while let Some(line) = lines
            .next_line()
            .map_err(|source| LogError::io(file, source))?
        {
            number = number.saturating_add(1);
            let result = match line {
                LogLine::Whole(bytes) => map.add_line(bytes),
                LogLine::TooLong => Err(Problem::too_long(line_bytes)),
            };
            if let Err(problem) = result {
                bad_line(BadLine {
                    file: Arc::clone(file),
                    line: number,
                    column: 1,
                    field: None,
                    problem,
                })?;
            }
        }
        Ok(map)
    }

    /// The numbers and the names of their classes, in order of the numbers.
    pub fn classes(&self) -> impl Iterator<Item = (i32, &str)> {
        self.classes
            .iter()
            .map(|(number, class)| (*number, &*class.name))
    }

    /// The type of the records with this class number.
    pub(super) fn schema(&self, number: i32) -> Result<&Arc<Schema>, Problem> {
        let Some(class) = self.classes.get(&number) else {
            let mut message = format!("the map has no class {number}");
            if let Some((near, class)) = self.nearest(number) {
                message.push_str(&format!("; the nearest is {near}, {}", class.name));
            }
            return Err(Problem::new("unknown_class", message));
        };
        class.schema.as_ref().ok_or_else(|| {
            let mut message = format!("the record type {} is not in the catalog", class.name);
            let near = class
                .near
                .get_or_init(|| similar(&class.name, &self.catalog));
            if let Some(near) = near {
                message.push_str(&format!("; did you mean {near}?"));
            }
            Problem::new("unknown_record_type", message)
        })
    }

    fn nearest(&self, number: i32) -> Option<(i32, &MapClass)> {
        let below = self.classes.range(..number).next_back();
        let above = self.classes.range(number..).next();
        let near = below.into_iter().chain(above);
        let (found, class) = near.min_by_key(|(found, _)| found.abs_diff(number))?;
        Some((*found, class))
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), Problem> {
        let line = std::str::from_utf8(line).map_err(|_| Problem::not_utf8())?;
        if line.is_empty() {
            return Ok(());
        }
        let no_equals = || Problem::new("no_equals", "a line of the map is $NUMBER=CLASS");
        let (number, name) = line.split_once('=').ok_or_else(no_equals)?;
        let number = number.strip_prefix('$').unwrap_or(number);
        let number = integer(number, "i32").map_err(|_| Problem::class_number(number))?;
        let name = unescape(name);
        let schema = self.catalog.get(&name).cloned();
        if let Some(schema) = &schema {
            check_fields(schema)?;
        }
        // A name that is no class may have any length.
        let name = Problem::shown(&name);
        match self.classes.get(&number) {
            Some(first) if first.name != name || first.schema != schema => {
                let message = format!("the number {number} stands for {} already", first.name);
                Err(Problem::new("class_twice", message))
            }
            Some(_) => Ok(()),
            None if self.classes.len() >= Self::MAX_CLASSES => {
                let message = format!("the map has more than {} classes", Self::MAX_CLASSES);
                Err(Problem::new("too_many_classes", message))
            }
            None => {
                let near = OnceLock::new();
                self.classes.insert(number, MapClass { name, schema, near });
                Ok(())
            }
        }
    }
}

/// The class of the catalog whose name is most like this one, if there is one.
///
/// Names of the same package are alike: only the part after the package is compared.
fn similar(name: &str, catalog: &Catalog) -> Option<Box<str>> {
    fn class(name: &str) -> &str {
        name.rsplit('.').next().unwrap_or_default()
    }
    let name = class(name);
    catalog
        .schemas()
        .into_iter()
        .map(|schema| {
            (
                strsim::jaro_winkler(name, class(schema.name())),
                schema.name(),
            )
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness > 0.8)
        .map(|(_, name)| name.into())
}

/// A backslash that stands before nothing it could escape means itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let escaped = match (char, chars.peek()) {
            ('\\', Some('\\')) => Some('\\'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            _ => None,
        };
        if escaped.is_some() {
            chars.next();
        }
        plain.push(escaped.unwrap_or(char));
    }
    plain
}
