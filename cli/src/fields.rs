//! Some fields of each record, by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_analysis::filters::TypePattern;
use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::record::{Field, Schema};

use crate::exit::{Code, Failure};

/// The maximum number of types that the error for an unknown field lists, and of fields of each
/// type.
const MAX_LISTED: usize = 20;

/// The fields that records keep. Clones share the fields seen so far.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// `name`, or `Type.name`.
    wanted: Arc<[Box<str>]>,
    search: Arc<Mutex<FieldSearch>>,
}

/// The search for the wanted fields in the input.
#[derive(Debug)]
struct FieldSearch {
    missing: Vec<Box<str>>,
    /// The first types of the input, and their fields.
    types: BTreeMap<Box<str>, Vec<Box<str>>>,
}

impl Fields {
    /// Creates a selection of the fields with these names.
    ///
    /// # Errors
    ///
    /// A name is empty.
    pub(crate) fn new(names: &[String]) -> Result<Self, Failure> {
        let wanted: Vec<Box<str>> = names.iter().map(|name| name.trim().into()).collect();
        if wanted.iter().any(|name| name.is_empty()) {
            return Err(Failure::configuration(format!(
                "--fields `{}`: a name is empty; separate names by one comma, as in a,b",
                names.join(",")
            )));
        }
        let search = FieldSearch {
            missing: wanted.clone(),
            types: BTreeMap::new(),
        };
        Ok(Self {
            wanted: wanted.into(),
            search: Arc::new(Mutex::new(search)),
        })
    }

    /// Whether records of this type keep this field.
    fn keeps(&self, schema: &Schema, field: &Field) -> bool {
        self.wanted.iter().any(|name| names(name, schema, field))
    }

    /// Records the fields of a type.
    fn see(&self, schema: &Schema) {
        let mut search = self.lock();
        if search.missing.is_empty() {
            return;
        }
        let fields = schema.fields();
        let has = |name: &str| fields.iter().any(|field| names(name, schema, field));
        search.missing.retain(|name| !has(name));
        if search.types.len() < MAX_LISTED && !search.types.contains_key(schema.name()) {
            let fields = fields.iter().take(MAX_LISTED);
            let fields = fields.map(|field| field.name().into()).collect();
            search.types.insert(schema.name().into(), fields);
        }
    }

    /// Checks at the end that some type had each field. An empty input passes.
    ///
    /// # Errors
    ///
    /// No type had one of the fields. The error names it, and the fields that the types have.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let search = self.lock();
        if search.missing.is_empty() || search.types.is_empty() {
            return Ok(());
        }
        let mut message = format!(
            "--fields: no record type has {}; the types that came have",
            search.missing.join(", ")
        );
        for (name, fields) in &search.types {
            let more = if fields.len() < MAX_LISTED {
                ""
            } else {
                ", ..."
            };
            // Writing to a string does not fail.
            write!(message, "\n  {name}: {}{more}", fields.join(", ")).ok();
        }
        Err(Failure::new(Code::Data, message))
    }

    /// Returns a stage that records the types of the input, and passes everything on.
    pub(crate) fn note<S: Stage>(&self, next: S) -> FieldsStage<S> {
        FieldsStage {
            fields: self.clone(),
            narrows: false,
            next,
        }
    }

    /// Returns a stage that passes on copies of records with only these fields.
    pub(crate) fn narrow<S: Stage>(&self, next: S) -> FieldsStage<S> {
        FieldsStage {
            fields: self.clone(),
            narrows: true,
            next,
        }
    }

    fn lock(&self) -> MutexGuard<'_, FieldSearch> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a wanted name, with or without a type, names this field of this type.
fn names(wanted: &str, schema: &Schema, field: &Field) -> bool {
    let Some(before) = wanted.strip_suffix(field.name()) else {
        return false;
    };
    let of_type = |pattern: &str| TypePattern::new(pattern).matches(schema.name());
    before.is_empty() || before.strip_suffix('.').is_some_and(of_type)
}

/// Returns the number of parts of the memory for decoded chunks. If fields are copied, a chunk gets
/// half.
pub(crate) fn memory_parts(fields: Option<&Fields>, workers: NonZeroUsize) -> NonZeroUsize {
    match fields {
        Some(_) => workers.saturating_add(workers.get()),
        None => workers,
    }
}

/// Records the types of the input, or narrows their records.
pub(crate) struct FieldsStage<S> {
    fields: Fields,
    narrows: bool,
    next: S,
}

impl<S: Stage> Stage for FieldsStage<S> {
    fn name(&self) -> &'static str {
        "fields"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let fields = &self.fields;
        if self.narrows {
            let narrowed = parcel.narrowed(|schema, field| fields.keeps(schema, field));
            return self.next.accept(narrowed);
        }
        let tables = parcel.chunk().batch.tables();
        tables.iter().for_each(|table| fields.see(table.schema()));
        self.next.accept(parcel)
    }
}

#[cfg(test)]
mod tests;
