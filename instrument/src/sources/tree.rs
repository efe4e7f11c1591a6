//! The functions of a folder of packages, their probes, and the changes that insert and remove these.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, panic, thread};

use syn::Meta;

use super::edit::Change;
use super::manifest;
use super::modules::{CrateReader, Texts};
use super::packages::Files;
use super::parsed::{ParsedFunction, Probe};
use super::problem::Problem;
use super::source::{self, Source};

/// The stack of the thread that parses: parsing is recursive.
const STACK: usize = 256 << 20;

/// A function, and what is known about its probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its file, relative to the folder if it lies there.
    pub file: PathBuf,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Its signatures in records, one for each place where its file is a module. None if it is
    /// inside a macro.
    pub signatures: Vec<String>,
    /// Whether the signatures are those at run time. Otherwise they are estimates, and `insert` gives
    /// the first one to the probe as its name.
    pub is_certain: bool,
    /// Its probe, or the reason why it has none.
    pub state: State,
    path: PathBuf,
    start: usize,
    /// The signature that `insert` would give to the probe today.
    named: Option<String>,
    /// The name that an inserted probe has.
    given: Option<String>,
}

/// What is known about the probe of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has none.
    Without,
    /// It was inserted.
    Inserted,
    /// It was written by hand, on the function or on a block around it.
    ByHand,
    /// The function cannot have one, for this reason.
    Skipped(&'static str),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Without => f.write_str("no probe"),
            Self::Inserted => f.write_str("inserted"),
            Self::ByHand => f.write_str("by hand"),
            Self::Skipped(reason) => write!(f, "skipped ({reason})"),
        }
    }
}

/// The attribute that is inserted: its path and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    path: String,
    options: String,
}

impl Attribute {
    /// Parses it: `::baler::probe(record = duration)`.
    ///
    /// # Errors
    ///
    /// It is not an attribute `probe` on one line, or has one of the options `name` and `skip`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| format!("`{text}` is no attribute for probes: {reason}");
        let meta: Meta = syn::parse_str(text).map_err(|error| wrong(&error.to_string()))?;
        let (path, options) = match &meta {
            Meta::Path(_) => (text, ""),
            Meta::List(_) => text
                .trim_end()
                .strip_suffix(')')
                .and_then(|text| text.split_once('('))
                .ok_or_else(|| wrong("its options are not in parentheses"))?,
            Meta::NameValue(_) => return Err(wrong("its options are not in parentheses")),
        };
        let (path, options) = (path.trim(), options.trim().trim_end_matches(','));
        if text.contains(['\n', '\r']) || text.contains("//") || text.contains("/*") {
            return Err(wrong("it has comments or more than one line"));
        }
        let last = meta.path().segments.last();
        if last.is_none_or(|it| it.ident != "probe") {
            return Err(wrong("its last name is not `probe`"));
        }
        let names = |option: &str| {
            let words = options.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.into_iter().any(|word| word == option)
        };
        if names("name") || names("skip") {
            return Err(wrong("`name` and `skip` are for single functions"));
        }
        Ok(Self {
            path: path.to_owned(),
            options: options.to_owned(),
        })
    }

    /// Returns the text of the attribute.
    fn text(&self, name: Option<&str>) -> String {
        let name = name.map(|name| format!("name = {name:?}"));
        let options = [name.as_deref(), Some(self.options.as_str())];
        let options: Vec<_> = options
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty())
            .collect();
        let options = match options.is_empty() {
            true => String::new(),
            false => format!("({})", options.join(", ")),
        };
        format!("#[{}{options} {}", self.path, source::MARK)
    }
}

/// The functions of a folder of packages.
#[derive(Debug, Default)]
pub struct Tree {
    /// All functions, by file and line.
    pub functions: Vec<Function>,
    /// Files of Rust that no module names, as far as the text of the sources shows.
    pub unreached: Vec<PathBuf>,
    /// Everything that could not be read.
    pub problems: Vec<Problem>,
    texts: Texts,
    manifests: Vec<PathBuf>,
}

impl Tree {
    /// Reads the packages in a folder and below it. Nothing is written.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or has no package.
    pub fn read(folder: &Path) -> Result<Self, Problem> {
        with_stack(|| Self::read_here(folder))
    }

