#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    reason = "what cannot happen must not become a wrong type"
)]

#[cfg(feature = "generate")]
pub mod build;
mod compare;
mod files;
mod finding;
#[deny(clippy::expect_used)]
mod format;
#[cfg(feature = "generate")]
#[allow(clippy::indexing_slicing, reason = "every type was entered before")]
mod generate;
// Texts come from outside.
#[deny(clippy::expect_used)]
mod lexer;
mod literals;
mod model;
#[allow(
    clippy::indexing_slicing,
    reason = "the numbers of files and definitions are positions, and nothing is removed"
)]
mod names;
#[deny(clippy::expect_used)]
mod parser;
#[cfg(feature = "diagnostics")]
mod render;
#[allow(clippy::indexing_slicing, reason = "as for the names")]
mod resolve;
mod syntax;
mod workspace;

pub use compare::{Change, Effect, compare};
pub use files::{FileError, TextFile, find_files, read_file, read_files};
pub use finding::{Finding, Severity, Span, line_and_column};
pub use format::format;
#[cfg(feature = "generate")]
pub use generate::{GeneratedFile, LANGUAGES, generate};
pub use model::{
    About, Alias, Base, Constant, EnumType, Literal, Payload, Property, Record, Reference, Type,
    Value,
};
#[cfg(feature = "diagnostics")]
pub use render::render;
pub use workspace::{Workspace, read};

/// The most bytes of all files together.
pub const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of inheritance, of arrays and of payloads.
pub const MAX_DEPTH: usize = 64;

/// The name and the text of a file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// The edition of the language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Edition {
    /// That of Kieker's own files. Constructs of the legacy edition are errors.
    #[default]
    Current,
    /// That of 2013, with `struct`, `pattern`, `tag`, `use`, `default` and payloads. These are
    /// warnings.
    Legacy,
}

/// The properties of a type that is known without files: names and types, in wire order.
pub type KnownType = Vec<(String, Type)>;

/// Looks up types by full name.
pub type Lookup<'a> = dyn Fn(&str) -> Option<KnownType> + 'a;

/// How files are read.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// The edition.
    pub edition: Edition,
    /// Whether a name without an import refers to the only definition with this name.
    pub lenient: bool,
    /// Looks up types by full name that are not in the files.
    pub known: Option<&'a Lookup<'a>>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("edition", &self.edition)
            .field("lenient", &self.lenient)
            .finish_non_exhaustive()
    }
}

impl Settings<'_> {
    fn known(&self, name: &str) -> Option<KnownType> {
        self.known.and_then(|known| known(name))
    }
}

fn too_large(bytes: usize) -> Option<Finding> {
    let message = format!("the files have {bytes} bytes, more than {MAX_BYTES}");
    (bytes > MAX_BYTES).then(|| Finding::error("too-large", 0, Span::new(0, 0), message))
}
