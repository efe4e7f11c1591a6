//! Functions as their files show them.

use std::path::PathBuf;

use super::names::{Name, Scopes, SelfType};

/// A function as its file shows it.
#[derive(Debug)]
pub(crate) struct ParsedFunction {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    /// The position of its inserted attribute, or the position where one would stand.
    pub(crate) start: usize,
    pub(crate) name: String,
    /// The parts of its signature around class and name; none inside a macro.
    pub(crate) parts: Option<(String, String)>,
    pub(crate) owner: Owner,
    pub(crate) probe: Probe,
    pub(crate) reason: Option<&'static str>,
}

/// The probe of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    None,
    /// Inserted; with the explicit name, if it has one.
    Inserted(Option<String>),
    /// Written by hand: on the function, or on a block around it.
    ByHand(Option<String>),
}

/// The class of a function: a type or a path, and the functions around it.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) base: Base,
    pub(crate) within: Vec<String>,
    pub(crate) is_certain: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Base {
    Path(String),
    Type {
        scope: usize,
        written: String,
        of_type: SelfType,
        of_trait: Option<Name>,
    },
}

impl Owner {
    /// Returns the owner of the functions of a module.
    pub(crate) fn path(path: String) -> Self {
        Self {
            base: Base::Path(path),
            within: Vec::new(),
            is_certain: true,
        }
    }

    /// Returns the owner of a function within the function with this name.
    pub(crate) fn within(&self, name: String) -> Self {
        let mut owner = self.clone();
        owner.within.push(name);
        owner
    }

    /// Returns the class, and whether it is certain.
    pub(crate) fn class(&self, scopes: &Scopes) -> (String, bool) {
        let (mut class, is_certain) = match &self.base {
            Base::Path(path) => (path.clone(), true),
            Base::Type {
                scope,
                written,
                of_type,
                of_trait,
            } => scopes.class(*scope, written, of_type, of_trait.as_ref()),
        };
        for name in &self.within {
            class.push('.');
            class += name;
        }
        (class, is_certain && self.is_certain)
    }
}

impl ParsedFunction {
    /// Returns the signature, and whether it is certain; none inside a macro.
    pub(crate) fn signature(&self, scopes: &Scopes) -> Option<(String, bool)> {
        let (before, arguments) = self.parts.as_ref()?;
        let (class, is_certain) = self.owner.class(scopes);
        let signature = format!("{before} {class}.{}({arguments})", self.name);
        Some((signature, is_certain))
    }
}
