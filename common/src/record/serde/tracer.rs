//! Finds a type's fields by running its `Deserialize` without data.
//!
//! One run finds one fact. At every struct on its way it offers the first field that is not
//! completely known, records the request of that field's type, and stops. So a type that refuses
//! sample values, such as an address parsed from text, hides only itself. Runs are repeated until
//! everything is known.

use std::cell::Cell;
use std::fmt::Display;

use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::error::SerdeError;
use super::node::{ATTEMPTS, Entry, Member, Node};
use crate::record::{FieldType, MAX_DEPTH, MAX_FIELDS};

/// The most runs for a type: more than any hand-written schema within its limits needs.
const MAX_RUNS: usize = 100_000;

/// Finds the structure of a type.
pub(super) fn trace<T: for<'de> Deserialize<'de>>() -> Result<Node, SerdeError> {
    let mut root = Node::Unknown;
    let progress = Cell::new(0);
    for _ in 0..MAX_RUNS {
        let before = progress.get();
        // The result of the run does not matter: almost all runs stop early.
        drop(T::deserialize(Tracer {
            node: &mut root,
            depth: 0,
            attempt: 0,
            parents: None,
            progress: &progress,
        }));
        if root.is_complete() {
            return Ok(root);
        }
        if progress.get() == before {
            return Ok(Node::Opaque);
        }
    }
    Err(SerdeError::new(
        "the type has too many fields to find them all",
    ))
}

/// Why a run ended.
#[derive(Debug)]
enum Stop {
    /// It has found its fact, or the type has refused a sample value.
    Here,
    /// The visitor has seen this field before.
    Duplicate(&'static str),
}

impl Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a type is being traced")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Here
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Duplicate(field)
    }
}

/// The structs around a value, to find types that contain themselves.
struct Parents<'a> {
    name: &'static str,
    fields: &'static [&'static str],
    up: Option<&'a Self>,
}

impl Parents<'_> {
    fn contain(here: Option<&Self>, name: &str, fields: &'static [&'static str]) -> bool {
        let mut around = std::iter::successors(here, |it| it.up);
        around.any(|it| it.name == name && std::ptr::eq(it.fields, fields))
    }
}

/// A deserializer without data.
struct Tracer<'a> {
    node: &'a mut Node,
    /// The used [`FieldType::depth`] around the value; 0 for the record itself.
    depth: usize,
    attempt: u8,
    parents: Option<&'a Parents<'a>>,
    /// Counts the facts found in the whole run.
    progress: &'a Cell<usize>,
}

impl Tracer<'_> {
    fn learn(&mut self, node: Node) {
        *self.node = node;
        step(self.progress);
    }

    fn leaf(&mut self, field_type: FieldType) {
        if matches!(self.node, Node::Unknown) {
            self.learn(Node::Leaf(field_type));
        }
    }

    fn opaque(&mut self) -> Stop {
        if !matches!(self.node, Node::Opaque) {
            self.learn(Node::Opaque);
        }
        Stop::Here
    }

    /// Whether there is room for a type inside this one: an opaque field takes two levels.
    fn has_room(&self) -> bool {
        self.has_room_below(1)
    }

    /// Whether there is room for a type this number of levels below.
    fn has_room_below(&self, levels: usize) -> bool {
        self.depth + levels + 1 < MAX_DEPTH
    }

    /// Returns the tracer of a type inside this one.
    fn inside<'b>(&'b self, node: &'b mut Node) -> Tracer<'b> {
        Tracer {
            node,
            depth: self.depth + 1,
            attempt: self.attempt,
            parents: self.parents,
            progress: self.progress,
        }
    }
}

fn step(progress: &Cell<usize>) {
    progress.set(progress.get() + 1);
}

macro_rules! trace_leaf {
    ($($method:ident: $kind:ident, $visit:ident, |$attempt:ident| $value:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
            self.leaf(FieldType::$kind);
            let $attempt = self.attempt;
            visitor.$visit($value)
        }
    )*};
}

