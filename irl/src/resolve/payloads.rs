//! Payloads: the values of an object in place of a property whose type is a class.
//!
//! A class is an event or a template. Its properties are sent in their order, depth first. A
//! property whose type is a class, too, is followed only if the payload names it. Otherwise its
//! object id is sent, so that a record never grows with the state of the program.

use std::collections::HashMap;
use std::sync::Arc;

use super::{MAX_PROPERTIES, Resolver};
use crate::Finding;
use crate::model::{Base, Payload, Property, Reference, Type};

/// The most levels of objects in a payload.
const MAX_LEVELS: usize = 8;

/// The most values of a payload.
const MAX_VALUES: usize = 256;

/// The longest name of a value, with the names on the way to it.
const MAX_PATH_BYTES: usize = 255;

impl Resolver<'_, '_> {
    /// Returns the properties with the values of payloads in their places. A payload stays as it is
    /// if no file describes its class.
    pub(super) fn flat(&mut self, properties: &[Arc<Property>]) -> Vec<Arc<Property>> {
        let mut flat = Vec::new();
        for property in properties {
            let references = match &property.property_type.base {
                Base::Payload(it) if it.is_class => &it.references,
                _ => {
                    flat.push(Arc::clone(property));
                    continue;
                }
            };
            // Heirs share the property, and get each finding once.
            let key = (property.file, property.span, Arc::clone(&property.name));
            if !self.payloads.contains_key(&key) {
                let values = Vec::new();
                let mut expansion = Expansion { property, values };
                let path = property.name.to_string();
                if let Err(finding) = expansion.object(self, path, property, references, 1) {
                    self.note(*finding);
                }
                self.payloads.insert(key.clone(), expansion.values);
            }
            let values = &self.payloads[&key];
            self.properties += values.len();
            if self.properties > MAX_PROPERTIES {
                self.too_large(property.file, property.span);
                return Vec::new();
            }
            flat.extend(values.iter().cloned());
        }
        flat
    }
}

/// The values of one payload.
struct Expansion<'a> {
    property: &'a Property,
    values: Vec<Arc<Property>>,
}

impl Expansion<'_> {
    /// Adds the values of an object, depth first.
    fn object(
        &mut self,
        resolver: &mut Resolver<'_, '_>,
        path: String,
        property: &Property,
        references: &[Reference],
        level: usize,
    ) -> Result<(), Box<Finding>> {
        let Base::Payload(payload) = &property.property_type.base else {
            unreachable!("the callers found a payload");
        };
        let Some(class) = resolver.names.by_full_name(&payload.type_name) else {
            // In the current edition a payload is an error already.
            if resolver.names.is_legacy() {
                let class = &payload.type_name;
                let message = format!("{path} is a {class}, a class that no file describes");
                let Property { file, span, .. } = *self.property;
                let warning = Finding::warning("unknown-class", file, span, message);
                let hint = format!("name a file with a template {class}, too, to read its records");
                resolver.note(warning.hint(hint));
            }
            let payload = Payload {
                references: references.to_vec(),
                ..Payload::clone(payload)
            };
            return self.push(path, Base::Payload(Arc::new(payload)), property);
        };
        if !property.property_type.dimensions.is_empty() {
            if level == 1 && references.is_empty() {
                return self.push(path, Base::Long, property);
            }
            let message = format!("{path} is an array, so the size of its objects has no bound");
            let hint = "do not name it, so that the object ids are sent";
            return Err(self.error("payload", message).hint(hint).into());
        }
        let closure = resolver.closure(class, self.property.file, self.property.span);
        if level > MAX_LEVELS || closure.properties.len() > MAX_VALUES {
            return Err(self.too_large().into());
        }
        let mut named: HashMap<&str, &Reference> = HashMap::new();
        for reference in references {
            if named.insert(&reference.name, reference).is_some() {
                let message = format!("the payload names {path}.{} twice", reference.name);
                return Err(self.error("duplicate", message).into());
            }
        }
        for inner in closure.properties.iter().filter(|it| !it.is_transient) {
            let path = format!("{path}.{}", inner.name);
            let base = &inner.property_type.base;
            let is_object = matches!(base, Base::Payload(it) if it.is_class);
            match named.remove(&*inner.name) {
                None if is_object => self.push(path, Base::Long, inner)?,
                Some(it) if is_object => {
                    self.object(resolver, path, inner, &it.references, level + 1)?;
                }
                Some(it) if !it.references.is_empty() => {
                    let found = &inner.property_type;
                    let message = format!("{path} is {found}, which has no references");
                    return Err(self.error("payload", message).into());
                }
                _ => self.push(path, base.clone(), inner)?,
            }
        }
        match references.iter().find(|it| named.contains_key(&*it.name)) {
            Some(it) if !closure.is_broken => {
                let (class, name) = (&resolver.names.get(class).name, &it.name);
                let message = format!("{path}: {class} sends no property {name}");
                Err(self.error("unknown-name", message).into())
            }
            _ => Ok(()),
        }
    }

    /// Adds a value as a property of the record.
    fn push(&mut self, path: String, base: Base, property: &Property) -> Result<(), Box<Finding>> {
        if self.values.len() == MAX_VALUES || path.len() > MAX_PATH_BYTES {
            return Err(self.too_large().into());
        }
        let dimensions = property.property_type.dimensions.clone();
        self.values.push(Arc::new(Property {
            name: path.into(),
            property_type: Type { base, dimensions },
            is_auto_increment: false,
            semantics: None,
            grouped_by: None,
            default: None,
            doc: property.doc.clone(),
            ..self.property.clone()
        }));
        Ok(())
    }

    fn too_large(&self) -> Finding {
        let message = format!(
            "the payload {} has more than {MAX_VALUES} values, {MAX_LEVELS} levels of objects, or \
             {MAX_PATH_BYTES} bytes in a name",
            self.property.name
        );
        self.error("too-large", message)
            .hint("name fewer references")
    }

    fn error(&self, rule: &'static str, message: String) -> Finding {
        Finding::error(rule, self.property.file, self.property.span, message)
    }
}
