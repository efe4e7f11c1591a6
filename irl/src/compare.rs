//! Compares two versions of record types: which changes break readers.
//!
//! The bytes of a record have neither names nor lengths. A reader takes them apart by its own
//! definition, so nearly every change of the properties that are sent breaks both directions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::Span;
use crate::model::{Base, EnumType, Literal, Property, Record, Value};

/// What a change breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Old readers cannot read new records, and new readers cannot read old records.
    Both,
    /// Readers by the new files cannot read records of old writers.
    NewReaders,
    /// Readers by the old files cannot read records of new writers.
    OldReaders,
    /// Nothing.
    Safe,
}

/// A difference between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The definition: package and name.
    pub name: Arc<str>,
    /// What it breaks.
    pub effect: Effect,
    /// The difference.
    pub what: String,
    /// The reason of the effect.
    pub why: &'static str,
    /// Whether the place is in the old files, because the new ones lack it.
    pub is_in_old: bool,
    /// The number of the file.
    pub file: usize,
    /// The place in the file.
    pub span: Span,
}

const UNFRAMED: &str = "records have no lengths, so all bytes behind it are read wrongly";
const RENAMED: &str = "the bytes stay, but a reader that looks the value up by name misses it";
const POSITION: &str = "a literal is sent as its position, which has another meaning now";

/// Returns the differences of two versions, the breaking ones first, then by name.
pub fn compare(old: &[Record], new: &[Record]) -> Vec<Change> {
    let mut comparison = Comparison::default();
    let before = by_name(old);
    let after = by_name(new);
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    for name in names {
        match (before.get(name), after.get(name)) {
            (Some(old), Some(new)) => comparison.record(old, new),
            (Some(old), None) => comparison.removed(old),
            (None, Some(new)) => comparison.added(new),
            (None, None) => {}
        }
    }
    let (before, after) = (enums(old), enums(new));
    for (name, (old, _)) in &before {
        if let Some((new, property)) = after.get(name) {
            comparison.enums(old, new, property);
        }
    }
    let mut changes = comparison.changes;
    // Stable: the order inside a definition stays.
    changes.sort_by(|one, two| {
        let key = |it: &Change| (it.effect == Effect::Safe, Arc::clone(&it.name));
        key(one).cmp(&key(two))
    });
    changes
}

fn by_name(records: &[Record]) -> BTreeMap<&str, &Record> {
    records.iter().map(|it| (&*it.name, it)).collect()
}

/// The enums that are sent, each with a property of this type.
fn enums(records: &[Record]) -> BTreeMap<&str, (&EnumType, &Property)> {
    let sent = records.iter().filter(|it| !it.is_abstract);
    let properties = sent.flat_map(Record::wire);
    let enums = properties.filter_map(|it| match &it.property_type.base {
        Base::Enum(of) => Some((&*of.name, (&**of, it))),
        _ => None,
    });
    enums.collect()
}

#[derive(Debug, Default)]
struct Comparison {
    changes: Vec<Change>,
    /// Safe changes that several types inherit: where they are, and what they are.
    seen: HashSet<(usize, Span, String)>,
}

/// Where a change is.
#[derive(Clone, Copy)]
struct Place(bool, usize, Span);

fn place_of(property: &Property, is_in_old: bool) -> Place {
    Place(is_in_old, property.file, property.span)
}

impl Comparison {
    fn note(
        &mut self,
        name: &Arc<str>,
        effect: Effect,
        Place(is_in_old, file, span): Place,
        what: impl Into<String>,
        why: &'static str,
    ) {
        let what = what.into();
        if effect == Effect::Safe && !self.seen.insert((file, span, what.clone())) {
            return;
        }
        self.changes.push(Change {
            name: Arc::clone(name),
            effect,
            what,
            why,
            is_in_old,
            file,
            span,
        });
    }

