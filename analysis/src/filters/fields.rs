//! Some fields of each record, by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use super::TypePattern;
use crate::json_text::{self, Json};
use crate::text::nearest;
use crate::{AnalysisError, Parcel, Stage};
use baler_common::mutex::lock;
use baler_common::record::{Field, Record as _, Schema};
use baler_connector_kieker::types::KiekerMetadataRecord;

/// The maximum number of types that the error for an unknown field lists, and of fields of each
/// type.
const MAX_LISTED: usize = 20;

/// The fields that records keep. Clones share the fields seen so far.
#[derive(Debug, Clone)]
pub struct Fields {
    /// `name`, or `Type.name`.
    wanted: Arc<[Box<str>]>,
    search: Arc<Mutex<FieldSearch>>,
}

/// A selection of records or fields is wrong. The text names the setting, and the mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectionError(pub(super) Box<str>);

/// The search for the fields that a setting names in the input.
#[derive(Debug)]
pub(super) struct FieldSearch {
    setting: &'static str,
    /// Whether the setting is a condition, in which names with points have another form.
    is_condition: bool,
    /// How to name a field that the first chunk may lack.
    hint: &'static str,
    missing: Vec<Box<str>>,
    /// The first types of the input, and their fields.
    types: BTreeMap<Box<str>, Vec<Box<str>>>,
    /// Whether the first chunk has the fields; `None` before it.
    first: Option<Result<(), String>>,
}

impl FieldSearch {
    /// Creates a search for fields with these names.
    pub(super) fn new<'n>(
        setting: &'static str,
        hint: &'static str,
        names: impl Iterator<Item = &'n str>,
    ) -> Self {
        Self {
            setting,
            is_condition: false,
            hint,
            missing: names.map(Into::into).collect(),
            types: BTreeMap::new(),
            first: None,
        }
    }

    /// Names fields as a condition does.
    pub(super) fn for_condition(mut self) -> Self {
        self.is_condition = true;
        self
    }

    /// Looks for the fields in the records of a chunk.
    ///
    /// # Errors
    ///
    /// It is the first chunk, and no record in it has one of the fields, or it follows such a
    /// chunk. A name of the form `Type.name` may come later. Metadata records of Kieker do not
    /// count: they often come alone.
    pub(super) fn look(&mut self, parcel: &Parcel) -> Result<(), AnalysisError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let (mut last, mut is_first) = (None, false);
        for (_, record) in parcel.records() {
            let (name, schema) = (record.type_name(), record.schema());
            is_first |= name != KiekerMetadataRecord::schema().name();
            let line = json_text::line_text(record.fields()).and_then(json_text::read);
            if let Some(Json::Object(members)) = line {
                self.see(name, members.iter().map(|(key, _)| &**key));
            } else if last != Some(Arc::as_ptr(schema)) {
                last = Some(Arc::as_ptr(schema));
                self.see(name, schema.fields().iter().map(Field::name));
            }
        }
        if self.first.is_none() && is_first {
            let missing = self.missing.iter().filter(|name| !name.contains('.'));
            let missing: Vec<_> = missing.map(|name| &**name).collect();
            self.first = Some(match missing.is_empty() {
                true => Ok(()),
                false => {
                    let message = self.message("of the first chunk", &missing);
                    Err(format!("{message}\n{}", self.hint))
                }
            });
        }
        match &self.first {
            Some(Err(message)) => Err(AnalysisError::stage(self.setting, message.as_str())),
            _ => Ok(()),
        }
    }

    /// Records the fields of a type.
    fn see<'n>(&mut self, type_name: &str, fields: impl Iterator<Item = &'n str> + Clone) {
        if self.missing.is_empty() {
            return;
        }
        let has = |name: &str| fields.clone().any(|field| names(name, type_name, field));
        self.missing.retain(|name| !has(name));
        if self.types.len() < MAX_LISTED && !self.types.contains_key(type_name) {
            let fields = fields.take(MAX_LISTED).map(Into::into).collect();
            self.types.insert(type_name.into(), fields);
        }
    }

    /// Returns the error for fields that no type has.
    fn message(&self, of: &str, missing: &[&str]) -> String {
        let known: Vec<_> = self.types.values().flatten().collect();
        let nearest = missing.iter().map(|name| nearest(name, &known));
        let pointed = known.iter().find(|field| {
            let mut rests = missing.iter().filter_map(|name| field.strip_prefix(name));
            rests.any(|rest| rest.starts_with('.'))
        });
        let pointed = pointed.filter(|_| self.is_condition);
        let pointed = pointed.map_or_else(String::new, |it| {
            format!("; a name with points is fields[\"{it}\"]")
        });
        let mut message = format!(
            "no record type has {}{}{pointed}; the types {of} have",
            missing.join(", "),
            nearest.collect::<String>(),
        );
        for (name, fields) in &self.types {
            let more = if fields.len() < MAX_LISTED {
                ""
            } else {
                ", ..."
            };
            // Writing to a string does not fail.
            write!(message, "\n  {name}: {}{more}", fields.join(", ")).ok();
        }
        message
    }
}

