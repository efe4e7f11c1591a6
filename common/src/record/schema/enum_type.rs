//! An enum's variants.

use super::{MAX_VARIANTS, SchemaError, check_name};

/// An enum type: named variants without data, numbered from 0 in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    name: Box<str>,
    variants: Box<[Box<str>]>,
}

impl EnumType {
    /// Checks and builds an enum type.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] when there is no variant, a name is empty, too long or given twice, or
    /// there are more than [`MAX_VARIANTS`].
    pub fn new<S: Into<Box<str>>>(
        name: impl Into<Box<str>>,
        variants: impl IntoIterator<Item = S>,
    ) -> Result<Self, SchemaError> {
        let name = name.into();
        let variants: Box<[Box<str>]> = variants.into_iter().map(Into::into).collect();
        check_name(&name, "an enum type")?;
        if variants.is_empty() || variants.len() > MAX_VARIANTS {
            return Err(SchemaError::VariantCount {
                name,
                found: variants.len(),
            });
        }
        let mut seen = std::collections::HashSet::with_capacity(variants.len());
        for variant in &variants {
            check_name(variant, "a variant")?;
            if !seen.insert(variant) {
                return Err(SchemaError::VariantTwice {
                    name,
                    variant: variant.clone(),
                });
            }
        }
        Ok(Self { name, variants })
    }

    /// Builds an enum type from names that [`EnumType::new`] would take.
    pub(in crate::record) fn checked(name: &str, variants: &[&str]) -> Self {
        Self {
            name: name.into(),
            variants: variants.iter().map(|variant| (*variant).into()).collect(),
        }
    }

    /// The enum's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variants' names in the order of their numbers.
    pub fn variants(&self) -> &[Box<str>] {
        &self.variants
    }

    /// The name of the variant with this number.
    pub fn variant(&self, number: u32) -> Option<&str> {
        self.variants
            .get(usize::try_from(number).ok()?)
            .map(AsRef::as_ref)
    }
}