    fn removed(&mut self, old: &Record) {
        let place = Place(true, old.file, old.span);
        match old.is_abstract {
            true => {
                let why = "no record of exactly this type is sent";
                self.note(&old.name, Effect::Safe, place, "abstract type removed", why);
            }
            false => {
                let why = "old writers still send it, and new readers do not know it";
                self.note(&old.name, Effect::NewReaders, place, "type removed", why);
            }
        }
    }

    fn added(&mut self, new: &Record) {
        let place = Place(false, new.file, new.span);
        let why = "no other record changes";
        self.note(&new.name, Effect::Safe, place, "type added", why);
    }

    fn record(&mut self, old: &Record, new: &Record) {
        let place = Place(false, new.file, new.span);
        match (old.is_abstract, new.is_abstract) {
            (false, true) => {
                let why = "old writers still send it, and new readers do not know it";
                self.note(&new.name, Effect::NewReaders, place, "became abstract", why);
            }
            (true, false) => {
                let why = "no other record changes";
                self.note(&new.name, Effect::Safe, place, "no longer abstract", why);
            }
            (false, false) => self.wire(old, new),
            (true, true) => {}
        }
        self.without_bytes(old, new);
    }

    /// Compares the properties that are sent.
    fn wire(&mut self, old: &Record, new: &Record) {
        let before: Vec<&Property> = old.wire().collect();
        let after: Vec<&Property> = new.wire().collect();
        let old_names: BTreeMap<&str, &Property> =
            before.iter().map(|it| (&*it.name, *it)).collect();
        let new_names: BTreeMap<&str, &Property> =
            after.iter().map(|it| (&*it.name, *it)).collect();
        // A property at the same position with the same type and another name.
        let mut renamed = HashSet::new();
        if before.len() == after.len() {
            for (one, two) in before.iter().zip(&after) {
                let is_gone = !new_names.contains_key(&*one.name);
                let is_other = is_gone && !old_names.contains_key(&*two.name);
                if is_other && type_name(one) == type_name(two) {
                    renamed.insert(&*one.name);
                    renamed.insert(&*two.name);
                    let what = format!("{} was renamed to {}", one.name, two.name);
                    self.note(&new.name, Effect::Both, place_of(two, false), what, RENAMED);
                }
            }
        }
        for gone in before
            .iter()
            .filter(|it| !new_names.contains_key(&*it.name))
        {
            if renamed.contains(&*gone.name) {
                continue;
            }
            let kept = new.properties.iter().find(|it| it.name == gone.name);
            let (what, place) = match kept {
                Some(kept) => ("became transient", place_of(kept, false)),
                None => ("was removed", place_of(gone, true)),
            };
            let what = format!("{} {what}", Shown(gone, old));
            self.note(&new.name, Effect::Both, place, what, UNFRAMED);
        }
        for added in after.iter().filter(|it| !old_names.contains_key(&*it.name)) {
            if renamed.contains(&*added.name) {
                continue;
            }
            let was_there = old.properties.iter().any(|it| it.name == added.name);
            let what = if was_there {
                "is no longer transient"
            } else {
                "was added"
            };
            let what = format!("{} {what}", Shown(added, new));
            self.note(
                &new.name,
                Effect::Both,
                place_of(added, false),
                what,
                UNFRAMED,
            );
        }
        for two in &after {
            let Some(one) = old_names.get(&*two.name) else {
                continue;
            };
            let from = type_name(one);
            if from != type_name(two) {
                let what = format!("{} had the type {from}", Shown(two, new));
                let why = "its bytes differ in length or meaning";
                self.note(&new.name, Effect::Both, place_of(two, false), what, why);
            }
        }
        let common = before.iter().filter(|it| new_names.contains_key(&*it.name));
        let other = after.iter().filter(|it| old_names.contains_key(&*it.name));
        let pairs: Vec<_> = common.copied().zip(other.copied()).collect();
        self.order(new, &pairs);
    }