impl Fields {
    /// Creates a selection of the fields with these names. Messages call it by the name of the
    /// caller's `setting`.
    ///
    /// # Errors
    ///
    /// A name is empty.
    pub fn new(setting: &'static str, names: &[String]) -> Result<Self, SelectionError> {
        let wanted: Vec<Box<str>> = names.iter().map(|name| name.trim().into()).collect();
        if wanted.iter().any(|name| name.is_empty()) {
            let names = names.join(",");
            return Err(SelectionError(
                format!(
                    "{setting} `{names}`: a name is empty; separate names by one comma, as in a,b"
                )
                .into(),
            ));
        }
        let hint = "Type.name stands for a field of a type that may come later";
        let names = wanted.iter().map(|name| &**name);
        let search = FieldSearch::new(setting, hint, names);
        Ok(Self {
            wanted: wanted.into(),
            search: Arc::new(Mutex::new(search)),
        })
    }

    /// Whether records of this type keep this field.
    fn keeps(&self, schema: &Schema, field: &Field) -> bool {
        self.wanted
            .iter()
            .any(|name| names(name, schema.name(), field.name()))
    }

    /// Checks at the end that some type had each field. An empty input passes.
    ///
    /// # Errors
    ///
    /// No type had one of the fields. The error names it, and the fields that the types have.
    pub fn check(&self) -> Result<(), AnalysisError> {
        let search = lock(&self.search);
        if search.missing.is_empty() || search.types.is_empty() {
            return Ok(());
        }
        let missing: Vec<_> = search.missing.iter().map(|name| &**name).collect();
        let message = search.message("that came", &missing);
        Err(AnalysisError::stage(search.setting, message))
    }

    /// Returns a stage that records the types of the input, and passes everything on.
    pub fn note<S: Stage>(&self, next: S) -> FieldsStage<S> {
        FieldsStage {
            fields: self.clone(),
            narrows: false,
            next,
        }
    }

    /// Returns a stage that passes on copies of records with only these fields.
    pub fn narrow<S: Stage>(&self, next: S) -> FieldsStage<S> {
        FieldsStage {
            fields: self.clone(),
            narrows: true,
            next,
        }
    }
}

/// Whether a wanted name, with or without a type, names this field of this type.
fn names(wanted: &str, type_name: &str, field: &str) -> bool {
    let Some(before) = wanted.strip_suffix(field) else {
        return false;
    };
    let of_type = |pattern: &str| TypePattern::new(pattern).matches(type_name);
    before.is_empty() || before.strip_suffix('.').is_some_and(of_type)
}

/// Records the types of the input, or narrows their records.
#[derive(Debug)]
pub struct FieldsStage<S> {
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
        lock(&fields.search).look(&parcel)?;
        self.next.accept(parcel)
    }
}

#[cfg(test)]
mod tests;
