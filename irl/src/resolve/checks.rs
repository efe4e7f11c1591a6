//! Checks of resolved types: values of constants and properties, and targets of aliases.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Closure, Resolver};
use crate::model::{Constant, Property, Value};
use crate::names::is_event;
use crate::syntax::{Declaration, Member};
use crate::{Finding, MAX_DEPTH, literals};

impl Resolver<'_, '_> {
    pub(super) fn check_literals(
        &mut self,
        closure: &Closure,
        file: usize,
        declaration: &Declaration<'_>,
    ) {
        let constants: HashMap<&str, &Constant> = closure
            .constants
            .iter()
            .map(|it| (&*it.name, &**it))
            .collect();
        let properties: HashMap<&str, &Property> = closure
            .properties
            .iter()
            .map(|it| (&*it.name, &**it))
            .collect();
        for member in &declaration.members {
            let (literal, wanted) = match member {
                Member::Constant(it) if is_round(it.name.text, &constants) => {
                    let message = format!("the constant {} has itself as its value", it.name.text);
                    self.note(Finding::error("cycle", file, it.value.span, message));
                    continue;
                }
                Member::Constant(it) => {
                    let constant = constants.get(it.name.text);
                    (Some(&it.value), constant.map(|it| &it.constant_type))
                }
                Member::Property(it) => {
                    let property = properties.get(it.name.text);
                    (it.default.as_ref(), property.map(|it| &it.property_type))
                }
                _ => continue,
            };
            if let (Some(literal), Some(wanted)) = (literal, wanted) {
                let found = literals::check(literal, wanted, &constants, file);
                self.names.findings.extend(found);
            }
        }
    }

    /// Checks the targets of aliases. The target may come from another template of an event.
    pub(super) fn check_aliases(&mut self, inherited: &HashSet<usize>) {
        let mut seen = HashSet::new();
        let mut ids: Vec<usize> = self.closures.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let definition = self.names.get(id);
            let closure = Arc::clone(self.closures.get(&id).expect("the id is one of its keys"));
            if !is_event(definition.kind) && inherited.contains(&id) {
                continue;
            }
            let targets: HashMap<&str, &str> = closure
                .aliases
                .iter()
                .map(|it| (&*it.name, &*it.target))
                .collect();
            for alias in &closure.aliases {
                let (mut target, mut steps) = (&*alias.target, 0);
                while let Some(next) = targets.get(target).filter(|_| steps < targets.len()) {
                    (target, steps) = (next, steps + 1);
                }
                let message = if targets.contains_key(target) {
                    format!("the alias {} is an alias of itself", alias.name)
                } else if !closure.by_name.contains_key(target) {
                    let owner = &self.names.get(id).name;
                    format!("{owner} has no property {target}")
                } else {
                    continue;
                };
                if seen.insert((alias.file, alias.span)) {
                    let (file, span) = (alias.file, alias.target_span);
                    self.note(Finding::error("alias", file, span, message));
                }
            }
        }
    }
}

/// Whether the value of a constant is the constant itself, directly or through others.
fn is_round(name: &str, constants: &HashMap<&str, &Constant>) -> bool {
    let mut next = name;
    for _ in 0..MAX_DEPTH {
        match constants.get(next).map(|it| &it.value.value) {
            Some(Value::Name(it)) if it == name => return true,
            Some(Value::Name(it)) => next = it,
            _ => return false,
        }
    }
    false
}
