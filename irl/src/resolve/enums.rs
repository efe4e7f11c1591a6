//! Enums with the literals that they inherit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{MAX_PROPERTIES, Resolver};
use crate::model::EnumType;
use crate::names::Origin;
use crate::syntax::{Kind, Member};
use crate::{Finding, Span};

impl Resolver<'_, '_> {
    /// Returns an enum with its own literals and then the inherited ones, depth first.
    pub(super) fn enum_type(
        &mut self,
        id: usize,
        file: usize,
        span: Span,
    ) -> Option<Arc<EnumType>> {
        if let Some(known) = self.enums.get(&id) {
            return Some(Arc::clone(known));
        }
        let definition = self.names.get(id);
        let Origin::Declared(declaration) = definition.origin else {
            return self.no_enum(id, file, span);
        };
        if definition.kind != Kind::Enum {
            return self.no_enum(id, file, span);
        }
        if !self.enter(id, file, span) {
            return None;
        }
        let definition = self.names.get(id);
        let (file, span, name) = (
            definition.file,
            definition.span,
            Arc::clone(&definition.name),
        );
        let mut literals: Vec<(Arc<str>, i64)> = Vec::new();
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let mut values: HashMap<i64, Span> = HashMap::new();
        for member in &declaration.members {
            let Member::EnumLiteral {
                name: literal,
                value,
            } = member
            else {
                continue;
            };
            let position = i64::try_from(literals.len()).expect("a file has few literals");
            let value = value.unwrap_or(position);
            let text: Arc<str> = literal.text.into();
            if !seen.insert(Arc::clone(&text)) {
                let message = format!("{name} has {text} twice");
                self.note(Finding::error("duplicate", file, literal.span, message));
                continue;
            }
            if let Some(first) = values.insert(value, literal.span) {
                let message = format!("{name} has the value {value} twice");
                let hint = "a literal without a value has its position, counted from 0";
                let error = Finding::error("duplicate", file, literal.span, message);
                self.note(error.hint(hint).related(file, first, "first given here"));
            }
            literals.push((text, value));
        }
        for parent in self.names.get(id).parents.clone() {
            let Some(inherited) = self.enum_type(parent, file, span) else {
                continue;
            };
            for (literal, value) in &inherited.literals {
                if seen.insert(Arc::clone(literal)) {
                    literals.push((Arc::clone(literal), *value));
                }
            }
        }
        self.stack.pop();
        self.properties += literals.len();
        if self.properties > MAX_PROPERTIES {
            self.too_large(file, span);
            return None;
        }
        let about = declaration.about.clone();
        let made = Arc::new(EnumType {
            name,
            literals,
            about,
        });
        self.enums.insert(id, Arc::clone(&made));
        Some(made)
    }

    fn no_enum(&mut self, id: usize, file: usize, span: Span) -> Option<Arc<EnumType>> {
        let message = format!("{} is no type of a property", self.names.get(id).name);
        let error = Finding::error("wrong-kind", file, span, message);
        let hint =
            "types are long, int, short, byte, boolean, float, double, char, string and enums";
        self.note(error.hint(hint));
        None
    }
}
