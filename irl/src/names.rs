//! Definitions by name, over all files, and the definition to which a name in a file refers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::syntax::{Declaration, File, Kind, QualifiedName};
use crate::{Base, Edition, Finding, KnownType, Settings, Span};

/// The most unknown names that are reported. Names after them are not looked up.
const MAX_UNKNOWN: usize = 1_000;

/// The most imports of whole packages in a file.
const MAX_WILDCARDS: usize = 100;

/// The most comparisons of unknown names with known ones, and the longest name that is compared.
const MAX_COMPARED: usize = 100_000;
const MAX_COMPARED_BYTES: usize = 64;

/// What a name has to refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Enum,
    Event,
    Model,
    /// An event or a template.
    Record,
    Template,
    /// The type of a property: a base type or an enum.
    Type,
}

impl Wanted {
    /// A type that is known without files may be an event or a template.
    pub(crate) fn fits(self, definition: &Definition<'_, '_>) -> bool {
        let kind = definition.kind;
        let is_template = matches!(kind, Kind::Template | Kind::Sub)
            || matches!(definition.origin, Origin::Known(_));
        match self {
            Self::Enum | Self::Type => kind == Kind::Enum,
            Self::Event => is_event(kind),
            Self::Model => kind == Kind::Model,
            Self::Record => is_event(kind) || is_template,
            Self::Template => is_template,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Enum => "an enum",
            Self::Event => "an event",
            Self::Model => "a model",
            Self::Record => "an event or a template",
            Self::Template => "a template",
            Self::Type => "a type",
        }
    }
}

/// A definition of the files, a type that is known without them, or a product of a `sub`.
#[derive(Debug)]
pub(crate) struct Definition<'s, 'a> {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) file: usize,
    pub(crate) span: Span,
    pub(crate) origin: Origin<'s, 'a>,
    /// Parent first, then templates in order. For an enum: the enums that it inherits.
    pub(crate) parents: Vec<usize>,
}

#[derive(Debug)]
pub(crate) enum Origin<'s, 'a> {
    Declared(&'s Declaration<'a>),
    Known(KnownType),
    Product,
}

/// All definitions, and the imports of each file.
pub(crate) struct Names<'s, 'a> {
    settings: &'s Settings<'s>,
    packages: Vec<Option<&'s str>>,
    scopes: Vec<Scope<'s>>,
    pub(crate) definitions: Vec<Definition<'s, 'a>>,
    by_name: HashMap<Arc<str>, usize>,
    by_last_part: HashMap<String, Vec<usize>>,
    pub(crate) findings: Vec<Finding>,
    unknown: usize,
    compared: usize,
}

/// The imports of a file.
#[derive(Debug, Default)]
struct Scope<'s> {
    by_last_part: HashMap<&'s str, &'s str>,
    wildcards: Vec<&'s str>,
}

