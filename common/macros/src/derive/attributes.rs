//! Parses `#[record(...)]` on a type, a field or a variant.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Expr, Ident, LitStr, Path, Token};

use super::names::{self, Case};

/// The attributes of a struct or an enum.
pub(crate) struct TypeAttributes {
    /// The name of the record or enum type.
    pub(crate) name: String,
    /// The case of the names of its fields or variants.
    pub(crate) case: Option<Case>,
    /// The path of the crate that has the module `record`.
    pub(crate) common: Path,
}

impl TypeAttributes {
    /// Reads the attributes of a type. `krate` is the path to `record`, unless an attribute sets
    /// it.
    pub(crate) fn parse(input: &DeriveInput, krate: &Path) -> syn::Result<Self> {
        let mut name = None;
        let mut case = None;
        let mut common = None;
        each(
            &input.attrs,
            &["name", "rename_all", "crate"],
            |word, meta| match word {
                "name" => once(&mut name, text(meta)?, meta),
                "rename_all" => once(&mut case, Case::parse(&text(meta)?)?, meta),
                _ => once(&mut common, text(meta)?.parse::<Path>()?, meta),
            },
        )?;
        if let Some(name) = &name {
            names::check(&name.value(), name.span())?;
        }
        Ok(Self {
            name: name.map_or_else(|| names::plain(&input.ident), |name| name.value()),
            case,
            common: common.unwrap_or_else(|| krate.clone()),
        })
    }
}

/// The meaning of a number; `baler_common::record::Role`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The record's own timestamp, which is a point in time too.
    Timestamp,
    UnixNanos,
    Nanos,
}

/// The value of a field that the writer did not have.
pub(crate) enum DefaultValue {
    /// `Default::default()`.
    OfType,
    Expression(Box<Expr>),
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) rename: Option<LitStr>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) role: Option<Role>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut found = Self::default();
        let known = [
            "rename",
            "alias",
            "default",
            "timestamp",
            "unix_nanos",
            "nanos",
        ];
        each(attributes, &known, |word, meta| match word {
            "rename" => once(&mut found.rename, text(meta)?, meta),
            "alias" => {
                found.aliases.push(text(meta)?);
                Ok(())
            }
            "default" => {
                let value = if meta.input.peek(Token![=]) {
                    DefaultValue::Expression(Box::new(meta.value()?.parse()?))
                } else {
                    DefaultValue::OfType
                };
                once(&mut found.default, value, meta)
            }
            _ => {
                let role = match word {
                    "timestamp" => Role::Timestamp,
                    "unix_nanos" => Role::UnixNanos,
                    _ => Role::Nanos,
                };
                if found.role.replace(role).is_some() {
                    return Err(meta.error(
                        "a field is one of `timestamp`, `unix_nanos` and `nanos`, said once",
                    ));
                }
                Ok(())
            }
        })?;
        Ok(found)
    }
}

/// The attributes of a variant.
#[derive(Default)]
pub(crate) struct VariantAttributes {
    pub(crate) rename: Option<LitStr>,
    pub(crate) aliases: Vec<LitStr>,
    /// The variant stands for every variant that this version does not know.
    pub(crate) other: Option<Ident>,
}

impl VariantAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut found = Self::default();
        each(
            attributes,
            &["rename", "alias", "other"],
            |word, meta| match word {
                "rename" => once(&mut found.rename, text(meta)?, meta),
                "alias" => {
                    found.aliases.push(text(meta)?);
                    Ok(())
                }
                _ => {
                    let word = meta.path.require_ident()?.clone();
                    once(&mut found.other, word, meta)
                }
            },
        )?;
        Ok(found)
    }
}

/// Passes on every word of the `#[record(...)]` attributes; refuses unknown words.
fn each(
    attributes: &[Attribute],
    known: &[&str],
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let ours = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("record"));
    for attribute in ours {
        attribute.parse_nested_meta(|meta| {
            let word = meta.path.require_ident()?.to_string();
            if !known.contains(&word.as_str()) {
                return Err(meta.error(names::unknown("attribute", &word, known)));
            }
            take(&word, &meta)
        })?;
    }
    Ok(())
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

fn once<T>(slot: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("given twice")),
    }
}
