//! A pattern for operations, as a tree; the parts point into the pattern's text.

use super::word::Word;

/// A pattern for operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation<'t> {
    pub(super) modifiers: Vec<Word<'t>>,
    /// Only a strict pattern may leave it out.
    pub(super) returned: Option<Returned<'t>>,
    pub(super) class: TypePattern<'t>,
    pub(super) method: Method<'t>,
    pub(super) parameters: Vec<Parameter<'t>>,
    /// `None` without the word.
    pub(super) throws: Option<Vec<Parameter<'t>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Returned<'t> {
    Constructor,
    Type(TypePattern<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Method<'t> {
    Constructor,
    Named(Name<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parameter<'t> {
    /// `..`: any parameters.
    Any,
    /// `*`: one parameter.
    One,
    Type(TypePattern<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypePattern<'t> {
    /// At least one name, the last part.
    pub(super) parts: Vec<Part<'t>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// `..`: any packages.
    Packages,
    Name(Name<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name<'t> {
    pub(super) pieces: Vec<Piece<'t>>,
    /// `[][]`; anything of brackets and letters where Kieker takes it.
    pub(super) brackets: &'t str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    Star,
}
