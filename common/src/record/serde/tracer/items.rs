//! What is handed to the visitors of lists and enums that are traced.

use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{DeserializeSeed, EnumAccess, SeqAccess, VariantAccess, Visitor};

use super::{Stop, Tracer, step};
use crate::record::serde::node::Node;

/// The items of a list or tuple.
pub(super) struct Items<'a, 'n> {
    pub(super) tracer: &'a Tracer<'a>,
    pub(super) items: std::slice::IterMut<'n, Node>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Stop;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stop> {
        match self.items.next() {
            None => Ok(None),
            Some(item) => seed.deserialize(self.tracer.inside(item)).map(Some),
        }
    }
}

/// The first variant that is not known to have no data, or the first of all.
pub(super) struct Variant<'a>(pub(super) Tracer<'a>);

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Stop;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Stop> {
        let Node::Enum {
            variants, plain, ..
        } = &*self.0.node
        else {
            return Err(Stop::Here);
        };
        let variant = variants.get(*plain).or_else(|| variants.first());
        let name = variant.copied().unwrap_or_default();
        let value = seed.deserialize(BorrowedStrDeserializer::new(name))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        if let Node::Enum {
            variants, plain, ..
        } = self.0.node
        {
            if *plain < variants.len() {
                *plain += 1;
                step(self.0.progress);
            }
        }
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(mut self, _: S) -> Result<S::Value, Stop> {
        Err(self.0.opaque())
    }

    fn tuple_variant<V: Visitor<'de>>(mut self, _: usize, _: V) -> Result<V::Value, Stop> {
        Err(self.0.opaque())
    }

    fn struct_variant<V: Visitor<'de>>(
        mut self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        Err(self.0.opaque())
    }
}
