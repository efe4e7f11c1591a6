//! Resolves definitions to schemas: names, inheritance, types.

use std::collections::HashMap;
use std::sync::Arc;

use super::parser::{Definition, IrlFile, Kind, Member};
use super::{IrlError, IrlProblem, MAX_DEPTH};
use crate::record::catalog::Catalog;
use crate::record::schema::{EnumType, Field, FieldType, MAX_FIELDS, Schema, SchemaError};

/// Returns the schemas of all events that are not abstract and not in the catalog.
pub(super) fn schemas(
    files: &[IrlFile<'_>],
    catalog: &Catalog,
) -> Result<Vec<Arc<Schema>>, IrlError> {
    let mut by_name = HashMap::new();
    for file in files {
        for definition in &file.definitions {
            let name = format!("{}.{}", file.package, definition.name);
            if by_name.insert(name.clone(), (file, definition)).is_some() {
                let name = name.into();
                return Err(error(file, definition.line, IrlProblem::Twice { name }));
            }
        }
    }
    let mut resolver = Resolver {
        by_name,
        catalog,
        known: HashMap::new(),
    };
    let mut schemas = Vec::new();
    for file in files {
        let events = file.definitions.iter();
        for event in events.filter(|it| it.kind == Kind::Event) {
            let name = format!("{}.{}", file.package, event.name);
            let properties = resolver.properties(&name, file, event.line, 0)?;
            let fields = properties.iter().filter(|it| !it.is_transient);
            let fields: Vec<_> = fields
                .map(|it| Field::new(&*it.name, it.field_type.clone()))
                .collect();
            let schema = Schema::new(name, fields).map_err(|it| broken(file, event.line, it))?;
            let is_known = |known: &&Arc<Schema>| same_bytes(known, &schema);
            if catalog.get(schema.name()).filter(is_known).is_none() {
                schemas.push(Arc::new(schema));
            }
        }
    }
    Ok(schemas)
}

/// Whether two schemas have the same fields, regardless of their roles.
fn same_bytes(known: &Schema, schema: &Schema) -> bool {
    let fields = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields = fields.map(|it| (Box::<str>::from(it.name()), it.field_type().clone()));
        fields.collect::<Vec<_>>()
    };
    known.name() == schema.name() && fields(known) == fields(schema)
}

/// A property after inheritance.
#[derive(Debug, Clone)]
struct Property {
    name: Box<str>,
    field_type: FieldType,
    is_transient: bool,
}

struct Resolver<'a> {
    /// The definition and its file, by full name.
    by_name: HashMap<String, (&'a IrlFile<'a>, &'a Definition<'a>)>,
    catalog: &'a Catalog,
    /// The resolved properties, by full name, so that no definition is resolved twice.
    known: HashMap<String, Arc<Vec<Property>>>,
}

impl<'a> Resolver<'a> {
    /// Returns all properties of a definition, in the order of their bytes: the parent's, the
    /// templates', and its own.
    fn properties(
        &mut self,
        name: &str,
        user: &IrlFile<'_>,
        line: usize,
        depth: usize,
    ) -> Result<Arc<Vec<Property>>, IrlError> {
        if let Some(known) = self.known.get(name) {
            return Ok(Arc::clone(known));
        }
        if depth > MAX_DEPTH {
            let name = name.into();
            return Err(error(user, line, IrlProblem::Cycle { name }));
        }
        let mut all: Vec<Property> = Vec::new();
        let add = |all: &mut Vec<Property>, property: Property| {
            let is_same = |it: &Property| it.name == property.name && base(it) == base(&property);
            if !all.iter().any(is_same) {
                all.push(property);
            }
        };
        if let Some((file, definition)) = self.by_name.get(name).copied() {
            for parent in &definition.parents {
                let parent = self.full_name(file, parent, definition.line)?;
                let inherited =
                    self.properties(&parent, file, definition.line, depth.saturating_add(1))?;
                inherited.iter().for_each(|it| add(&mut all, it.clone()));
            }
            for member in &definition.members {
                let field_type = self.field_type(file, member, depth)?;
                add(
                    &mut all,
                    Property {
                        name: member.name.into(),
                        field_type,
                        is_transient: member.is_transient,
                    },
                );
            }
        } else if let Some(schema) = self.catalog.get(name) {
            let fields = schema.fields().iter();
            all.extend(fields.map(|it| Property {
                name: it.name().into(),
                field_type: it.field_type().clone(),
                is_transient: false,
            }));
        }
        if all.len() > MAX_FIELDS {
            let (name, found) = (name.into(), all.len());
            let problem = SchemaError::TooManyFields { name, found };
            return Err(broken(user, line, problem));
        }
        let all = Arc::new(all);
        self.known.insert(name.to_owned(), Arc::clone(&all));
        Ok(all)
    }