impl<'s, 'a> Names<'s, 'a> {
    pub(crate) fn new(files: &'s [File<'a>], settings: &'s Settings<'s>) -> Self {
        let package = |file: &'s File<'a>| file.package.as_ref().map(|it| &*it.text);
        let mut names = Self {
            settings,
            packages: files.iter().map(package).collect(),
            scopes: Vec::new(),
            definitions: Vec::new(),
            by_name: HashMap::new(),
            by_last_part: HashMap::new(),
            findings: Vec::new(),
            unknown: 0,
            compared: 0,
        };
        for (number, file) in files.iter().enumerate() {
            for declaration in &file.declarations {
                names.define(Definition {
                    name: names.full_name(number, declaration.name.text),
                    kind: declaration.kind,
                    file: number,
                    span: declaration.name.span,
                    origin: Origin::Declared(declaration),
                    parents: Vec::new(),
                });
            }
        }
        for (number, file) in files.iter().enumerate() {
            let scope = names.scope(number, file);
            names.scopes.push(scope);
        }
        names
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.settings.edition == Edition::Legacy
    }

    /// Returns the name with the package of a file.
    pub(crate) fn full_name(&self, file: usize, name: &str) -> Arc<str> {
        match self.packages[file] {
            Some(package) => format!("{package}.{name}").into(),
            None => name.into(),
        }
    }

    pub(crate) fn get(&self, id: usize) -> &Definition<'s, 'a> {
        &self.definitions[id]
    }

    /// Returns the definition with this full name, if there is one.
    pub(crate) fn by_full_name(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a definition. Returns its id, or `None` if its name is taken.
    pub(crate) fn define(&mut self, definition: Definition<'s, 'a>) -> Option<usize> {
        if let Some(first) = self.by_name.get(&definition.name).map(|it| self.get(*it)) {
            let message = format!("{} is defined twice", definition.name);
            let (file, span) = (definition.file, definition.span);
            let error = Finding::error("duplicate", file, span, message);
            let error = error.related(first.file, first.span, "first defined here");
            self.findings.push(error);
            return None;
        }
        let id = self.definitions.len();
        self.by_name.insert(Arc::clone(&definition.name), id);
        if !matches!(definition.origin, Origin::Known(_)) {
            let last = last_part(&definition.name).to_owned();
            self.by_last_part.entry(last).or_default().push(id);
        }
        self.definitions.push(definition);
        Some(id)
    }

    fn scope(&mut self, number: usize, file: &'s File<'a>) -> Scope<'s> {
        let packages: HashSet<&str> = self.packages.iter().copied().flatten().collect();
        let mut scope = Scope::default();
        let mut unknown = Vec::new();
        for import in &file.imports {
            let (name, span) = (&*import.name.text, import.name.span);
            if !import.is_wildcard {
                scope.by_last_part.entry(last_part(name)).or_insert(name);
                if !self.by_name.contains_key(name) && self.settings.known(name).is_none() {
                    unknown.push((span, format!("there is no {name} to import")));
                }
            } else if scope.wildcards.len() == MAX_WILDCARDS {
                let message = format!("the file imports more than {MAX_WILDCARDS} whole packages");
                let error = Finding::error("too-large", number, span, message);
                self.findings.push(error);
                break;
            } else {
                scope.wildcards.push(name);
                if !packages.contains(name) && self.settings.known.is_none() {
                    unknown.push((span, format!("there is no package {name} to import")));
                }
            }
        }
        for (span, message) in unknown.into_iter().take(crate::finding::MAX_FINDINGS) {
            let warning = Finding::warning("unknown-import", number, span, message);
            let hint = "name the file that defines it, too, or remove the import";
            self.findings.push(warning.hint(hint));
        }
        scope
    }

    /// Returns the definition to which a name in a file refers. Notes an error if there is none.
    ///
    /// Order: package of the file, imports of one name, imports of packages, full name.
    pub(crate) fn resolve(
        &mut self,
        file: usize,
        name: &str,
        span: Span,
        wanted: Wanted,
    ) -> Option<usize> {
        if self.unknown == MAX_UNKNOWN {
            return None;
        }
        match self.find(file, name, span) {
            Some(id) => Some(id),
            None => self.unknown(file, name, span, wanted),
        }
    }

    /// Returns the definition to which a name in a file refers, if there is one.
    pub(crate) fn find(&mut self, file: usize, name: &str, span: Span) -> Option<usize> {
        let own = self.full_name(file, name);
        let scope = &self.scopes[file];
        let imported = scope.by_last_part.get(name).map(|it| (*it).to_owned());
        let wildcards = scope.wildcards.iter().map(|it| format!("{it}.{name}"));
        let mut candidates = vec![own.to_string()];
        candidates.extend(imported.into_iter().chain(wildcards));
        candidates.push(name.to_owned());
        for candidate in candidates {
            if let Some(id) = self.by_name.get(&*candidate) {
                return Some(*id);
            }
            if let Some(known) = self.settings.known(&candidate) {
                return self.define(Definition {
                    name: candidate.into(),
                    kind: Kind::Event,
                    file,
                    span,
                    origin: Origin::Known(known),
                    parents: Vec::new(),
                });
            }
        }
        None
    }

    fn unknown(&mut self, file: usize, name: &str, span: Span, wanted: Wanted) -> Option<usize> {
        let others = self
            .by_last_part
            .get(last_part(name))
            .map_or(&[][..], Vec::as_slice);
        let message = format!("{name} is not defined");
        if let ([id], true) = (others, self.settings.lenient) {
            let message = format!("{message} here; {} is taken", self.get(*id).name);
            let warning = Finding::warning("unknown-name", file, span, message);
            let id = *id;
            self.findings.push(warning);
            return Some(id);
        }
        let hint = match others {
            [] => match self.nearest(file, name, wanted) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => {
                    "define it, or name the file or folder with the file that defines it".into()
                }
            },
            others => {
                let imports = others.iter().take(3);
                let imports = imports.map(|it| format!("`import {}`", self.get(*it).name));
                format!("add {}", imports.collect::<Vec<_>>().join(" or "))
            }
        };
        self.findings
            .push(Finding::error("unknown-name", file, span, message).hint(hint));
        None
    }

    /// Returns the most similar name of the wanted kind, if one is similar.
    fn nearest(&mut self, file: usize, name: &str, wanted: Wanted) -> Option<String> {
        let name = last_part(name);
        let own = self.full_name(file, "");
        let base_types = match wanted {
            Wanted::Type => &Base::NAMES[..],
            _ => &[],
        };
        let base_types = base_types.iter().map(|it| (*it, *it));
        let defined = self.definitions.iter().filter(|it| wanted.fits(it));
        let defined = defined.map(|it| {
            let in_file = it.name.strip_prefix(&*own).filter(|it| !it.contains('.'));
            (last_part(&it.name), in_file.unwrap_or(&it.name))
        });
        let similar = base_types
            .chain(defined)
            .filter(|it| it.0.len().max(name.len()) <= MAX_COMPARED_BYTES)
            .take(MAX_COMPARED - self.compared)
            .inspect(|_| self.compared += 1)
            .map(|(known, shown)| (strsim::damerau_levenshtein(name, known), known, shown))
            .filter(|(distance, known, _)| *distance <= name.len().max(known.len()) / 3);
        similar.min().map(|it| it.2.to_owned())
    }

    /// Sets the parents of each definition of the files.
    pub(crate) fn link(&mut self) {
        for id in 0..self.definitions.len() {
            let definition = self.get(id);
            let Origin::Declared(declaration) = definition.origin else {
                continue;
            };
            let (kind, file) = (definition.kind, definition.file);
            let mut parents = Vec::new();
            if let Some(name) = &declaration.extends {
                parents.extend(self.parent(file, name, Wanted::Event));
            }
            let wanted = match kind {
                Kind::Enum => Wanted::Enum,
                Kind::Model => Wanted::Record,
                _ => Wanted::Template,
            };
            for name in &declaration.parents {
                parents.extend(self.parent(file, name, wanted));
            }
            self.definitions[id].parents = parents;
        }
    }

    fn parent(&mut self, file: usize, name: &QualifiedName, wanted: Wanted) -> Option<usize> {
        let id = self.resolve(file, &name.text, name.span, wanted)?;
        let found = self.get(id);
        if wanted.fits(found) {
            return Some(id);
        }
        let (kind, wanted_text) = (kind_name(found.kind), wanted.text());
        let message = format!("{} is {kind}, not {wanted_text}", found.name);
        let mut error = Finding::error("wrong-kind", file, name.span, message);
        error = match (wanted, found.kind) {
            (Wanted::Template, Kind::Event | Kind::AbstractEvent) => {
                error.hint(format!("write `extends {}` before the colon", name.text))
            }
            (Wanted::Event, Kind::Template) => error.hint(format!("write `: {}`", name.text)),
            _ => error,
        };
        if !matches!(found.origin, Origin::Known(_)) {
            error = error.related(found.file, found.span, "defined here");
        }
        self.findings.push(error);
        None
    }

    /// Resolves the model of a `sub`.
    pub(crate) fn model(&mut self, file: usize, name: &QualifiedName) -> Option<usize> {
        self.parent(file, name, Wanted::Model)
    }
}

pub(crate) fn is_event(kind: Kind) -> bool {
    matches!(kind, Kind::Event | Kind::AbstractEvent)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::AbstractEvent | Kind::Event => "an event",
        Kind::Enum => "an enum",
        Kind::Model => "a model",
        Kind::Sub | Kind::Template => "a template",
    }
}

pub(crate) fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
