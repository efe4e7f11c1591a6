//! Resolves declarations to record types: inheritance, types of properties, products of `sub`.

mod checks;
mod enums;
mod payloads;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{About, Alias, Base, Constant, EnumType, Payload, Property, Record, Type};
use crate::names::{Definition, Names, Origin, Wanted, is_event, last_part};
use crate::syntax::{self, Declaration, File, Kind, Member, Name, TypeName, TypeOf};
use crate::{Finding, KnownType, MAX_DEPTH, Settings, Span};

/// The most properties of all types together, with the inherited ones.
const MAX_PROPERTIES: usize = 250_000;

/// Resolves the files to record types.
pub(crate) fn resolve(files: &[File<'_>], settings: &Settings<'_>) -> (Vec<Record>, Vec<Finding>) {
    let mut names = Names::new(files, settings);
    names.link();
    let mut resolver = Resolver {
        names,
        files,
        closures: HashMap::new(),
        enums: HashMap::new(),
        payloads: HashMap::new(),
        stack: Vec::new(),
        properties: 0,
        is_too_large: false,
    };
    resolver.add_products();
    let records = resolver.records();
    (records, resolver.names.findings)
}

/// All members of a type in order.
#[derive(Debug, Default)]
struct Closure {
    properties: Vec<Arc<Property>>,
    aliases: Vec<Arc<Alias>>,
    constants: Vec<Arc<Constant>>,
    /// The properties and aliases by name.
    by_name: HashMap<Arc<str>, Place>,
    /// The length of the longest chain of parents.
    depth: usize,
    /// Something is missing, and a finding tells why.
    is_broken: bool,
}

/// A property, or an alias, which has no type.
#[derive(Debug, Clone)]
struct Place {
    base: Option<Base>,
    file: usize,
    span: Span,
}

struct Resolver<'s, 'a> {
    names: Names<'s, 'a>,
    files: &'s [File<'a>],
    closures: HashMap<usize, Arc<Closure>>,
    enums: HashMap<usize, Arc<EnumType>>,
    /// The values of payloads, by the place and the name of the property.
    payloads: HashMap<(usize, Span, Arc<str>), Vec<Arc<Property>>>,
    /// The definitions that are being resolved.
    stack: Vec<usize>,
    properties: usize,
    is_too_large: bool,
}

impl<'s, 'a> Resolver<'s, 'a> {
    fn note(&mut self, finding: Finding) {
        self.names.findings.push(finding);
    }

    fn records(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut inherited = HashSet::new();
        for id in 0..self.names.definitions.len() {
            let (kind, file, span) = {
                let it = self.names.get(id);
                if matches!(it.origin, Origin::Known(_)) {
                    continue;
                }
                (it.kind, it.file, it.span)
            };
            match kind {
                Kind::Enum => {
                    self.enum_type(id, file, span);
                    continue;
                }
                Kind::Model => continue,
                _ => {}
            }
            let closure = self.closure(id, file, span);
            let properties = match is_event(kind) {
                true => self.flat(&closure.properties),
                false => Vec::new(),
            };
            let definition = self.names.get(id);
            inherited.extend(definition.parents.iter().copied());
            if is_event(kind) {
                records.push(Record {
                    name: Arc::clone(&definition.name),
                    is_abstract: kind == Kind::AbstractEvent,
                    properties,
                    aliases: closure.aliases.clone(),
                    constants: closure.constants.clone(),
                    about: self.about(id),
                    file,
                    span,
                });
            }
        }
        self.check_aliases(&inherited);
        records.sort_by(|left, right| left.name.cmp(&right.name));
        records
    }

    fn about(&self, id: usize) -> About {
        let definition = self.names.get(id);
        match (&definition.origin, &*definition.parents) {
            (Origin::Declared(declaration), _) => declaration.about.clone(),
            (Origin::Product, [_, sub]) => self.about(*sub),
            _ => About::default(),
        }
    }