    fn field_type(
        &mut self,
        file: &IrlFile<'_>,
        member: &Member<'_>,
        depth: usize,
    ) -> Result<FieldType, IrlError> {
        if let Some((record, property)) = member.grouped_by {
            let record = self.full_name(file, record, member.line)?;
            let properties =
                self.properties(&record, file, member.line, depth.saturating_add(1))?;
            let found = properties.iter().find(|it| &*it.name == property);
            return found.map(|it| it.field_type.clone()).ok_or_else(|| {
                let name = format!("{record}.{property}").into();
                error(file, member.line, IrlProblem::Undefined { name })
            });
        }
        let one = match member.type_name {
            "boolean" => FieldType::Bool,
            "byte" => FieldType::I8,
            "char" => FieldType::Char,
            "double" => FieldType::F64,
            "float" => FieldType::F32,
            "int" => FieldType::I32,
            "long" => FieldType::I64,
            "short" => FieldType::I16,
            "string" => FieldType::String,
            name => {
                let name = self.full_name(file, name, member.line)?;
                let (mut seen, mut variants) = (Vec::new(), Vec::new());
                self.literals(&name, (file, member.line), &mut seen, &mut variants)?;
                let enum_type = EnumType::new(name, variants);
                FieldType::Enum(Arc::new(
                    enum_type.map_err(|it| broken(file, member.line, it))?,
                ))
            }
        };
        Ok(if member.is_list { one.list() } else { one })
    }

    /// Returns the literals of an enum: its own, and then the inherited ones, depth first.
    fn literals<'n>(
        &self,
        name: &str,
        (user, line): (&IrlFile<'_>, usize),
        seen: &mut Vec<String>,
        out: &mut Vec<&'n str>,
    ) -> Result<(), IrlError>
    where
        'a: 'n,
    {
        let found = self.by_name.get(name).copied();
        let Some((file, definition)) = found.filter(|it| it.1.kind == Kind::Enum) else {
            let name = name.into();
            return Err(error(user, line, IrlProblem::Undefined { name }));
        };
        if seen.iter().any(|it| it == name) {
            return Ok(());
        }
        seen.push(name.to_owned());
        if seen.len() > MAX_DEPTH {
            let name = name.into();
            return Err(error(file, definition.line, IrlProblem::Cycle { name }));
        }
        out.extend(definition.members.iter().map(|it| it.name));
        for parent in &definition.parents {
            let parent = self.full_name(file, parent, definition.line)?;
            self.literals(&parent, (file, definition.line), seen, out)?;
        }
        Ok(())
    }

    /// Returns the full name of the definition, or of the catalog's type, to which a name in a file
    /// refers.
    fn full_name(&self, file: &IrlFile<'_>, name: &str, line: usize) -> Result<String, IrlError> {
        let imports = file.imports.iter();
        let imported = imports.filter_map(|import| match import.strip_suffix('.') {
            Some(package) => Some(format!("{package}.{name}")),
            None => (import.rsplit('.').next() == Some(name)).then(|| import.clone()),
        });
        let own = format!("{}.{name}", file.package);
        let exists =
            |name: &String| self.by_name.contains_key(name) || self.catalog.get(name).is_some();
        let mut candidates = [own, name.to_owned()].into_iter().chain(imported);
        candidates.find(exists).ok_or_else(|| {
            let name = name.into();
            error(file, line, IrlProblem::Undefined { name })
        })
    }
}

/// Returns the type of a property, or of its items.
fn base(property: &Property) -> &FieldType {
    match &property.field_type {
        FieldType::List(inner) => inner,
        plain => plain,
    }
}

fn error(file: &IrlFile<'_>, line: usize, problem: IrlProblem) -> IrlError {
    IrlError::new(file.name, line, problem)
}

fn broken(file: &IrlFile<'_>, line: usize, problem: SchemaError) -> IrlError {
    error(file, line, IrlProblem::Schema(problem))
}