    fn read_here(folder: &Path) -> Result<Self, Problem> {
        let mut tree = Self::default();
        let (folder, files) = find(folder, &mut tree.problems)?;
        if files.manifests.is_empty() {
            let message =
                "there is no Cargo.toml in the folder or below it: name that of a package";
            return Err(Problem::at(&folder, 1, message));
        }
        let (roots, manifests) = files.roots(&mut tree.problems);
        tree.manifests = manifests;
        let sources: HashSet<_> = files.sources.iter().cloned().collect();
        let mut functions: BTreeMap<(PathBuf, usize), Function> = BTreeMap::new();
        for root in &roots {
            let reader = CrateReader::read(root, &mut tree.texts, &mut tree.problems, &sources);
            for found in &reader.functions {
                let signature = found.signature(&reader.scopes);
                let key = (found.file.clone(), found.start);
                let function = functions.entry(key).or_insert_with(|| {
                    let relative = found.file.strip_prefix(&folder).unwrap_or(&found.file);
                    Function::new(relative, found)
                });
                function.add(found.reason, signature);
            }
        }
        for (_, mut function) in functions {
            function.complete();
            tree.functions.push(function);
        }
        tree.problems
            .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        let unreached = files.sources.into_iter();
        tree.unreached = unreached
            .filter(|it| !tree.texts.contains_key(it))
            .collect();
        Ok(tree)
    }

    /// Returns the changes that give a probe to each selected function that can have one and has
    /// none.
    pub fn insert(
        &self,
        is_selected: impl Fn(&Function) -> bool,
        attribute: &Attribute,
    ) -> Vec<Change> {
        let mut edits: BTreeMap<&PathBuf, Vec<_>> = BTreeMap::new();
        for function in self.missing(is_selected) {
            let attribute = attribute.text(function.named.as_deref());
            let text =
                source::text_to_insert(&self.texts[&function.path], function.start, &attribute);
            let edit = (function.start..function.start, text);
            edits.entry(&function.path).or_default().push(edit);
        }
        let changes = edits.into_iter().map(|(path, edits)| Change {
            path: path.clone(),
            before: self.texts[path].clone(),
            edits,
        });
        changes.collect()
    }

    /// Returns the selected functions that can have a probe and have none.
    pub fn missing(
        &self,
        is_selected: impl Fn(&Function) -> bool,
    ) -> impl Iterator<Item = &Function> {
        let without = self
            .functions
            .iter()
            .filter(|it| it.state == State::Without);
        without.filter(move |it| is_selected(it))
    }

    /// Returns the selected functions whose inserted probe has another name than it would get today:
    /// the function or its type was renamed or moved.
    pub fn outdated(
        &self,
        is_selected: impl Fn(&Function) -> bool,
    ) -> impl Iterator<Item = &Function> {
        let inserted = self
            .functions
            .iter()
            .filter(|it| it.state == State::Inserted);
        inserted.filter(move |it| it.given != it.named && is_selected(it))
    }

    /// Returns the changes of each package's Cargo.toml that add a dependency on `baler`, unless it
    /// has one. `value` is a line of its table: `version = "0.1"`.
    pub fn insert_dependency(&mut self, value: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        for path in &self.manifests {
            let added = read_text(path).and_then(|text| {
                let addition = manifest::addition(path, &text, value)?;
                Ok(addition.map(|addition| Change {
                    path: path.clone(),
                    edits: vec![(text.len()..text.len(), addition)],
                    before: text,
                }))
            });
            match added {
                Ok(change) => changes.extend(change),
                Err(problem) => self.problems.push(problem),
            }
        }
        changes
    }

    /// Returns the changes that remove the inserted probes of selected functions.
    pub fn remove(&mut self, is_selected: impl Fn(&Function) -> bool) -> Vec<Change> {
        let selected = self.functions.iter().filter(|it| is_selected(it));
        let selected: HashSet<_> = selected.map(|it| (&it.path, it.start)).collect();
        let mut changes = Vec::new();
        for (path, text) in &self.texts {
            let removed = removals(path, text.clone(), |range| {
                selected.contains(&(path, range.start))
            });
            match removed {
                Ok(change) => changes.extend(change),
                Err(problem) => self.problems.push(problem),
            }
        }
        changes
    }
}