    /// Notes a new order of the properties that both versions send. `pairs` has the old order beside
    /// the new one.
    fn order(&mut self, new: &Record, pairs: &[(&Property, &Property)]) {
        let differs = |(one, two): &(&Property, &Property)| one.name != two.name;
        let (Some(first), Some(last)) = (
            pairs.iter().position(differs),
            pairs.iter().rposition(differs),
        ) else {
            return;
        };
        let moved: Vec<_> = pairs.iter().take(last + 1).skip(first).collect();
        let from: Vec<&str> = moved.iter().map(|it| &*it.0.name).collect();
        let to: Vec<&str> = moved.iter().map(|it| &*it.1.name).collect();
        let place = moved
            .first()
            .map_or(Place(false, new.file, new.span), |it| place_of(it.1, false));
        let what = format!("the order was {} and is {}", from.join(", "), to.join(", "));
        let why = "values are sent in the order parent, templates from left to right, own";
        self.note(&new.name, Effect::Both, place, what, why);
    }

    fn enums(&mut self, old: &EnumType, new: &EnumType, property: &Property) {
        let place = place_of(property, false);
        let old_names: HashSet<&str> = old.literals.iter().map(|it| &*it.0).collect();
        let new_names: HashSet<&str> = new.literals.iter().map(|it| &*it.0).collect();
        let mut pairs = old.literals.iter().zip(&new.literals);
        if let Some((one, two)) = pairs.find(|(one, two)| one.0 != two.0) {
            let what = match (new_names.contains(&*one.0), old_names.contains(&*two.0)) {
                (true, true) => format!("{} stands at the position of {}", two.0, one.0),
                (false, true) => format!("{} was removed before {}", one.0, two.0),
                (true, false) => format!("{} was added before {}", two.0, one.0),
                (false, false) => format!("{} was renamed to {}", one.0, two.0),
            };
            self.note(&new.name, Effect::Both, place, what, POSITION);
            return;
        }
        let (old_count, new_count) = (old.literals.len(), new.literals.len());
        for (literal, _) in old.literals.iter().skip(new_count) {
            let why = "new readers do not know the position that old writers send";
            let what = format!("{literal} was removed");
            self.note(&new.name, Effect::NewReaders, place, what, why);
        }
        for (literal, _) in new.literals.iter().skip(old_count) {
            let why = "old readers do not know the position that new writers send";
            let what = format!("{literal} was added at the end");
            self.note(&new.name, Effect::OldReaders, place, what, why);
        }
        for (literal, value) in &new.literals {
            let before = old.literals.iter().find(|it| it.0 == *literal);
            if let Some((_, before)) = before.filter(|it| it.1 != *value) {
                let what = format!("the value of {literal} was {before} and is {value}");
                let why = "the position is sent, not the value";
                self.note(&new.name, Effect::Safe, place, what, why);
            }
        }
    }

    /// Compares the parts that are not sent.
    fn without_bytes(&mut self, old: &Record, new: &Record) {
        let why = "it is not sent";
        let place = Place(false, new.file, new.span);
        if old.about != new.about {
            let what = "its documentation, author or version changed";
            self.note(&new.name, Effect::Safe, place, what, why);
        }
        let before: BTreeMap<&str, &Property> =
            old.properties.iter().map(|it| (&*it.name, &**it)).collect();
        let after: BTreeMap<&str, &Property> =
            new.properties.iter().map(|it| (&*it.name, &**it)).collect();
        for property in new.properties.iter() {
            let Some(one) = before.get(&*property.name) else {
                if property.is_transient {
                    let what = format!("{} was added", Shown(property, new));
                    let place = place_of(property, false);
                    self.note(&property.declared_in, Effect::Safe, place, what, why);
                }
                continue;
            };
            self.property(one, property);
        }
        for gone in old.properties.iter().filter(|it| it.is_transient) {
            if !after.contains_key(&*gone.name) {
                let what = format!("{} was removed", Shown(gone, old));
                self.note(
                    &gone.declared_in,
                    Effect::Safe,
                    place_of(gone, true),
                    what,
                    why,
                );
            }
        }
        let aliases = |of: &Record| -> BTreeMap<Arc<str>, (String, Place)> {
            let all = of.aliases.iter().map(|it| {
                let place = Place(false, it.file, it.span);
                (Arc::clone(&it.name), (it.target.to_string(), place))
            });
            all.collect()
        };
        let constants = |of: &Record| -> BTreeMap<Arc<str>, (String, Place)> {
            let all = of.constants.iter().map(|it| {
                let place = Place(false, it.file, it.span);
                let text = format!("{} {}", it.constant_type, Text(&it.value));
                (Arc::clone(&it.name), (text, place))
            });
            all.collect()
        };
        self.named(&new.name, "alias", &aliases(old), &aliases(new));
        self.named(&new.name, "constant", &constants(old), &constants(new));
    }

