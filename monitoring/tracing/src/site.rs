//! Call sites: the data that all spans or events of a place in the program have in common.
//!
//! A site is made at the first use of its place, and found again without a lock.

use std::ptr;
use std::sync::{Arc, OnceLock};

use baler_common::record::{Field, FieldType, Interned, Record, Schema};
use tracing_core::Metadata;

use crate::attributes::{Attribute, Kind};
use crate::records::{EventRecord, SpanRecord, SpanStartRecord};

/// Longer chains would be slow; a program has some hundred sites.
const CHAINS: usize = 512;

/// All sites that were used so far, in chains by the address of their metadata.
static SITES: [OnceLock<Box<ListedSite>>; CHAINS] = [const { OnceLock::new() }; CHAINS];

/// A site, and the next one of its chain.
struct ListedSite {
    site: Site,
    next: OnceLock<Box<Self>>,
}

/// A place in the program that makes spans or events.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) metadata: &'static Metadata<'static>,
    /// The operation, in the form of a probe's signature.
    pub(crate) signature: Interned,
    pub(crate) level: Interned,
    pub(crate) target: Interned,
    pub(crate) name: Interned,
    /// The position of the field `message`, if there is one.
    pub(crate) message: Option<usize>,
    /// Whether the code belongs to Baler, or to a client of its media.
    pub(crate) is_own: bool,
    first: Layout,
}

/// The record types of a site whose attributes have these kinds.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The kind of each field of the site; `None` if no value was seen yet.
    pub(crate) kinds: Box<[Option<Kind>]>,
    /// The type of records at a span's start. `None` if the type is not possible, as below.
    pub(crate) start: Option<Arc<Schema>>,
    /// The type of records at a span's end, or of events.
    pub(crate) end: Option<Arc<Schema>>,
    /// The layout that replaces this one, after values that do not fit.
    next: OnceLock<Box<Self>>,
}

impl Site {
    /// Returns the site with this metadata.
    pub(crate) fn of(metadata: &'static Metadata<'static>) -> &'static Self {
        let address = ptr::from_ref(metadata).addr();
        // The lowest bits are the same for all.
        let chain = (address >> 3) ^ (address >> 12);
        let [first, ..] = &SITES;
        let mut place = SITES.get(chain % CHAINS).unwrap_or(first);
        loop {
            let link = place.get_or_init(|| {
                Box::new(ListedSite {
                    site: Self::new(metadata),
                    next: OnceLock::new(),
                })
            });
            if ptr::eq(link.site.metadata, metadata) {
                return &link.site;
            }
            place = &link.next;
        }
    }

    fn new(metadata: &'static Metadata<'static>) -> Self {
        let (target, name) = (metadata.target(), metadata.name());
        let class = target.replace("::", ".");
        let crate_name = target.split("::").next().unwrap_or(target);
        let fields = metadata.fields();
        Self {
            metadata,
            signature: Interned::leaked(&format!("{class}.{name}()")),
            level: Interned::new(metadata.level().as_str()),
            target: Interned::leaked(target),
            name: Interned::leaked(name),
            message: fields.iter().position(|field| field.name() == "message"),
            is_own: crate_name.starts_with("baler_connector_")
                || ["lapin", "rdkafka"].contains(&crate_name),
            first: Layout::new(metadata, vec![None; fields.len()].into()),
        }
    }

    /// Returns the number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.first.kinds.len()
    }

    /// Returns the present layout, which has room for these values.
    pub(crate) fn layout(&'static self, values: &[Attribute]) -> &'static Layout {
        let mut layout = &self.first;
        while let Some(next) = layout.next.get() {
            layout = next;
        }
        // Each step gives a field its kind, or makes it text. So there are few.
        while !layout.fits(values) {
            layout = layout
                .next
                .get_or_init(|| Box::new(Layout::new(self.metadata, layout.widened(values))));
        }
        layout
    }
}

impl Layout {
    fn new(metadata: &Metadata<'_>, kinds: Box<[Option<Kind>]>) -> Self {
        let (target, name) = (metadata.target(), metadata.name());
        // By default the name of an event is its line, which would be a new type in every version.
        let is_unnamed = metadata.is_event() && name.starts_with("event ");
        let name = if is_unnamed { "event" } else { name };
        let schema = |base: &Schema, suffix| {
            let fields = fields(base, metadata, &kinds);
            Schema::new(format!("{target}::{name}{suffix}"), fields)
                .ok()
                .map(Arc::new)
        };
        let (start, end) = if metadata.is_span() {
            (
                schema(SpanStartRecord::schema(), ".start"),
                schema(SpanRecord::schema(), ""),
            )
        } else {
            (None, schema(EventRecord::schema(), ""))
        };
        Self {
            kinds,
            start,
            end,
            next: OnceLock::new(),
        }
    }

    /// Whether each value is empty, of its field's kind, or can be written as its text.
    fn fits(&self, values: &[Attribute]) -> bool {
        let mut pairs = self.kinds.iter().zip(values);
        pairs.all(|(known, value)| match value.kind() {
            None => true,
            kind => *known == kind || *known == Some(Kind::Text),
        })
    }

    /// Returns the kinds with room for these values. A field with values of two kinds becomes text.
    fn widened(&self, values: &[Attribute]) -> Box<[Option<Kind>]> {
        let pairs = self.kinds.iter().zip(values);
        pairs
            .map(|(known, value)| match (*known, value.kind()) {
                (known, None) => known,
                (None, kind) => kind,
                (known, kind) if known == kind => known,
                _ => Some(Kind::Text),
            })
            .collect()
    }
}

/// Returns the fields of a base type, and an optional field for each attribute with a known kind.
fn fields(base: &Schema, metadata: &Metadata<'_>, kinds: &[Option<Kind>]) -> Vec<Field> {
    let mut fields = base.fields().to_vec();
    for (field, kind) in metadata.fields().iter().zip(kinds) {
        let Some(kind) = kind else { continue };
        let mut name = field.name().to_owned();
        // The base has the field, or the site has it twice.
        while fields.iter().any(|known| known.name() == name) {
            name.push('_');
        }
        let field_type = match kind {
            Kind::Bool => FieldType::Bool,
            Kind::F64 => FieldType::F64,
            Kind::Signed => FieldType::I64,
            Kind::Text => FieldType::String,
            Kind::Unsigned => FieldType::U64,
        };
        fields.push(Field::new(name, field_type.optional()));
    }
    fields
}
