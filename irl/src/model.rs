//! Record types with all their properties in wire order.

use std::fmt;
use std::sync::Arc;

use crate::Span;

/// The documentation of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The text of the comment `/** … */` before it, without asterisks.
    pub doc: Option<Arc<str>>,
    /// The text of `@author`.
    pub author: Option<Arc<str>>,
    /// The text of `@since`. It is no version of any particular scheme.
    pub since: Option<Arc<str>>,
}

/// An event with all that it inherits.
#[derive(Debug, Clone)]
pub struct Record {
    /// Package and name.
    pub name: Arc<str>,
    /// Whether no record of exactly this type is sent.
    pub is_abstract: bool,
    /// All properties: the parent's, the templates', its own.
    pub properties: Vec<Arc<Property>>,
    /// Other names of properties.
    pub aliases: Vec<Arc<Alias>>,
    /// Constants, the inherited ones first.
    pub constants: Vec<Arc<Constant>>,
    /// Its documentation; that of the `sub` if a `sub` made it.
    pub about: About,
    /// The number of the file, counted from 0.
    pub file: usize,
    /// The name in the file.
    pub span: Span,
}

impl Record {
    /// Returns the properties that are sent, in wire order. `transient` ones are not.
    pub fn wire(&self) -> impl Iterator<Item = &Property> {
        self.properties
            .iter()
            .map(|it| &**it)
            .filter(|it| !it.is_transient)
    }
}

/// A property of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub property_type: Type,
    /// It is stored, but not sent.
    pub is_transient: bool,
    /// Each reading adds one.
    pub is_auto_increment: bool,
    /// It can be set after the record was made.
    pub is_changeable: bool,
    /// The value that a probe puts there, as in `string op : operationSignature`.
    pub semantics: Option<Arc<str>>,
    /// Type and property to which `grouped by` refers.
    pub grouped_by: Option<(Arc<str>, Arc<str>)>,
    /// The default value. It is never sent.
    pub default: Option<Literal>,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
    /// The type that declares it.
    pub declared_in: Arc<str>,
    pub(crate) file: usize,
    pub(crate) span: Span,
}

/// Another name of a property, without bytes of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// The other name.
    pub name: Arc<str>,
    /// The property, or a further alias.
    pub target: Arc<str>,
    pub(crate) file: usize,
    pub(crate) span: Span,
    pub(crate) target_span: Span,
}

/// A constant of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub constant_type: Type,
    /// Its value.
    pub value: Literal,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
    pub(crate) file: usize,
    pub(crate) span: Span,
}

/// A type of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The type, or the type of the items.
    pub base: Base,
    /// The lengths of an array from the outermost dimension on; `None` for any length.
    pub dimensions: Vec<Option<u32>>,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        self.dimensions.iter().try_for_each(|it| match it {
            Some(length) => write!(f, "[{length}]"),
            None => f.write_str("[]"),
        })
    }
}

/// A type without dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// True or false.
    Boolean,
    /// A signed number of 8 bits.
    Byte,
    /// A unit of UTF-16.
    Char,
    /// A floating-point number of 64 bits.
    Double,
    /// A list of literals; the wire has the position in it.
    Enum(Arc<EnumType>),
    /// A floating-point number of 32 bits.
    Float,
    /// A signed number of 32 bits.
    Int,
    /// A signed number of 64 bits.
    Long,
    /// A value of a type that the language lacks (legacy).
    Payload(Arc<Payload>),
    /// A signed number of 16 bits.
    Short,
    /// Text.
    String,
}

impl Base {
    /// The names of the base types.
    pub(crate) const NAMES: [&str; 9] = [
        "boolean", "byte", "char", "double", "float", "int", "long", "short", "string",
    ];

    /// Returns the base type of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Boolean,
            "byte" => Self::Byte,
            "char" => Self::Char,
            "double" => Self::Double,
            "float" => Self::Float,
            "int" => Self::Int,
            "long" => Self::Long,
            "short" => Self::Short,
            "string" => Self::String,
            _ => return None,
        })
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Double => "double",
            Self::Enum(it) => &it.name,
            Self::Float => "float",
            Self::Int => "int",
            Self::Long => "long",
            Self::Payload(it) => {
                f.write_str(&it.type_name)?;
                return references(&it.references, f);
            }
            Self::Short => "short",
            Self::String => "string",
        })
    }
}

/// An enum with the literals that it inherits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    /// Package and name.
    pub name: Arc<str>,
    /// Names and values, its own before the inherited ones. The wire has the position, not the
    /// value.
    pub literals: Vec<(Arc<str>, i64)>,
    /// Its documentation.
    pub about: About,
}

/// A value of a type that the language lacks, and which of its references are sent with it (legacy).
///
/// If a file describes the class, its values are properties of the record instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The type in the foreign type system.
    pub type_name: Box<str>,
    /// The references that are followed. Others are sent as an object id.
    pub references: Vec<Reference>,
    /// Whether it is a class, which a file may describe. A type of `Settings::known` that the
    /// language lacks is none, and stays as it is.
    pub is_class: bool,
}

/// A reference of a payload, and the references that are followed from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The name of the reference.
    pub name: Box<str>,
    /// The references to follow.
    pub references: Vec<Self>,
}

fn references(all: &[Reference], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    f.write_str(" {")?;
    for reference in all {
        write!(f, " {}", reference.name)?;
        references(&reference.references, f)?;
    }
    f.write_str(" }")
}

/// A value in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// The value.
    pub value: Value,
    /// Its position.
    pub span: Span,
}

/// A default value, or the value of a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The items of an array.
    Array(Vec<Literal>),
    /// True or false.
    Bool(bool),
    /// A number with a fraction.
    Float(f64),
    /// A whole number.
    Int(i64),
    /// The version of the running program.
    KiekerVersion,
    /// A constant, or a literal of an enum.
    Name(String),
    /// Text, or a character.
    Text(String),
}