    /// Defines the types that each `sub` makes of the types of its model.
    fn add_products(&mut self) {
        let end = self.names.definitions.len();
        let mut heirs: HashMap<usize, Vec<usize>> = HashMap::new();
        for id in 0..end {
            for parent in &self.names.get(id).parents {
                heirs.entry(*parent).or_default().push(id);
            }
        }
        let mut count = 0_usize;
        for sub in 0..end {
            let Origin::Declared(Declaration {
                model: Some(model), ..
            }) = self.names.get(sub).origin
            else {
                continue;
            };
            let (file, span) = (self.names.get(sub).file, self.names.get(sub).span);
            let Some(model) = self.names.model(file, model) else {
                continue;
            };
            let mut types = Vec::new();
            let mut open = self.names.get(model).parents.clone();
            let mut seen: HashSet<usize> = open.iter().copied().collect();
            while let Some(id) = open.pop() {
                let kind = self.names.get(id).kind;
                if id != sub && (is_event(kind) || kind == Kind::Template) {
                    types.push(id);
                }
                let next = heirs.get(&id).into_iter().flatten();
                open.extend(next.copied().filter(|it| seen.insert(*it)));
            }
            types.sort_unstable();
            count += types.len();
            if count > MAX_PROPERTIES {
                self.too_large(file, span);
                return;
            }
            for id in types {
                let (base, kind) = (self.names.get(id), self.names.get(id).kind);
                let name = last_part(&self.names.get(sub).name);
                let name = format!("{name}_{}", last_part(&base.name));
                self.names.define(Definition {
                    name: self.names.full_name(file, &name),
                    kind: match is_event(kind) {
                        true => Kind::Event,
                        false => Kind::Template,
                    },
                    file,
                    span,
                    origin: Origin::Product,
                    parents: vec![id, sub],
                });
            }
        }
    }

    /// Returns all members of a type, in the order of their bytes: the parent's, the templates',
    /// and its own.
    fn closure(&mut self, id: usize, file: usize, span: Span) -> Arc<Closure> {
        if let Some(closure) = self.closures.get(&id) {
            return Arc::clone(closure);
        }
        if !self.enter(id, file, span) {
            return Arc::new(Closure {
                is_broken: true,
                ..Closure::default()
            });
        }
        let mut closure = Closure::default();
        let definition = self.names.get(id);
        let (own_file, own_span) = (definition.file, definition.span);
        let parents = definition.parents.clone();
        let mut declared = None;
        match &definition.origin {
            Origin::Declared(declaration) => declared = Some(*declaration),
            Origin::Known(known) => closure.properties = known_properties(definition, known),
            Origin::Product => {}
        }
        for property in &closure.properties {
            closure
                .by_name
                .insert(Arc::clone(&property.name), place(property));
        }
        for parent in parents {
            let inherited = self.closure(parent, own_file, own_span);
            closure.depth = closure.depth.max(inherited.depth + 1);
            closure.is_broken |= inherited.is_broken;
            for property in &inherited.properties {
                self.add(&mut closure, id, Arc::clone(property));
            }
            for alias in &inherited.aliases {
                self.add_alias(&mut closure, id, Arc::clone(alias));
            }
            for constant in &inherited.constants {
                if !closure.constants.contains(constant) {
                    closure.constants.push(Arc::clone(constant));
                }
            }
        }
        if let Some(declaration) = declared {
            self.add_members(&mut closure, id, declaration);
            self.check_literals(&closure, own_file, declaration);
        }
        self.stack.pop();
        if closure.depth == MAX_DEPTH {
            self.too_deep(id, own_file, own_span);
        }
        let members = closure.properties.len() + closure.aliases.len() + closure.constants.len();
        self.properties += members + 1;
        if self.properties > MAX_PROPERTIES {
            self.too_large(own_file, own_span);
            closure = Closure::default();
        }
        let closure = Arc::new(closure);
        self.closures.insert(id, Arc::clone(&closure));
        closure
    }

    /// Begins to resolve a definition. Notes an error if that goes round in a circle.
    fn enter(&mut self, id: usize, file: usize, span: Span) -> bool {
        if self.is_too_large {
            return false;
        }
        let name = &self.names.get(id).name;
        let round = self.stack.iter().position(|it| *it == id);
        let error = if let Some(first) = round {
            let round = self.stack.iter().skip(first).chain([&id]);
            let round: Vec<_> = round
                .map(|it| last_part(&self.names.get(*it).name))
                .collect();
            let message = format!("{name} inherits from itself, or takes a type from itself");
            let error = Finding::error("cycle", file, span, message);
            error.hint(format!("the circle is {}", round.join(" -> ")))
        } else if self.stack.len() >= MAX_DEPTH {
            self.too_deep(id, file, span);
            return false;
        } else {
            self.stack.push(id);
            return true;
        };
        self.note(error);
        false
    }

