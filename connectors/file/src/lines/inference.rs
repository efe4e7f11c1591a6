//! Makes records of JSON lines, with types inferred from the lines so far.
//!
//! One field of the line (`type` by default) names the record's type. Its fields are inferred:
//!
//! | JSON | field |
//! |---|---|
//! | true, false | bool |
//! | whole numbers | `i64`; `u64` if they are never negative and one needs it |
//! | other numbers | `f64`, if it holds the number exactly as it was written |
//! | text | string |
//! | array | list, if one type fits all its items |
//! | object | record |
//! | null | the absent value of an optional field |
//! | everything else | [JSON text](JSON_TEXT_NAME) |
//!
//! A field whose values change their type becomes wider: `i64` becomes `f64`, a type becomes its
//! optional, and otherwise the field becomes JSON text. Lines of one type with other keys become
//! records with the same name and another schema. So a missing key differs from null. The JSON sink
//! writes each line back with equal keys and values.

mod alike;
mod shapes;

use std::borrow::Cow;
use std::sync::Arc;

#[cfg(doc)]
use baler_common::record::JSON_TEXT_NAME;
use baler_common::record::{BatchBuilder, NO_TIMESTAMP, RowWriter, Schema};
use foldhash::HashMap;

use alike::LastLine;
use shapes::{LineType, Object, Room};

use crate::lines::error::LineError;
use crate::lines::json::{Json, JsonKind, JsonLine, JsonMemory};
use crate::lines::origin::{ORIGIN, Origin};

pub(crate) use shapes::is_name;

/// The share of a type's name and schemas in the places of a [`Room`].
const PLACES_A_TYPE: usize = 16;

/// The type of lines that name none, and of lines beyond the limit of types.
const UNNAMED: &str = "json";

/// Makes a record of each line, with types inferred from the lines before it.
///
/// Takes limited memory, whatever the lines are.
#[derive(Debug)]
pub struct Inference {
    type_field: Box<str>,
    types: HashMap<Box<str>, LineType>,
    room: Room,
    has_origin: bool,
    json: JsonMemory,
    /// The last line, unless it was kept as text.
    last: Option<LastLine>,
    /// The shapes of the current line's objects, and its values.
    shapes: Vec<u32>,
    row: Vec<u8>,
}
impl Inference {
    /// The field with this name names the type of a line.
    pub fn new(type_field: impl Into<Box<str>>) -> Self {
        Self {
            type_field: type_field.into(),
            types: HashMap::default(),
            room: Room::new(),
            has_origin: false,
            json: JsonMemory::default(),
            last: None,
            shapes: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Whether each record has the [`Origin`] of its line; by default it has not.
    #[must_use]
    pub const fn with_origin(mut self, has_origin: bool) -> Self {
        self.has_origin = has_origin;
        self
    }

    /// Adds the record of a line to a batch, without a timestamp.
    ///
    /// # Errors
    ///
    /// The line is not a JSON object.
    pub fn add(
        &mut self,
        line: &str,
        origin: Option<&Origin<'_>>,
        batch: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let mut line = JsonLine::new(line, std::mem::take(&mut self.json));
        let added = self.add_line(&mut line, origin, batch);
        self.json = line.into_memory();
        added
    }

    fn add_line(
        &mut self,
        line: &mut JsonLine<'_>,
        origin: Option<&Origin<'_>>,
        batch: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let origin = origin.filter(|_| self.has_origin);
        if let Some(schema) = self.alike(line, origin) {
            return Ok(batch.push_row(&schema, NO_TIMESTAMP, &self.row)?);
        }
        line.parse()?;
        let object = line.json().and_then(Object::of);
        let object = object.ok_or(LineError::NoObject)?;
        let name = object.members().find(|it| it.key() == &*self.type_field);
        let name = match name.map(Json::kind) {
            Some(JsonKind::Text(name)) if is_name(name) => name,
            _ => UNNAMED,
        };
        let line_type = match self.types.get_mut(name) {
            Some(known) => known,
            None => {
                let has_room = self.room.take_places(PLACES_A_TYPE);
                let name = if has_room { name } else { UNNAMED };
                let new = self.types.entry(name.into());
                new.or_insert_with(|| LineType::new(name))
            }
        };
        let (shapes, row) = (&mut self.shapes, &mut self.row);
        let schema = match line.has_lone_surrogate {
            true => None,
            false => line_type.row(object, origin, &mut self.room, (shapes, row)),
        };
        match &schema {
            Some(schema) => LastLine::note(&mut self.last, &line_type.name, shapes, schema),
            None => self.last = None,
        }
        let schema = schema.unwrap_or_else(|| {
            row.clear();
            let text = match origin {
                Some(origin) => Cow::Owned(with_origin(object, origin)),
                None => Cow::Borrowed(object.json.text()),
            };
            RowWriter::new(row).str(&text);
            Arc::clone(&line_type.opaque)
        });
        Ok(batch.push_row(&schema, NO_TIMESTAMP, row)?)
    }

    /// Makes a row of a line that is like the last one; returns its schema.
    fn alike(
        &mut self,
        line: &mut JsonLine<'_>,
        origin: Option<&Origin<'_>>,
    ) -> Option<Arc<Schema>> {
        let last = self.last.as_ref()?;
        let line_type = self.types.get_mut(last.repeated()?)?;
        let expected = (&*self.type_field, last);
        line_type.alike(line, expected, origin, (&mut self.shapes, &mut self.row))
    }
}

/// Adds members to an object that is kept as text.
fn with_origin(object: Object<'_, '_>, origin: &Origin<'_>) -> String {
    let text = object.json.text();
    let mut text = text.strip_suffix('}').unwrap_or(text).to_owned();
    let [file, id, offset] = ORIGIN;
    let values = [
        serde_json::Value::from(origin.file),
        origin.id.into(),
        origin.offset.into(),
    ];
    for (at, (key, value)) in [file, id, offset].into_iter().zip(values).enumerate() {
        let comma = if object.len == 0 && at == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\"{key}\":{value}"));
    }
    text.push('}');
    text
}
