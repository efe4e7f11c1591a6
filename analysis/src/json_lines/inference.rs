//! Infers the types of lines from the lines so far.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use baler_common::record::{
    DynamicRecord, Field, FieldType, MAX_FIELDS, MAX_NAME_BYTES, Schema, SchemaError, Value,
    ValueError,
};
use foldhash::HashMap;

use super::value::{Json, JsonKind, Number};
use super::{OPAQUE_FIELD, OPAQUE_NAME};

/// The most sets of keys of one place in the lines of a type. Objects with further sets are kept as
/// text.
const MAX_SHAPES: usize = 64;

/// The most places, over all types and sets of keys, and the most schemas. Lines that need more are
/// kept as text.
const MAX_PLACES: usize = 65_536;
const MAX_SCHEMAS: usize = 4_096;

/// The share of a type's name and schemas in [`MAX_PLACES`].
const PLACES_A_TYPE: usize = 16;

/// The type of lines that name none, and of lines beyond the limit of types.
const UNNAMED: &str = "json";

/// Whole numbers up to this are exact as `f64`.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// Makes a record of each line, with types inferred from the lines before it.
///
/// Takes limited memory, whatever the lines are.
#[derive(Debug)]
pub struct Inference {
    type_field: Box<str>,
    types: HashMap<Box<str>, LineType>,
    room: Room,
    /// The shapes of the current line's objects.
    shapes: Vec<u32>,
}

/// The number of further places and schemas that are allowed.
#[derive(Debug)]
struct Room {
    places: usize,
    schemas: usize,
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is JSON, but not an object.
    #[error("the line is JSON, but not an object {{...}}")]
    NoObject,
    /// It does not fit the inferred schema.
    #[error(transparent)]
    Record(#[from] ValueError),
    /// It is not JSON.
    #[error("the line is not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
}

impl Inference {
    /// The field with this name names the type of a line.
    pub fn new(type_field: impl Into<Box<str>>) -> Self {
        Self {
            type_field: type_field.into(),
            types: HashMap::default(),
            room: Room {
                places: MAX_PLACES,
                schemas: MAX_SCHEMAS,
            },
            shapes: Vec::new(),
        }
    }

    /// Makes a record of a line, without a timestamp.
    ///
    /// # Errors
    ///
    /// The line is not a JSON object.
    pub fn record(&mut self, line: &str) -> Result<DynamicRecord, LineError> {
        let json = Json::parse(line)?;
        let JsonKind::Object(members) = &json.kind else {
            return Err(LineError::NoObject);
        };
        let name = members.iter().find(|(key, _)| **key == *self.type_field);
        let name = match name {
            Some((
                _,
                Json {
                    kind: JsonKind::Text(name),
                    ..
                },
            )) if is_name(name) => name,
            _ => UNNAMED,
        };
        let name = match self.types.contains_key(name) || self.room.take_places(PLACES_A_TYPE) {
            true => name,
            false => UNNAMED,
        };
        let line_type = match self.types.entry(name.into()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(LineType::new(name)),
        };
        match line_type.record(members, &mut self.room, &mut self.shapes) {
            Some(record) => Ok(record),
            None => {
                let text = Value::Record(vec![json.text.into()]);
                Ok(DynamicRecord::new(
                    Arc::clone(&line_type.opaque),
                    None,
                    vec![text],
                )?)
            }
        }
    }
}

impl Room {
    fn take_places(&mut self, places: usize) -> bool {
        let left = self.places.checked_sub(places);
        left.inspect(|left| self.places = *left).is_some()
    }
}

/// The lines with one value in the field that names their type.
#[derive(Debug)]
struct LineType {
    name: Box<str>,
    shapes: Shapes,
    /// By the shapes of all objects of a line. They are only valid until a place becomes wider.
    schemas: HashMap<Box<[u32]>, Arc<Schema>>,
    /// The schema of lines that are kept as text.
    opaque: Arc<Schema>,
}

impl LineType {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            shapes: Shapes::default(),
            schemas: HashMap::default(),
            opaque: text_schema(name, FieldType::Record(Arc::clone(&OPAQUE))),
        }
    }

    /// Returns the line as a record, unless there is no room for its schema.
    fn record(
        &mut self,
        members: &[Member<'_>],
        room: &mut Room,
        shapes: &mut Vec<u32>,
    ) -> Option<DynamicRecord> {
        // Such a record would look like a line that is kept as text.
        if matches!(members, [(key, _)] if key == OPAQUE_FIELD) {
            return None;
        }
        if self.shapes.widen(members, room)? {
            self.schemas.clear();
        }
        let values = loop {
            shapes.clear();
            match self.shapes.values(Some(members), shapes) {
                Ok(values) => break values,
                Err(Widened) => self.schemas.clear(),
            }
        };
        let schema = match self.schemas.get(&**shapes) {
            Some(schema) => Arc::clone(schema),
            None => {
                room.schemas = room.schemas.checked_sub(1)?;
                let mut shapes_left = shapes.iter().copied();
                let schema = Arc::new(self.shapes.schema(&self.name, &mut shapes_left).ok()?);
                self.schemas.insert((**shapes).into(), Arc::clone(&schema));
                schema
            }
        };
        DynamicRecord::new(schema, None, values).ok()
    }
}