    fn too_deep(&mut self, id: usize, file: usize, span: Span) {
        let name = &self.names.get(id).name;
        let message = format!("{name} inherits through more than {MAX_DEPTH} definitions");
        self.note(Finding::error("too-large", file, span, message));
    }

    fn too_large(&mut self, file: usize, span: Span) {
        if !self.is_too_large {
            let message = format!("all types together have more than {MAX_PROPERTIES} properties");
            self.note(Finding::error("too-large", file, span, message));
        }
        self.is_too_large = true;
    }

    fn add_members(&mut self, closure: &mut Closure, id: usize, declaration: &'s Declaration<'a>) {
        let definition = self.names.get(id);
        let (file, owner) = (definition.file, Arc::clone(&definition.name));
        let mut own: HashMap<&str, Span> = HashMap::new();
        for member in &declaration.members {
            let name = match member {
                Member::Alias { name, .. } | Member::EnumLiteral { name, .. } => name,
                Member::Constant(it) => &it.name,
                Member::Property(it) => &it.name,
            };
            if let Some(first) = own.insert(name.text, name.span) {
                let message = format!("{owner} has {} twice", name.text);
                let error = Finding::error("duplicate", file, name.span, message);
                self.note(error.related(file, first, "first declared here"));
                continue;
            }
            match member {
                Member::Alias { target, .. } => {
                    let alias = Arc::new(Alias {
                        name: name.text.into(),
                        target: target.text.into(),
                        file,
                        span: name.span,
                        target_span: target.span,
                    });
                    self.add_alias(closure, id, alias);
                }
                Member::Constant(constant) => {
                    let constant_type = self.named(file, &constant.type_name, None);
                    closure.constants.extend(constant_type.map(|constant_type| {
                        Arc::new(Constant {
                            name: name.text.into(),
                            constant_type,
                            value: constant.value.clone(),
                            doc: constant.doc.clone(),
                            file,
                            span: name.span,
                        })
                    }));
                }
                Member::EnumLiteral { .. } => {}
                Member::Property(property) => {
                    match self.property(file, property, &owner, closure) {
                        Some(property) => self.add(closure, id, Arc::new(property)),
                        None => closure.is_broken = true,
                    }
                }
            }
        }
    }

    /// Adds a property unless there is one with its name and type.
    fn add(&mut self, closure: &mut Closure, id: usize, property: Arc<Property>) {
        let place = place(&property);
        if self.is_new(closure, id, &property.name, place) {
            closure.properties.push(property);
        }
    }

    fn add_alias(&mut self, closure: &mut Closure, id: usize, alias: Arc<Alias>) {
        let place = Place {
            base: None,
            file: alias.file,
            span: alias.span,
        };
        if self.is_new(closure, id, &alias.name, place) {
            closure.aliases.push(alias);
        }
    }

    fn is_new(&mut self, closure: &mut Closure, id: usize, name: &Arc<str>, place: Place) -> bool {
        let Some(first) = closure.by_name.get(name) else {
            closure.by_name.insert(Arc::clone(name), place);
            return true;
        };
        let is_same = match &place.base {
            // The same alias by two ways is one.
            None => (first.file, first.span) == (place.file, place.span),
            Some(base) => first.base.as_ref() == Some(base),
        };
        if !is_same {
            let definition = self.names.get(id);
            let message = format!("{} has {name} twice, with different types", definition.name);
            // An inherited one may be in another file.
            let is_own = place.file == definition.file && place.span > definition.span;
            let span = if is_own { place.span } else { definition.span };
            let error = Finding::error("duplicate", definition.file, span, message);
            let error = error.related(first.file, first.span, "first declared here");
            self.note(error);
        }
        false
    }

