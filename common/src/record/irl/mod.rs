//! Record types from files of Kieker's Instrumentation Record Language (IRL).
//!
//! ```text
//! text of .irl files -> lexer -> parser -> resolve -> schemas in a Catalog
//! ```
//!
//! Supported are events (`event`, `entity`), templates, enums, `extends`, templates after a colon,
//! arrays of one dimension, `grouped by`, `transient`, `alias`, constants and defaults. Defaults,
//! constants, aliases and annotations have no bytes, so only their syntax is checked. Arrays of a
//! fixed length, of several dimensions, `model` and `sub` are refused.
//!
//! Source: the grammar and the generators of `kieker-monitoring/instrumentation-languages`.

mod lexer;
mod parser;
mod resolve;
#[cfg(test)]
mod tests;

use super::catalog::Catalog;
use super::schema::SchemaError;

/// The most bytes of all files of a schema.
pub const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of templates and parents.
const MAX_DEPTH: usize = 64;

/// The text of a file, and its name in errors.
#[derive(Debug, Clone, Copy)]
pub struct IrlSource<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Adds the events of these files to a catalog. A type of the catalog with the same description
/// stays; a type with another description is replaced.
///
/// The files may refer to each other's definitions, and to types of the catalog as parents.
///
/// ```
/// use baler_common::record::{Catalog, irl};
///
/// let text = r#"
///     package app.orders
///     import kieker.common.record.flow.trace.operation.BeforeOperationEvent
///     template IPriced { long cents = 0 }
///     event OrderEvent extends BeforeOperationEvent : IPriced { string[] items }
/// "#;
/// let mut catalog = Catalog::kieker();
/// irl::read(&mut catalog, &[irl::IrlSource { name: "orders.irl", text }])?;
/// let order = catalog.get("app.orders.OrderEvent").ok_or("the event is not there")?;
/// assert_eq!(order.fields().len(), 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An [`IrlError`] with the position. The catalog then stays as it was.
pub fn read(catalog: &mut Catalog, sources: &[IrlSource<'_>]) -> Result<(), IrlError> {
    let bytes = sources
        .iter()
        .fold(0_usize, |sum, it| sum.saturating_add(it.text.len()));
    if bytes > MAX_BYTES {
        return Err(IrlError::new("", 0, IrlProblem::TooLarge { bytes }));
    }
    let files = sources.iter().map(parser::file);
    let files = files.collect::<Result<Vec<_>, _>>()?;
    for schema in resolve::schemas(&files, catalog)? {
        catalog.register(schema);
    }
    Ok(())
}

/// A file of record types cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct IrlError {
    /// The name of the file.
    pub file: Box<str>,
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: IrlProblem,
}

impl IrlError {
    fn new(file: &str, line: usize, problem: IrlProblem) -> Self {
        Self {
            file: file.into(),
            line,
            problem,
        }
    }
}

/// The problems of a file of record types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IrlProblem {
    /// A definition inherits from itself, or the inheritance is too deep.
    #[error("{name} inherits from itself, or through more than {MAX_DEPTH} definitions")]
    Cycle {
        /// The definition.
        name: Box<str>,
    },
    /// Another token was expected.
    #[error("{found} where {expected} should be")]
    Expected {
        /// The expected token.
        expected: &'static str,
        /// The real token.
        found: Box<str>,
    },
    /// The type is not possible.
    #[error("{0}")]
    Schema(SchemaError),
    /// The files are too large.
    #[error("the files have {bytes} bytes, more than {MAX_BYTES}")]
    TooLarge {
        /// Their size.
        bytes: usize,
    },
    /// Two definitions have the same name.
    #[error("{name} is defined twice")]
    Twice {
        /// The name.
        name: Box<str>,
    },
    /// A definition is missing.
    #[error(
        "{name} is not defined; name the folder with the file that defines it, or import it by \
         its full name"
    )]
    Undefined {
        /// The name.
        name: Box<str>,
    },
    /// A part of the language that Kieker's formats cannot represent here.
    #[error("{what} cannot be read here; Kieker's own record types do without")]
    Unsupported {
        /// The part.
        what: &'static str,
    },
}
