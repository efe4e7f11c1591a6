//! Names of types within a crate, as far as its source text shows them.
//!
//! The class of a method at run time is the path where its type is *defined*. An `impl` block shows
//! only a name, which may be imported, renamed or an alias. Whatever cannot be found for certain
//! (types of other crates, types that macros make, names with several definitions) is an estimate.

use std::collections::HashMap;

use syn::ext::IdentExt as _;
use syn::{Type, TypeParamBound, UseTree};

/// The most steps from name to name. Imports can be circular.
const MAX_STEPS: u32 = 32;

/// The most imports and globs that one name may need.
const MAX_LOOKUPS: u32 = 4_096;

/// Types that every module knows.
const PRELUDE: [&str; 5] = ["Box", "Option", "Result", "String", "Vec"];

/// Types that belong to the language.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

/// A path without generic arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// Whether it begins with `::`.
    absolute: bool,
    segments: Vec<String>,
}

impl Name {
    /// Returns the name in a path.
    pub(crate) fn of(path: &syn::Path) -> Self {
        let segments = path.segments.iter();
        Self {
            absolute: path.leading_colon.is_some(),
            segments: segments.map(|it| it.ident.unraw().to_string()).collect(),
        }
    }

    /// Whether it is this one segment.
    fn is(&self, name: &str) -> bool {
        !self.absolute && matches!(self.segments.as_slice(), [only] if only == name)
    }
}

/// The type of an `impl` block.
#[derive(Debug, Clone)]
pub(crate) enum SelfType {
    Named(Name),
    /// A tuple, a slice or a generic type: its methods belong to the trait.
    Unnamed,
    /// Its text at run time is not known.
    Other,
}

