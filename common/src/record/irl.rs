//! Record types from and to files of Kieker's Instrumentation Record Language (IRL).
//!
//! ```text
//! text of .irl files -> baler-irl -> records -> schemas in a Catalog
//! schemas -> `write` -> text of .irl files
//! ```
//!
//! Both editions of the language are read. Mistakes in default values, constants and aliases do not
//! matter, because these have no bytes. Arrays of a fixed length or of several dimensions, and
//! payloads (legacy edition) whose class no file describes, are refused. The values of other payloads
//! are fields with points in their names: `customer.address.city`.

#[cfg(test)]
mod tests;
mod write;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use baler_irl::{
    Base, Edition, Finding, Payload, Property, Record, Settings, Severity, Span, Type,
    line_and_column,
};
pub use baler_irl::{MAX_BYTES, Source as IrlSource};
pub use write::{WrittenTypes, write};

use super::catalog::Catalog;
use super::schema::{EnumType, Field, FieldType, Schema, SchemaError};

/// Rules about parts that have no bytes.
const WITHOUT_BYTES: &[&str] = &["alias", "wrong-value"];

/// Adds the events of these files to a catalog. A type of the catalog with the same description
/// stays; a type with another description is replaced.
///
/// The files may refer to each other's definitions, and to types of the catalog as parents.
///
/// ```
/// use std::sync::Arc;
///
/// use baler_common::record::{Catalog, Field, FieldType, Schema, irl};
///
/// let text = r#"
///     package app.orders
///     import app.TimedEvent
///     template IPriced { long cents = 0 }
///     event OrderEvent extends TimedEvent : IPriced { string[] items }
/// "#;
/// let mut catalog = Catalog::new();
/// let fields = vec![Field::new("timestamp", FieldType::I64)];
/// catalog.register(Arc::new(Schema::new("app.TimedEvent", fields)?));
/// irl::read(&mut catalog, &[irl::IrlSource { name: "orders.irl", text }])?;
/// let order = catalog.get("app.orders.OrderEvent").ok_or("the event is not there")?;
/// assert_eq!(order.fields().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An [`IrlError`] with the position. The catalog then stays as it was.
pub fn read(catalog: &mut Catalog, sources: &[IrlSource<'_>]) -> Result<(), IrlError> {
    let known = Known::default();
    let look_up = |name: &str| catalog.get(name).map(|it| known.properties(it));
    let settings = Settings {
        edition: Edition::Legacy,
        lenient: false,
        known: Some(&look_up),
    };
    let workspace = baler_irl::read(sources, &settings);
    let is_wrong =
        |it: &&Finding| it.severity == Severity::Error && !WITHOUT_BYTES.contains(&it.rule);
    if let Some(finding) = workspace.findings.iter().find(is_wrong) {
        let message = match &finding.hint {
            Some(hint) => format!("{}; {hint}", finding.message),
            None => finding.message.clone(),
        };
        let problem = IrlProblem::Language(message.into());
        return Err(IrlError::new(sources, finding.file, finding.span, problem));
    }
    let mut schemas = Vec::new();
    for record in workspace.records.iter().filter(|it| !it.is_abstract) {
        let schema = known
            .schema(record)
            .map_err(|problem| IrlError::new(sources, record.file, record.span, problem))?;
        let is_known = |known: &&Arc<Schema>| same_bytes(known, &schema);
        if catalog.get(schema.name()).filter(is_known).is_none() {
            schemas.push(Arc::new(schema));
        }
    }
    for schema in schemas {
        catalog.register(schema);
    }
    Ok(())
}

/// Whether two schemas have the same fields, regardless of their roles.
fn same_bytes(known: &Schema, schema: &Schema) -> bool {
    fn fields(schema: &Schema) -> impl Iterator<Item = (&str, &FieldType)> {
        schema
            .fields()
            .iter()
            .map(|it| (it.name(), it.field_type()))
    }
    known.name() == schema.name() && fields(known).eq(fields(schema))
}

/// Types of the catalog that the language lacks, by the name that stands for them.
#[derive(Debug, Default)]
struct Known {
    foreign: RefCell<HashMap<String, FieldType>>,
}

impl Known {
    /// Returns the fields of a type of the catalog in terms of the language.
    fn properties(&self, schema: &Arc<Schema>) -> baler_irl::KnownType {
        let fields = schema.fields().iter();
        let fields = fields.map(|it| (it.name().to_owned(), self.property_type(it.field_type())));
        fields.collect()
    }

    fn property_type(&self, field_type: &FieldType) -> Type {
        let (inner, dimensions) = match field_type {
            FieldType::List(inner) => (&**inner, vec![None]),
            plain => (plain, Vec::new()),
        };
        let base = match inner {
            FieldType::Bool => Base::Boolean,
            FieldType::Char => Base::Char,
            FieldType::F32 => Base::Float,
            FieldType::F64 => Base::Double,
            FieldType::I8 => Base::Byte,
            FieldType::I16 => Base::Short,
            FieldType::I32 => Base::Int,
            FieldType::I64 => Base::Long,
            FieldType::String => Base::String,
            _ => {
                let mut name = field_type.to_string();
                let mut foreign = self.foreign.borrow_mut();
                // Two enums may have one name and other variants.
                while foreign.get(&name).is_some_and(|it| it != field_type) {
                    name.push('\'');
                }
                foreign.insert(name.clone(), field_type.clone());
                let payload = Payload {
                    type_name: name.into(),
                    references: Vec::new(),
                    is_class: false,
                };
                return Type {
                    base: Base::Payload(Arc::new(payload)),
                    dimensions: Vec::new(),
                };
            }
        };
        Type { base, dimensions }
    }

    fn schema(&self, record: &Record) -> Result<Schema, IrlProblem> {
        let fields = record.wire().map(|it| self.field(it));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        Schema::new(&*record.name, fields).map_err(IrlProblem::Schema)
    }

    fn field(&self, property: &Property) -> Result<Field, IrlProblem> {
        let unsupported = |what| Err(IrlProblem::Unsupported { what });
        let item = match &property.property_type.base {
            Base::Boolean => FieldType::Bool,
            Base::Byte => FieldType::I8,
            Base::Char => FieldType::Char,
            Base::Double => FieldType::F64,
            Base::Enum(it) => {
                let literals = it.literals.iter().map(|(name, _)| &**name);
                let made = EnumType::new(&*it.name, literals.collect::<Vec<_>>());
                FieldType::Enum(Arc::new(made.map_err(IrlProblem::Schema)?))
            }
            Base::Float => FieldType::F32,
            Base::Int => FieldType::I32,
            Base::Long => FieldType::I64,
            Base::Payload(it) => {
                let foreign = self.foreign.borrow();
                let known = foreign.get(&*it.type_name).filter(|_| !it.is_class);
                known.cloned().ok_or_else(|| {
                    let (name, class) = (&property.name, &it.type_name);
                    let message = format!(
                        "{name} is a {class}, a class that no file describes; name a file with a \
                         template {class}, too"
                    );
                    IrlProblem::Language(message.into())
                })?
            }
            Base::Short => FieldType::I16,
            Base::String => FieldType::String,
        };
        let field_type = match &*property.property_type.dimensions {
            [] => item,
            [None] => item.list(),
            [Some(_)] => return unsupported("an array of a fixed length"),
            _ => return unsupported("an array of several dimensions"),
        };
        Ok(Field::new(&*property.name, field_type))
    }
}

/// A file of record types cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct IrlError {
    /// The name of the file.
    pub file: Box<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem.
    pub problem: IrlProblem,
}

impl IrlError {
    fn new(sources: &[IrlSource<'_>], file: usize, span: Span, problem: IrlProblem) -> Self {
        let source = sources.get(file);
        let (line, column) = source.map_or((1, 1), |it| line_and_column(it.text, span.start));
        Self {
            file: source.map_or("", |it| it.name).into(),
            line,
            column,
            problem,
        }
    }
}

/// The problems of a file of record types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IrlProblem {
    /// The text is wrong.
    #[error("{0}")]
    Language(Box<str>),
    /// The type is not possible.
    #[error("{0}")]
    Schema(SchemaError),
    /// A part of the language that Kieker's formats cannot represent here.
    #[error("{what} cannot be read here; Kieker's own record types do without")]
    Unsupported {
        /// The part.
        what: &'static str,
    },
}
