//! The syntax tree of a file.

use std::sync::Arc;

use crate::{About, Literal, Span};

/// A name and its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

/// A name with points. That of an import of a whole package has no last part.
#[derive(Debug, Clone)]
pub(crate) struct QualifiedName {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// A file: its package, its imports and its declarations.
#[derive(Debug, Default)]
pub(crate) struct File<'a> {
    pub(crate) package: Option<QualifiedName>,
    pub(crate) imports: Vec<Import>,
    /// Names of foreign type systems (legacy).
    pub(crate) uses: Vec<Name<'a>>,
    pub(crate) declarations: Vec<Declaration<'a>>,
    /// Where the lines begin in the layout of the formatter: imports, annotations, members.
    pub(crate) lines: Vec<LineStart>,
}

/// A token that the formatter puts at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineStart {
    pub(crate) start: usize,
    pub(crate) kind: LineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// The brace that ends a body.
    Close,
    /// The first token of a declaration, which may be an annotation.
    Declaration,
    /// The keyword of a declaration after its annotations.
    Head,
    Import,
    Member,
    Package,
}

#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) name: QualifiedName,
    pub(crate) is_wildcard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AbstractEvent,
    Enum,
    Event,
    Model,
    Sub,
    Template,
}

#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: Name<'a>,
    pub(crate) about: About,
    pub(crate) extends: Option<QualifiedName>,
    /// The names after the colon, or the types of a model.
    pub(crate) parents: Vec<QualifiedName>,
    /// The model of a `sub`.
    pub(crate) model: Option<QualifiedName>,
    pub(crate) members: Vec<Member<'a>>,
}

#[derive(Debug)]
pub(crate) enum Member<'a> {
    Alias { target: Name<'a>, name: Name<'a> },
    Constant(Box<Constant<'a>>),
    EnumLiteral { name: Name<'a>, value: Option<i64> },
    Property(Box<Property<'a>>),
}

#[derive(Debug)]
pub(crate) struct Constant<'a> {
    pub(crate) type_name: TypeName,
    pub(crate) name: Name<'a>,
    pub(crate) value: Literal,
    pub(crate) doc: Option<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct Property<'a> {
    pub(crate) modifiers: Modifiers,
    pub(crate) type_of: TypeOf<'a>,
    pub(crate) name: Name<'a>,
    /// The value that a probe puts there.
    pub(crate) semantics: Option<Name<'a>>,
    pub(crate) default: Option<Literal>,
    /// The named references of a payload (legacy).
    pub(crate) payload: Option<Vec<crate::Reference>>,
    pub(crate) doc: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modifiers {
    pub(crate) auto_increment: bool,
    pub(crate) changeable: bool,
    pub(crate) transient: bool,
}

/// The origin of a property's type.
#[derive(Debug)]
pub(crate) enum TypeOf<'a> {
    /// `grouped by Type.property`.
    Group {
        owner: Name<'a>,
        property: Name<'a>,
    },
    Named(TypeName),
}

#[derive(Debug, Clone)]
pub(crate) struct TypeName {
    pub(crate) name: QualifiedName,
    /// The lengths; `None` for a dimension of any length.
    pub(crate) dimensions: Vec<Option<u32>>,
}