type Member<'a> = (Cow<'a, str>, Json<'a>);

/// The different sets of keys of the objects in one place.
#[derive(Debug, Default)]
struct Shapes(Vec<Shape>);

#[derive(Debug)]
struct Shape {
    keys: Box<[Box<str>]>,
    /// One for each key.
    places: Box<[Place]>,
}

/// A place for values in the lines of a type, with the type of its values so far.
#[derive(Debug, Default)]
struct Place {
    is_nullable: bool,
    kind: Kind,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Unknown,
    Bool,
    Text,
    Number(Numbers),
    List(Box<Place>),
    Object(Shapes),
    /// No type fits all of the values: each is kept as text.
    Opaque,
}

/// The numbers of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Numbers {
    has_negative: bool,
    has_above_i64: bool,
    has_float: bool,
    has_inexact_as_float: bool,
    has_inexact: bool,
}

/// A place became wider while values were made; they must be made again.
struct Widened;

impl Shapes {
    fn position(&self, members: &[Member<'_>]) -> Option<usize> {
        let keys = || members.iter().map(|(key, _)| &**key);
        let mut shapes = self.0.iter();
        shapes.position(|shape| shape.keys.iter().map(|key| &**key).eq(keys()))
    }

    /// Makes room for another object; returns whether a type changed. Returns `None` if there is no
    /// room, or if no schema can have these keys.
    fn widen(&mut self, members: &[Member<'_>], room: &mut Room) -> Option<bool> {
        if let Some(shape) = self.position(members) {
            return Some(self.0.get_mut(shape)?.widen(members, room));
        }
        let mut keys = HashSet::new();
        let is_schema = members.len() <= MAX_FIELDS
            && members
                .iter()
                .all(|(key, _)| is_name(key) && keys.insert(key));
        if !is_schema || self.0.len() == MAX_SHAPES || !room.take_places(members.len() + 1) {
            return None;
        }
        let mut shape = Shape {
            keys: members.iter().map(|(key, _)| (**key).into()).collect(),
            places: members.iter().map(|_| Place::default()).collect(),
        };
        shape.widen(members, room);
        self.0.push(shape);
        // A new shape makes a new schema; known schemas stay as they are.
        Some(false)
    }

    /// Returns the values of an object, or of an absent one; records its shape and the shapes
    /// inside.
    fn values(
        &mut self,
        members: Option<&[Member<'_>]>,
        shapes: &mut Vec<u32>,
    ) -> Result<Vec<Value>, Widened> {
        // An absent object gets the type of the first one, so that the type of the record does not
        // depend on absent values.
        let shape = members
            .map_or(Some(0), |members| self.position(members))
            .ok_or(Widened)?;
        shapes.push(u32::try_from(shape).map_err(|_| Widened)?);
        let places = self.0.get_mut(shape).map(|it| &mut *it.places);
        let places = places.unwrap_or_default();
        let mut values = Vec::with_capacity(places.len());
        for (index, place) in places.iter_mut().enumerate() {
            let json = members.and_then(|members| members.get(index));
            values.push(place.value(json.map(|(_, json)| json), shapes)?);
        }
        Ok(values)
    }

    fn schema(
        &self,
        name: &str,
        shapes: &mut dyn Iterator<Item = u32>,
    ) -> Result<Schema, SchemaError> {
        let shape = shapes
            .next()
            .and_then(|shape| self.0.get(usize::try_from(shape).ok()?));
        let fields = shape
            .into_iter()
            .flat_map(|it| it.keys.iter().zip(&it.places));
        let fields = fields.map(|(key, place)| Ok(Field::new(&**key, place.field_type(shapes)?)));
        Schema::new(name, fields.collect::<Result<Vec<_>, _>>()?)
    }
}

impl Shape {
    fn widen(&mut self, members: &[Member<'_>], room: &mut Room) -> bool {
        let places = self.places.iter_mut().zip(members);
        let widened = places.map(|(place, (_, json))| place.widen(json, room));
        widened.fold(false, |any, widened| any | widened)
    }
}

impl Place {
    /// Makes room for another value; returns whether the type changed.
    fn widen(&mut self, json: &Json<'_>, room: &mut Room) -> bool {
        match (&mut self.kind, &json.kind) {
            (_, JsonKind::Null) => return !std::mem::replace(&mut self.is_nullable, true),
            (Kind::Bool, JsonKind::Bool(_))
            | (Kind::Text, JsonKind::Text(_))
            | (Kind::Opaque, _) => {
                return false;
            }
            (Kind::Number(numbers), JsonKind::Number(number)) => {
                let before = numbers.field_type();
                numbers.add(*number);
                let after = numbers.field_type();
                if after.is_some() {
                    return before != after;
                }
                self.kind = Kind::Opaque;
            }
            (Kind::List(item), JsonKind::Array(items)) => {
                let widened = items.iter().map(|json| item.widen(json, room));
                return widened.fold(false, |any, widened| any | widened);
            }
            (Kind::Object(known), JsonKind::Object(members)) => {
                if let Some(widened) = known.widen(members, room) {
                    return widened;
                }
                self.kind = Kind::Opaque;
            }
            (Kind::Unknown, _) => {
                self.kind = match &json.kind {
                    JsonKind::Bool(_) => Kind::Bool,
                    JsonKind::Text(_) => Kind::Text,
                    JsonKind::Number(_) => Kind::Number(Numbers::default()),
                    JsonKind::Array(_) if room.take_places(1) => Kind::List(Box::default()),
                    JsonKind::Object(_) => Kind::Object(Shapes::default()),
                    _ => Kind::Opaque,
                };
                self.widen(json, room);
            }
            _ => self.kind = Kind::Opaque,
        }
        true
    }

    /// Returns the value, or null; records the shapes of the objects inside.
    fn value(&mut self, json: Option<&Json<'_>>, shapes: &mut Vec<u32>) -> Result<Value, Widened> {
        let kind = json.map(|json| &json.kind);
        Ok(match (&mut self.kind, kind) {
            (Kind::List(item), None | Some(JsonKind::Null)) => {
                item.value(None, shapes)?;
                Value::Null
            }
            (Kind::Object(known), None | Some(JsonKind::Null)) => {
                known.values(None, shapes)?;
                Value::Null
            }
            (_, None | Some(JsonKind::Null)) => Value::Null,
            (Kind::Bool, Some(JsonKind::Bool(value))) => Value::Bool(*value),
            (Kind::Text, Some(JsonKind::Text(text))) => (**text).into(),
            (Kind::Number(numbers), Some(JsonKind::Number(number))) => numbers.value(*number),
            (Kind::List(item), Some(JsonKind::Array(items))) => {
                Value::List(list(item, items, shapes)?)
            }
            (Kind::Object(known), Some(JsonKind::Object(members))) => {
                Value::Record(known.values(Some(members), shapes)?)
            }
            (Kind::Opaque, Some(_)) => {
                let text = json.map_or("", |json| json.text);
                Value::Record(vec![text.into()])
            }
            _ => {
                self.kind = Kind::Opaque;
                return Err(Widened);
            }
        })
    }

    fn field_type(&self, shapes: &mut dyn Iterator<Item = u32>) -> Result<FieldType, SchemaError> {
        let field_type = match &self.kind {
            Kind::Unknown | Kind::Text => FieldType::String,
            Kind::Bool => FieldType::Bool,
            Kind::Number(numbers) => numbers.field_type().unwrap_or(FieldType::F64),
            Kind::List(item) => item.field_type(shapes)?.list(),
            Kind::Object(known) => FieldType::Record(Arc::new(known.schema("object", shapes)?)),
            Kind::Opaque => FieldType::Record(Arc::clone(&OPAQUE)),
        };
        Ok(match self.is_nullable {
            true => field_type.optional(),
            false => field_type,
        })
    }
}

/// Returns the items of a list. All objects in a list must have the same shapes; otherwise each
/// item is kept as text from now on.
fn list(
    item: &mut Place,
    items: &[Json<'_>],
    shapes: &mut Vec<u32>,
) -> Result<Vec<Value>, Widened> {
    let before = shapes.len();
    let mut first = None;
    let mut values = Vec::with_capacity(items.len());
    for json in items {
        if matches!(json.kind, JsonKind::Null) {
            values.push(Value::Null);
            continue;
        }
        let here = shapes.len();
        values.push(item.value(Some(json), shapes)?);
        match first {
            None => first = Some(shapes.len()),
            Some(end) if shapes.get(before..end) == shapes.get(here..) => shapes.truncate(here),
            Some(_) => {
                item.kind = Kind::Opaque;
                return Err(Widened);
            }
        }
    }
    if first.is_none() {
        item.value(None, shapes)?;
    }
    Ok(values)
}

impl Numbers {
    fn add(&mut self, number: Number) {
        match number {
            Number::Signed(value) => {
                self.has_negative |= value < 0;
                self.has_inexact_as_float |= value.unsigned_abs() > EXACT;
            }
            Number::Unsigned(_) => {
                self.has_above_i64 = true;
                self.has_inexact_as_float = true;
            }
            Number::Float(_) => self.has_float = true,
            Number::Inexact => self.has_inexact = true,
        }
    }

    /// Returns the type that holds all of them, if there is one.
    fn field_type(self) -> Option<FieldType> {
        if self.has_inexact {
            return None;
        }
        match (self.has_float, self.has_above_i64) {
            (true, _) => (!self.has_inexact_as_float).then_some(FieldType::F64),
            (false, true) => (!self.has_negative).then_some(FieldType::U64),
            (false, false) => Some(FieldType::I64),
        }
    }

    /// Returns the value in the common type.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a place with floats only has whole numbers that are exact as f64"
    )]
    fn value(self, number: Number) -> Value {
        match number {
            Number::Signed(value) if self.has_float => Value::F64(value as f64),
            Number::Signed(value) if self.has_above_i64 => Value::Unsigned(value.unsigned_abs()),
            Number::Signed(value) => Value::Signed(value),
            Number::Unsigned(value) => Value::Unsigned(value),
            Number::Float(value) => Value::F64(value),
            Number::Inexact => Value::Null,
        }
    }
}

/// JSON text as the value of a field.
static OPAQUE: LazyLock<Arc<Schema>> =
    LazyLock::new(|| text_schema(OPAQUE_NAME, FieldType::String));

/// A schema with the one field [`OPAQUE_FIELD`].
#[expect(
    clippy::expect_used,
    reason = "callers check the name, and the field is a valid one"
)]
fn text_schema(name: &str, field_type: FieldType) -> Arc<Schema> {
    let field = Field::new(OPAQUE_FIELD, field_type);
    Arc::new(Schema::new(name, vec![field]).expect("a name, and one field"))
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
}
