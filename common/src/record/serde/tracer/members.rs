//! Passes fields of structs, items of lists and variants of enums from the tracer to visitors.

use std::cell::Cell;

use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{Parents, Stop, Tracer, step};
use crate::record::serde::node::{ATTEMPTS, Member, Node};

/// The common data of a struct's fields.
pub(super) struct StructContext<'a> {
    pub(super) depth: usize,
    pub(super) parents: &'a Parents<'a>,
    pub(super) progress: &'a Cell<usize>,
}

impl StructContext<'_> {
    fn tracer<'b>(&'b self, member: &'b mut Member) -> Tracer<'b> {
        Tracer {
            node: &mut member.node,
            depth: self.depth,
            attempt: member.attempts,
            parents: Some(self.parents),
            progress: self.progress,
        }
    }
}

/// Offers one field twice. When a visitor has taken the first offer, its error at the second one
/// contains the real name of the field. Returns whether the name is an alias.
pub(super) fn probe<'de, V: Visitor<'de>>(
    member: &mut Member,
    context: &StructContext<'_>,
    visitor: V,
) -> bool {
    let before = context.progress.get();
    let mut field = OneMember {
        context,
        member,
        offered: 0,
        taken: false,
    };
    let result = visitor.visit_map(&mut field);
    let taken = field.taken;
    if taken && matches!(member.node, Node::Unknown) {
        // The type did not request anything.
        member.node = Node::Opaque;
    }
    if member.node.is_complete() {
        match result {
            Err(Stop::Duplicate(name)) if taken => {
                member.settled = true;
                step(context.progress);
                return name != member.name;
            }
            Ok(_) if taken => member.settled = true,
            _ => refused(member),
        }
        step(context.progress);
    } else if context.progress.get() == before {
        refused(member);
        step(context.progress);
    }
    false
}

/// Tries another sample value next time, or gives up.
fn refused(member: &mut Member) {
    if member.attempts + 1 < ATTEMPTS {
        member.attempts += 1;
        return;
    }
    member.settled = true;
    if !member.node.is_complete() {
        member.node = Node::Opaque;
    }
}

/// Passes one field, and then its name again.
struct OneMember<'a> {
    context: &'a StructContext<'a>,
    member: &'a mut Member,
    offered: u8,
    taken: bool,
}

impl<'de> MapAccess<'de> for &mut OneMember<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        if self.offered > 1 {
            return Ok(None);
        }
        self.offered += 1;
        seed.deserialize(BorrowedStrDeserializer::new(self.member.name))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        if self.taken {
            return Err(Stop::Here);
        }
        let value = seed.deserialize(self.context.tracer(self.member))?;
        self.taken = true;
        Ok(value)
    }
}

/// Passes every field of a completely known struct.
pub(super) struct AllMembers<'a> {
    pub(super) context: StructContext<'a>,
    pub(super) members: std::slice::IterMut<'a, Member>,
    pub(super) current: Option<&'a mut Member>,
}

impl<'de> MapAccess<'de> for AllMembers<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        self.current = self.members.next();
        let Some(member) = &self.current else {
            return Ok(None);
        };
        seed.deserialize(BorrowedStrDeserializer::new(member.name))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        let member = self.current.take().ok_or(Stop::Here)?;
        seed.deserialize(self.context.tracer(member))
    }
}

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

/// The first variant that may have data, or the first of all.
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