    fn named(
        &mut self,
        name: &Arc<str>,
        kind: &str,
        old: &BTreeMap<Arc<str>, (String, Place)>,
        new: &BTreeMap<Arc<str>, (String, Place)>,
    ) {
        let why = "it is not sent";
        for (member, (text, place)) in new {
            let what = match old.get(member) {
                None => format!("the {kind} {member} was added"),
                Some((before, _)) if before != text => {
                    format!("the {kind} {member} was {before} and is {text}")
                }
                Some(_) => continue,
            };
            self.note(name, Effect::Safe, *place, what, why);
        }
        for (member, (_, Place(_, file, span))) in old.iter().filter(|it| !new.contains_key(it.0)) {
            let what = format!("the {kind} {member} was removed");
            self.note(name, Effect::Safe, Place(true, *file, *span), what, why);
        }
    }

    fn property(&mut self, old: &Property, new: &Property) {
        let default = |of: &Property| of.default.as_ref().map(|it| Text(it).to_string());
        let transient = |of: &Property| of.is_transient.then(|| of.property_type.to_string());
        for (differs, what) in [
            (old.doc != new.doc, "the documentation"),
            (default(old) != default(new), "the default value"),
            (old.is_changeable != new.is_changeable, "`changeable`"),
            (
                old.is_auto_increment != new.is_auto_increment,
                "`auto-increment`",
            ),
            (old.semantics != new.semantics, "the value of the probe"),
            (old.grouped_by != new.grouped_by, "`grouped by`"),
            (old.declared_in != new.declared_in, "the declaring type"),
            (
                old.is_transient && new.is_transient && transient(old) != transient(new),
                "the type that is not sent",
            ),
        ] {
            if differs {
                let what = format!("{what} of {} changed", new.name);
                let place = place_of(new, false);
                let why = "it is not sent";
                self.note(&new.declared_in, Effect::Safe, place, what, why);
            }
        }
    }
}

fn type_name(property: &Property) -> String {
    property.property_type.to_string()
}

/// A property with its type, and its origin if that is another type.
struct Shown<'a>(&'a Property, &'a Record);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.property_type, self.0.name)?;
        match self.0.declared_in == self.1.name {
            true => Ok(()),
            false => write!(f, " (from {})", self.0.declared_in),
        }
    }
}

/// A value as files have it.
struct Text<'a>(&'a Literal);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.value {
            Value::Array(items) => {
                f.write_str("{")?;
                for (number, item) in items.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{}", Self(item))?;
                }
                f.write_str("}")
            }
            Value::Bool(it) => write!(f, "{it}"),
            Value::Float(it) => write!(f, "{it:?}"),
            Value::Int(it) => write!(f, "{it}"),
            Value::KiekerVersion => f.write_str("KIEKER_VERSION"),
            Value::Name(it) => f.write_str(it),
            Value::Text(it) => write!(f, "{it:?}"),
        }
    }
}