impl SelfType {
    /// Returns the type; `generics` are the names of generic types.
    pub(crate) fn of(written: &Type, generics: &[String]) -> Self {
        let inner = match written {
            Type::Reference(reference) => &reference.elem,
            Type::Ptr(pointer) => &pointer.elem,
            _ => written,
        };
        match inner {
            Type::Array(_) | Type::Slice(_) | Type::Tuple(_) => Self::Unnamed,
            Type::Path(path) if path.qself.is_none() => {
                let name = Name::of(&path.path);
                match generics.iter().any(|generic| name.is(generic)) {
                    true => Self::Unnamed,
                    false => Self::Named(name),
                }
            }
            Type::TraitObject(object) if object.bounds.len() == 1 => match object.bounds.first() {
                Some(TypeParamBound::Trait(bound)) => Self::Named(Name::of(&bound.path)),
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// A name of the namespace of types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Definition {
    /// A type or trait.
    Type,
    /// Another name: an import or an alias of a type.
    Name(Name),
    Module(usize),
    /// An alias of a type without a name.
    Opaque,
}

/// A module, or a function with items of its own.
#[derive(Debug)]
struct Scope {
    /// Its path: `shop.till`.
    path: String,
    /// Whether the path is the one that the compiler knows.
    is_certain: bool,
    /// The scope around it.
    parent: Option<usize>,
    is_module: bool,
    names: HashMap<String, Vec<Definition>>,
    globs: Vec<Name>,
}

/// A found name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Resolved {
    /// A type of this crate: its class, and whether it is certain.
    Type(String, bool),
    Module(usize),
    /// A name that this crate does not define.
    External(Vec<String>),
    Unclear,
}

/// The scopes of a crate. The first one is its root.
#[derive(Debug)]
pub(crate) struct Scopes(Vec<Scope>);

impl Scopes {
    /// The root.
    pub(crate) const ROOT: usize = 0;

    /// Returns the root of the crate with this name.
    pub(crate) fn new(krate: &str) -> Self {
        let mut scopes = Self(Vec::new());
        scopes.add(None, krate.to_owned(), true, true);
        scopes
    }

    /// Adds a scope within another one.
    pub(crate) fn add(
        &mut self,
        parent: Option<usize>,
        path: String,
        is_certain: bool,
        is_module: bool,
    ) -> usize {
        self.0.push(Scope {
            path,
            is_certain,
            parent,
            is_module,
            names: HashMap::new(),
            globs: Vec::new(),
        });
        self.0.len() - 1
    }

    /// Adds a name to a scope.
    pub(crate) fn define(&mut self, scope: usize, name: String, definition: Definition) {
        self.0[scope]
            .names
            .entry(name)
            .or_default()
            .push(definition);
    }

    /// Adds the names of a `use`.
    pub(crate) fn import(&mut self, scope: usize, item: &syn::ItemUse) {
        let start = Name {
            absolute: item.leading_colon.is_some(),
            segments: Vec::new(),
        };
        self.import_tree(scope, start, &item.tree);
    }

    fn import_tree(&mut self, scope: usize, mut start: Name, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                start.segments.push(path.ident.unraw().to_string());
                self.import_tree(scope, start, &path.tree);
            }
            UseTree::Name(name) => self.import_one(scope, start, &name.ident, &name.ident),
            UseTree::Rename(name) => self.import_one(scope, start, &name.ident, &name.rename),
            UseTree::Glob(_) => self.0[scope].globs.push(start),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import_tree(scope, start.clone(), tree);
                }
            }
        }
    }

    fn import_one(&mut self, scope: usize, mut start: Name, of: &syn::Ident, to: &syn::Ident) {
        let mut to = to.unraw().to_string();
        if *of == "self" {
            if to == "self"
                && let Some(module) = start.segments.last()
            {
                to = module.clone();
            }
        } else {
            start.segments.push(of.unraw().to_string());
        }
        self.define(scope, to, Definition::Name(start));
    }

    /// Returns the class of the methods of an `impl` block in this scope, and whether it is certain.
    /// `written` is its type, and `of_trait` its trait.
    pub(crate) fn class(
        &self,
        scope: usize,
        written: &str,
        of_type: &SelfType,
        of_trait: Option<&Name>,
    ) -> (String, bool) {
        let name = match of_type {
            SelfType::Named(name) => Some(name),
            SelfType::Unnamed => of_trait,
            SelfType::Other => None,
        };
        let Some(name) = name else {
            return (written.to_owned(), false);
        };
        if let [only] = name.segments.as_slice() {
            let is_primitive = PRIMITIVES.contains(&only.as_str());
            if is_primitive && matches!(self.find(scope, name), Resolved::External(_)) {
                return (only.clone(), true);
            }
        }
        match self.find(scope, name) {
            Resolved::Type(class, is_certain) => (class, is_certain),
            Resolved::External(path) => match path.as_slice() {
                [only] if !PRELUDE.contains(&only.as_str()) => {
                    (format!("{}.{only}", self.0[scope].path), false)
                }
                _ => (path.join("."), false),
            },
            Resolved::Module(_) | Resolved::Unclear => (written.to_owned(), false),
        }
    }

    fn find(&self, scope: usize, name: &Name) -> Resolved {
        let mut lookups = MAX_LOOKUPS;
        self.resolve(scope, name, MAX_STEPS, &mut lookups)
    }

    fn resolve(&self, scope: usize, name: &Name, steps: u32, lookups: &mut u32) -> Resolved {
        let Some(steps) = steps.checked_sub(1) else {
            return Resolved::Unclear;
        };
        let Some((first, mut rest)) = name.segments.split_first() else {
            return Resolved::Unclear;
        };
        if name.absolute {
            return Resolved::External(name.segments.clone());
        }
        let mut found = match first.as_str() {
            "crate" => Resolved::Module(Self::ROOT),
            "self" => Resolved::Module(self.module(scope)),
            "super" => self.outer(self.module(scope)),
            _ => self.lexical(scope, first, steps, lookups),
        };
        while let Some((next, others)) = rest.split_first() {
            found = match found {
                Resolved::Module(module) if next == "super" => self.outer(module),
                Resolved::Module(module) => self
                    .member(module, next, steps, lookups)
                    .unwrap_or(Resolved::Unclear),
                Resolved::External(mut path) => {
                    path.push(next.clone());
                    Resolved::External(path)
                }
                Resolved::Type(..) | Resolved::Unclear => Resolved::Unclear,
            };
            rest = others;
        }
        found
    }

    /// Looks a first segment up in a scope, then in the functions around it and in their module.
    fn lexical(&self, scope: usize, name: &str, steps: u32, lookups: &mut u32) -> Resolved {
        let mut current = scope;
        loop {
            if let Some(found) = self.member(current, name, steps, lookups) {
                return found;
            }
            match self.0[current].parent {
                Some(parent) if !self.0[current].is_module => current = parent,
                _ => return Resolved::External(vec![name.to_owned()]),
            }
        }
    }

    /// Looks a name up among those of one scope; several different definitions are unclear.
    fn member(&self, scope: usize, name: &str, steps: u32, lookups: &mut u32) -> Option<Resolved> {
        let Some(left) = lookups.checked_sub(1) else {
            return Some(Resolved::Unclear);
        };
        *lookups = left;
        let this = &self.0[scope];
        let mut all = Vec::new();
        for definition in this.names.get(name).into_iter().flatten() {
            all.push(match definition {
                Definition::Type => {
                    Resolved::Type(format!("{}.{name}", this.path), this.is_certain)
                }
                Definition::Module(module) => Resolved::Module(*module),
                Definition::Name(other) => self.resolve(scope, other, steps, lookups),
                Definition::Opaque => Resolved::Unclear,
            });
        }
        if all.is_empty() {
            for glob in &this.globs {
                if let Resolved::Module(module) = self.resolve(scope, glob, steps, lookups)
                    && let Some(steps) = steps.checked_sub(1)
                {
                    all.extend(self.member(module, name, steps, lookups));
                }
            }
        }
        all.dedup();
        match all.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(Resolved::Unclear),
        }
    }

    fn module(&self, mut scope: usize) -> usize {
        while let (false, Some(parent)) = (self.0[scope].is_module, self.0[scope].parent) {
            scope = parent;
        }
        scope
    }

    fn outer(&self, module: usize) -> Resolved {
        match self.0[module].parent {
            Some(parent) => Resolved::Module(self.module(parent)),
            None => Resolved::Unclear,
        }
    }
}

/// Returns the definition of an alias of a type.
pub(crate) fn alias(alias: &syn::ItemType) -> Definition {
    match SelfType::of(&alias.ty, &[]) {
        SelfType::Named(name) if matches!(*alias.ty, Type::Path(_)) => Definition::Name(name),
        _ => Definition::Opaque,
    }
}
