//! The dialects of patterns.

use std::fmt;

/// The syntax and the meaning of patterns for operations.
///
/// In all dialects `*` alone matches everything, and a pattern that begins with `%` is for sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// Kieker's dialect with all its bugs. It refuses and matches exactly the same texts as
    /// Kieker's parser and regular expressions.
    ///
    /// Checked against Kieker's own parser for the patterns and signatures of
    /// `connectors/kieker/tests/golden/pattern-golden.json`. Every character beyond ASCII counts as a letter.
    /// Three things that Kieker accepts are refused: two modifiers of a kind, `throwsA` without a
    /// blank, and brackets other than `[]`.
    Kieker,
    /// Kieker's syntax without its oddities. The differences:
    ///
    /// | | Kieker | strict |
    /// |---|---|---|
    /// | the comma between parameters | optional: `(int, ..)` matches `(integer)` | must be there |
    /// | a modifier that is not named | may be there, but not `default` if none is named | may be there |
    /// | modifiers | in one order | in any order |
    /// | `*` at the start of a name | spans dots, and nothing | spans no dot; alone it is one name |
    /// | `*` or `..*` as the result or a parameter | no array, a parameter `*` no package | any type |
    /// | the result | must be there | may be left out, then there may be any or none |
    /// | the parameters | must be there | may be left out, then there may be any: `com.shop..*` |
    /// | blanks in the signature | one at most around each parameter | any |
    /// | `throws A, B` | an error for the blank | two exceptions |
    /// | `(int,)` | taken for `(int)` | an error |
    /// | `$` at the start of a name | never matches | a character |
    #[default]
    Strict,
    /// Rust's paths: `[pub] [fn] shop::till::*::order(str, ..) -> Result`. `**` is any number of
    /// segments. Parameters and result may be left out. It matches signatures in Kieker's form,
    /// signatures in Rust's form, and plain names.
    Rust,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 3] = [Self::Kieker, Self::Strict, Self::Rust];

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kieker => "kieker",
            Self::Strict => "strict",
            Self::Rust => "rust",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