macro_rules! trace_opaque {
    ($($method:ident($($argument:ty),*), |$visitor:ident| $value:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(
            mut self,
            $(_: $argument,)*
            $visitor: V,
        ) -> Result<V::Value, Stop> {
            self.opaque();
            $value
        }
    )*};
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Stop;

    trace_leaf! {
        deserialize_bool: Bool, visit_bool, |attempt| attempt == 1;
        deserialize_i8: I8, visit_i8, |attempt| i8::from_le_bytes([attempt]);
        deserialize_i16: I16, visit_i16, |attempt| attempt.into();
        deserialize_i32: I32, visit_i32, |attempt| attempt.into();
        deserialize_i64: I64, visit_i64, |attempt| attempt.into();
        deserialize_u8: U8, visit_u8, |attempt| attempt;
        deserialize_u16: U16, visit_u16, |attempt| attempt.into();
        deserialize_u32: U32, visit_u32, |attempt| attempt.into();
        deserialize_u64: U64, visit_u64, |attempt| attempt.into();
        deserialize_f32: F32, visit_f32, |attempt| attempt.into();
        deserialize_f64: F64, visit_f64, |attempt| attempt.into();
        deserialize_char: Char, visit_char, |attempt| char::from(b'a' + attempt);
        deserialize_str: String, visit_borrowed_str, |attempt| text(attempt);
        deserialize_string: String, visit_string, |attempt| text(attempt).to_owned();
        deserialize_bytes: Bytes, visit_borrowed_bytes, |attempt| text(attempt).as_bytes();
        deserialize_byte_buf: Bytes, visit_byte_buf, |attempt| text(attempt).as_bytes().to_vec();
    }

    trace_opaque! {
        deserialize_any(), |visitor| visitor.visit_unit();
        deserialize_i128(), |visitor| visitor.visit_i128(0);
        deserialize_u128(), |visitor| visitor.visit_u128(0);
        deserialize_unit(), |visitor| visitor.visit_unit();
        deserialize_unit_struct(&'static str), |visitor| visitor.visit_unit();
        deserialize_identifier(), |visitor| visitor.visit_borrowed_str("");
        deserialize_ignored_any(), |visitor| visitor.visit_unit();
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            if !self.has_room() {
                return Err(self.opaque());
            }
            self.learn(Node::Option(Box::new(Node::Unknown)));
        }
        let mut node = std::mem::replace(self.node, Node::Opaque);
        let result = match &mut node {
            Node::Option(inner) if !inner.is_complete() => visitor.visit_some(self.inside(inner)),
            _ => visitor.visit_none(),
        };
        *self.node = node;
        result
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            if !self.has_room() {
                return Err(self.opaque());
            }
            self.learn(Node::List(Box::new(Node::Unknown)));
        }
        let mut node = std::mem::replace(self.node, Node::Opaque);
        let items: &mut [Node] = match &mut node {
            Node::List(item) if !item.is_complete() => std::slice::from_mut(&mut **item),
            _ => &mut [],
        };
        let result = visitor.visit_seq(Items {
            tracer: &self,
            items: items.iter_mut(),
        });
        *self.node = node;
        result
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            if self.has_room_below(2) {
                self.learn(Node::Map(Box::new(Entry {
                    key: Node::Unknown,
                    value: Node::Unknown,
                })));
            } else {
                self.opaque();
            }
        }
        let mut node = std::mem::replace(self.node, Node::Opaque);
        let offered = match &mut node {
            Node::Map(entry) if !entry.is_complete() => Some(&mut **entry),
            _ => None,
        };
        let result = visitor.visit_map(Entries {
            tracer: &self,
            offered,
        });
        match node {
            Node::Map(entry) if entry.has_other_key() => step(self.progress),
            known => *self.node = known,
        }
        result
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        mut self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            if !self.has_room() || len > MAX_FIELDS {
                return Err(self.opaque());
            }
            let items = std::iter::repeat_with(|| Node::Unknown).take(len);
            self.learn(Node::Tuple(items.collect()));
        }
        let mut node = std::mem::replace(self.node, Node::Opaque);
        let result = match &mut node {
            Node::Tuple(items) => visitor.visit_seq(Items {
                tracer: &self,
                items: items.iter_mut(),
            }),
            _ => Err(Stop::Here),
        };
        *self.node = node;
        result
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            let recursive = Parents::contain(self.parents, name, fields);
            if recursive || !self.has_room() || fields.len() > MAX_FIELDS {
                return Err(self.opaque());
            }
            let members = fields.iter().map(|field| Member {
                struct_name: name,
                name: field,
                node: Node::Unknown,
                attempts: 0,
                settled: false,
            });
            self.learn(Node::Struct(members.collect()));
        }
        let parents = Parents {
            name,
            fields,
            up: self.parents,
        };
        let Node::Struct(members) = self.node else {
            return Err(Stop::Here);
        };
        let context = StructContext {
            depth: self.depth + 1,
            parents: &parents,
            progress: self.progress,
        };
        match members.iter().position(|member| !member.is_complete()) {
            None => visitor.visit_map(AllMembers {
                context,
                members: members.iter_mut(),
                current: None,
            }),
            Some(index) => {
                let is_alias = members
                    .get_mut(index)
                    .is_some_and(|member| probe(member, &context, visitor));
                if is_alias {
                    members.remove(index);
                }
                Err(Stop::Here)
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if matches!(self.node, Node::Unknown) {
            if variants.is_empty() {
                return Err(self.opaque());
            }
            self.learn(Node::Enum {
                name,
                variants,
                plain: 0,
            });
        }
        match self.node {
            Node::Enum { .. } => visitor.visit_enum(Variant(self)),
            _ => Err(Stop::Here),
        }
    }
}

/// Returns a text that types parsed from text may accept; each of the [`ATTEMPTS`] has its own.
fn text(attempt: u8) -> &'static str {
    match attempt {
        0 => "",
        1 => "0",
        2 => "127.0.0.1",
        3 => "00000000-0000-0000-0000-000000000000",
        _ => "1970-01-01T00:00:00Z",
    }
}

/// The common data of a struct's fields.
struct StructContext<'a> {
    depth: usize,
    parents: &'a Parents<'a>,
    progress: &'a Cell<usize>,
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
fn probe<'de, V: Visitor<'de>>(
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
struct AllMembers<'a> {
    context: StructContext<'a>,
    members: std::slice::IterMut<'a, Member>,
    current: Option<&'a mut Member>,
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
struct Items<'a, 'n> {
    tracer: &'a Tracer<'a>,
    items: std::slice::IterMut<'n, Node>,
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

/// The one entry of a map, or none.
struct Entries<'a, 'n> {
    tracer: &'a Tracer<'a>,
    offered: Option<&'n mut Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        match &mut self.offered {
            None => Ok(None),
            Some(entry) => seed
                .deserialize(self.tracer.inside(&mut entry.key))
                .map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        let entry = self.offered.take().ok_or(Stop::Here)?;
        let mut value = self.tracer.inside(&mut entry.value);
        value.depth += 1;
        seed.deserialize(value)
    }
}

/// The first variant that may have data, or the first of all.
struct Variant<'a>(Tracer<'a>);

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
        let name = *variant.ok_or(Stop::Here)?;
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