    fn property(
        &mut self,
        file: usize,
        property: &syntax::Property<'_>,
        owner: &Arc<str>,
        so_far: &Closure,
    ) -> Option<Property> {
        let mut grouped_by = None;
        let property_type = match &property.type_of {
            TypeOf::Named(name) => self.named(file, name, property.payload.as_ref())?,
            TypeOf::Group { owner, property } => {
                let (owner, found) = self.group(file, owner, property, so_far)?;
                grouped_by = Some((owner, property.text.into()));
                found
            }
        };
        Some(Property {
            name: property.name.text.into(),
            property_type,
            is_transient: property.modifiers.transient,
            is_auto_increment: property.modifiers.auto_increment,
            is_changeable: property.modifiers.changeable,
            semantics: property.semantics.map(|it| it.text.into()),
            grouped_by,
            default: property.default.clone(),
            doc: property.doc.clone(),
            declared_in: Arc::clone(owner),
            file,
            span: property.name.span,
        })
    }

    /// Returns the type of another type's property, or of an earlier one of the same type.
    fn group(
        &mut self,
        file: usize,
        owner: &Name<'_>,
        property: &Name<'_>,
        so_far: &Closure,
    ) -> Option<(Arc<str>, Type)> {
        let id = self
            .names
            .resolve(file, owner.text, owner.span, Wanted::Record)?;
        let other;
        let closure = if self.stack.last() == Some(&id) {
            so_far
        } else {
            other = self.closure(id, file, owner.span);
            &other
        };
        let name = Arc::clone(&self.names.get(id).name);
        let mut target = property.text;
        // An alias may name a further alias; a circle of them is found elsewhere.
        for _ in 0..MAX_DEPTH {
            match closure.aliases.iter().find(|it| &*it.name == target) {
                Some(alias) => target = &alias.target,
                None => break,
            }
        }
        let found = closure.properties.iter().find(|it| &*it.name == target);
        let Some(found) = found else {
            if !closure.is_broken {
                let message = format!("{name}.{} is not defined", property.text);
                self.note(Finding::error("unknown-name", file, property.span, message));
            }
            return None;
        };
        Some((name, found.property_type.clone()))
    }

    fn named(
        &mut self,
        file: usize,
        name: &TypeName,
        payload: Option<&Vec<crate::Reference>>,
    ) -> Option<Type> {
        let dimensions = name.dimensions.clone();
        let (text, span) = (&*name.name.text, name.name.span);
        let uses = &self.files[file].uses;
        let is_foreign = text.split_once('.').is_some_and(|(first, rest)| {
            !rest.contains('.') && uses.iter().any(|it| it.text == first)
        });
        // Only the legacy edition has classes as types.
        let found = match (self.names.is_legacy(), Base::of(text)) {
            (true, None) => self.names.find(file, text, span),
            _ => None,
        };
        let class = found.map(|it| self.names.get(it));
        let class = class.filter(|it| Wanted::Record.fits(it));
        let class = class.map(|it| Arc::clone(&it.name));
        let has_no_references = Base::of(text).is_some() || found.is_some() && class.is_none();
        if payload.is_some() && has_no_references {
            let message = format!("{text} is no class, so it has no references");
            self.note(Finding::error("payload", file, span, message));
            return None;
        }
        let base = if is_foreign || payload.is_some() || class.is_some() {
            Base::Payload(Arc::new(Payload {
                type_name: class.as_deref().unwrap_or(text).into(),
                references: payload.into_iter().flatten().cloned().collect(),
                is_class: true,
            }))
        } else if let Some(base) = Base::of(text) {
            base
        } else {
            let id = self.names.resolve(file, text, span, Wanted::Type)?;
            Base::Enum(self.enum_type(id, file, span)?)
        };
        Some(Type { base, dimensions })
    }
}

fn place(property: &Property) -> Place {
    Place {
        base: Some(property.property_type.base.clone()),
        file: property.file,
        span: property.span,
    }
}

fn known_properties(definition: &Definition<'_, '_>, known: &KnownType) -> Vec<Arc<Property>> {
    let properties = known.iter().map(|(name, property_type)| {
        Arc::new(Property {
            name: name.as_str().into(),
            property_type: property_type.clone(),
            is_transient: false,
            is_auto_increment: false,
            is_changeable: false,
            semantics: None,
            grouped_by: None,
            default: None,
            doc: None,
            declared_in: Arc::clone(&definition.name),
            file: definition.file,
            span: definition.span,
        })
    });
    properties.collect()
}