impl Function {
    fn new(file: &Path, found: &ParsedFunction) -> Self {
        let (state, given) = match &found.probe {
            Probe::None => (State::Without, None),
            Probe::Inserted(name) => (State::Inserted, name.clone()),
            Probe::ByHand(name) => (State::ByHand, name.clone()),
        };
        Self {
            file: file.to_owned(),
            line: found.line,
            name: found.name.clone(),
            signatures: Vec::new(),
            is_certain: true,
            state: match (state, found.reason) {
                (State::Without, Some(reason)) => State::Skipped(reason),
                _ => state,
            },
            path: found.file.clone(),
            start: found.start,
            named: None,
            given,
        }
    }

    /// Adds a place where the function's file is a module.
    fn add(&mut self, reason: Option<&'static str>, signature: Option<(String, bool)>) {
        if let (State::Skipped(_), None) = (self.state, reason) {
            self.state = State::Without;
        }
        if let Some((signature, is_certain)) = signature {
            self.is_certain &= is_certain;
            if !self.signatures.contains(&signature) {
                self.signatures.push(signature);
            }
        }
    }

    /// Finds the name of its probe, when all places are known.
    fn complete(&mut self) {
        if !self.is_certain {
            self.named = self.signatures.first().cloned();
        }
        if let Some(name) = self.given.as_ref().or(self.named.as_ref()) {
            self.signatures = vec![name.clone()];
        }
        if self.given.is_some() {
            self.is_certain = true;
        }
    }
}

/// All inserted texts of a folder: the changes that remove them, and the files that could not be
/// read.
///
/// Items need not be valid, and files need no module. So this works whatever was done to the sources
/// since the insertion.
///
/// # Errors
///
/// The folder cannot be read.
pub fn remove_all(folder: &Path) -> Result<(Vec<Change>, Vec<Problem>), Problem> {
    let mut problems = Vec::new();
    let (_, files) = find(folder, &mut problems)?;
    let mut changes = Vec::new();
    for path in &files.sources {
        // A text that is not UTF-8 has no inserted attribute, or else the compiler would refuse it.
        let removed = match read_text(path) {
            Ok(text) if text.contains(source::MARK) => removals(path, text, |_| true),
            Err(problem) if problem.is_unreadable => Err(problem),
            _ => Ok(None),
        };
        match removed {
            Ok(change) => changes.extend(change),
            Err(problem) => problems.push(problem),
        }
    }
    for path in files.manifests {
        match read_text(&path) {
            Ok(before) => changes.extend(manifest::inserted(&before).map(|range| Change {
                edits: vec![(range, String::new())],
                path,
                before,
            })),
            Err(problem) => problems.push(problem),
        }
    }
    Ok((changes, problems))
}

/// Returns the change that removes inserted attributes; none if there is none to remove.
fn removals(
    path: &Path,
    text: String,
    is_selected: impl Fn(&Range<usize>) -> bool,
) -> Result<Option<Change>, Problem> {
    let source = Source::new(text);
    let source = source.map_err(|(line, message)| Problem::at(path, line, message))?;
    let ranges = source.inserted().into_iter().filter(is_selected);
    let edits: Vec<_> = ranges.map(|range| (range, String::new())).collect();
    Ok((!edits.is_empty()).then(|| Change {
        path: path.to_owned(),
        before: source.text,
        edits,
    }))
}

fn find(folder: &Path, problems: &mut Vec<Problem>) -> Result<(PathBuf, Files), Problem> {
    let folder = fs::canonicalize(folder).map_err(|error| Problem::io(folder, &error))?;
    if !folder.is_dir() {
        return Err(Problem::at(&folder, 1, "it is not a folder"));
    }
    let files = Files::find(&folder, problems);
    Ok((folder, files))
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let bytes = fs::read(path).map_err(|error| Problem::io(path, &error))?;
    String::from_utf8(bytes).map_err(|_| Problem::at(path, 1, "it is not UTF-8"))
}

/// Runs a function on a thread with a large stack.
fn with_stack<T: Send>(run: impl FnOnce() -> Result<T, Problem> + Send) -> Result<T, Problem> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        match thread.spawn_scoped(scope, run) {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic)),
            Err(error) => Err(Problem::io(Path::new("."), &error)),
        }
    })
}
