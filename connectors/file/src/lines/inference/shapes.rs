//! The types of lines, inferred from their values.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use baler_common::record::{
    Field, FieldType, JSON_TEXT_FIELD, JSON_TEXT_NAME, MAX_FIELDS, MAX_NAME_BYTES, RowWriter,
    Schema, SchemaError,
};
use foldhash::HashMap;

use crate::lines::json::{Json, JsonKind, Number, plain_bytes};
use crate::lines::origin::{ORIGIN, Origin, origin_fields, write_origin};

/// The most sets of keys of one place in the lines of a type. Objects with further sets are kept as
/// text.
const MAX_SHAPES: usize = 64;

/// The most places, over all types and sets of keys, and the most schemas. Lines that need more are
/// kept as text.
const MAX_PLACES: usize = 65_536;
const MAX_SCHEMAS: usize = 4_096;

/// Whole numbers up to this are exact as `f64`.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// The number of further places and schemas that are allowed.
#[derive(Debug)]
pub(super) struct Room {
    places: usize,
    schemas: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            places: MAX_PLACES,
            schemas: MAX_SCHEMAS,
        }
    }

    pub(super) fn take_places(&mut self, places: usize) -> bool {
        let left = self.places.checked_sub(places);
        left.inspect(|left| self.places = *left).is_some()
    }
}

/// The lines with one value in the field that names their type.
#[derive(Debug)]
pub(super) struct LineType {
    pub(super) name: Box<str>,
    pub(super) shapes: Shapes,
    /// By the shapes of all objects of a line. They are only valid until a place becomes wider.
    pub(super) schemas: HashMap<Box<[u32]>, Arc<Schema>>,
    /// The schema of lines that are kept as text.
    pub(super) opaque: Arc<Schema>,
}

impl LineType {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            shapes: Shapes::default(),
            schemas: HashMap::default(),
            opaque: text_schema(name, FieldType::Record(Arc::clone(&OPAQUE))),
        }
    }

    /// Writes the values of a line and returns their schema, unless there is no room for it.
    pub(super) fn row(
        &mut self,
        line: Object<'_, '_>,
        origin: Option<&Origin<'_>>,
        room: &mut Room,
        (shapes, row): (&mut Vec<u32>, &mut Vec<u8>),
    ) -> Option<Arc<Schema>> {
        // Such a record would look like a line that is kept as text.
        if line.len == 1 && line.members().all(|it| it.key() == JSON_TEXT_FIELD) {
            return None;
        }
        if origin.is_some()
            && (line.len + ORIGIN.len() > MAX_FIELDS
                || line.members().any(|it| ORIGIN.contains(&it.key())))
        {
            return None;
        }
        let mut is_widened = false;
        loop {
            shapes.clear();
            row.clear();
            let mut writer = RowWriter::new(row);
            match self.shapes.write(line, shapes, &mut writer) {
                Ok(()) if writer.is_too_large() => return None,
                Ok(()) => {
                    if let Some(origin) = origin {
                        write_origin(origin, &mut writer);
                    }
                    break;
                }
                Err(Misfit::Mixed) => self.schemas.clear(),
                Err(Misfit::New) if !is_widened => {
                    is_widened = true;
                    if self.shapes.widen(line, room)? {
                        self.schemas.clear();
                    }
                }
                // No place has room for it.
                Err(Misfit::New) => return None,
            }
        }
        if let Some(schema) = self.schemas.get(&**shapes) {
            return Some(Arc::clone(schema));
        }
        room.schemas = room.schemas.checked_sub(1)?;
        let mut shapes_left = shapes.iter().copied();
        let mut fields = self.shapes.fields(&mut shapes_left).ok()?;
        fields.extend(origin.map(|_| origin_fields()).into_iter().flatten());
        let schema = Arc::new(Schema::new(&*self.name, fields).ok()?);
        self.schemas.insert((**shapes).into(), Arc::clone(&schema));
        Some(schema)
    }
}

/// A JSON object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'n, 'a> {
    pub(super) json: Json<'n, 'a>,
    /// The number of its members.
    pub(super) len: usize,
}

impl<'n, 'a> Object<'n, 'a> {
    pub(super) fn of(json: Json<'n, 'a>) -> Option<Self> {
        match json.kind() {
            JsonKind::Object(len) => Some(Self { json, len: *len }),
            _ => None,
        }
    }

    pub(super) fn members(self) -> impl Iterator<Item = Json<'n, 'a>> {
        self.json.items()
    }
}

/// The different sets of keys of the objects in one place.
#[derive(Debug, Default)]
pub(super) struct Shapes(pub(super) Vec<Shape>);

#[derive(Debug)]
pub(super) struct Shape {
    pub(super) keys: Box<[Box<str>]>,
    /// Whether JSON needs no escapes in them.
    pub(super) has_plain_keys: bool,
    /// One for each key.
    pub(super) places: Box<[Place]>,
}

/// A place for values in the lines of a type, with the type of its values so far.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) is_nullable: bool,
    pub(super) kind: Kind,
}

#[derive(Debug, Default)]
pub(super) enum Kind {
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
pub(super) struct Numbers {
    has_negative: bool,
    has_above_i64: bool,
    has_float: bool,
    has_inexact_as_float: bool,
    has_inexact: bool,
}

/// Why a value was not written.
pub(super) enum Misfit {
    /// Its place does not have room for it yet.
    New,
    /// The objects of its list differ. The place is wider now, and the line must be written again.
    Mixed,
}

impl Shapes {
    fn position(&self, object: Object<'_, '_>) -> Option<usize> {
        let mut shapes = self.0.iter();
        shapes.position(|shape| {
            shape.keys.len() == object.len
                && shape
                    .keys
                    .iter()
                    .zip(object.members())
                    .all(|(key, it)| **key == *it.key())
        })
    }

    /// Makes room for another object; returns whether a type changed. Returns `None` if there is no
    /// room, or if no schema can have these keys.
    fn widen(&mut self, object: Object<'_, '_>, room: &mut Room) -> Option<bool> {
        if let Some(shape) = self.position(object) {
            return Some(self.0.get_mut(shape)?.widen(object, room));
        }
        let mut keys = HashSet::new();
        let mut members = object.members();
        let is_schema = object.len <= MAX_FIELDS
            && members.all(|it| is_name(it.key()) && keys.insert(it.key()));
        if !is_schema || self.0.len() == MAX_SHAPES || !room.take_places(object.len + 1) {
            return None;
        }
        let mut shape = Shape {
            keys: object.members().map(|it| it.key().into()).collect(),
            has_plain_keys: object
                .members()
                .all(|it| plain_bytes(it.key().as_bytes()) == it.key().len()),
            places: object.members().map(|_| Place::default()).collect(),
        };
        shape.widen(object, room);
        self.0.push(shape);
        // A new shape makes a new schema; known schemas stay as they are.
        Some(false)
    }

    /// Writes the values of an object; records its shape and the shapes inside.
    fn write(
        &mut self,
        object: Object<'_, '_>,
        shapes: &mut Vec<u32>,
        row: &mut RowWriter<'_>,
    ) -> Result<(), Misfit> {
        let position = self.position(object).ok_or(Misfit::New)?;
        shapes.push(u32::try_from(position).map_err(|_| Misfit::New)?);
        let shape = self.0.get_mut(position).ok_or(Misfit::New)?;
        let mut places = shape.places.iter_mut().zip(object.members());
        places.try_for_each(|(place, json)| place.write(json, shapes, row))
    }

    /// Records the shapes of an absent object. It gets the shape of the first one, so that the type
    /// of the record does not depend on absent values.
    fn note_absent(&self, shapes: &mut Vec<u32>) {
        shapes.push(0);
        let places = self.0.first().into_iter().flat_map(|shape| &shape.places);
        places.for_each(|place| place.note_absent(shapes));
    }

    fn fields(&self, shapes: &mut dyn Iterator<Item = u32>) -> Result<Vec<Field>, SchemaError> {
        let shape = shapes
            .next()
            .and_then(|shape| self.0.get(usize::try_from(shape).ok()?));
        let fields = shape
            .into_iter()
            .flat_map(|it| it.keys.iter().zip(&it.places));
        let fields = fields.map(|(key, place)| Ok(Field::new(&**key, place.field_type(shapes)?)));
        fields.collect()
    }
}

impl Shape {
    fn widen(&mut self, object: Object<'_, '_>, room: &mut Room) -> bool {
        let places = self.places.iter_mut().zip(object.members());
        let widened = places.map(|(place, json)| place.widen(json, room));
        widened.fold(false, |any, widened| any | widened)
    }
}

impl Place {
    /// Makes room for another value; returns whether the type changed.
    fn widen(&mut self, json: Json<'_, '_>, room: &mut Room) -> bool {
        match (&mut self.kind, json.kind()) {
            (_, JsonKind::Null) => return !std::mem::replace(&mut self.is_nullable, true),
            (Kind::Bool, JsonKind::Bool(_))
            | (Kind::Text, JsonKind::Text(_))
            | (Kind::Opaque, _) => {
                return false;
            }
            (Kind::Number(numbers), JsonKind::Number(number)) => {
                let before = numbers.field_type();
                *numbers = numbers.with(*number);
                let after = numbers.field_type();
                if after.is_some() {
                    return before != after;
                }
                self.kind = Kind::Opaque;
            }
            (Kind::List(item), JsonKind::Array(_)) => {
                let widened = json.items().map(|json| item.widen(json, room));
                return widened.fold(false, |any, widened| any | widened);
            }
            (Kind::Object(known), JsonKind::Object(_)) => {
                if let Some(widened) = Object::of(json).and_then(|it| known.widen(it, room)) {
                    return widened;
                }
                self.kind = Kind::Opaque;
            }
            (Kind::Unknown, kind) => {
                self.kind = match kind {
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

    /// Writes the value, or null; records the shapes of the objects inside.
    pub(super) fn write(
        &mut self,
        json: Json<'_, '_>,
        shapes: &mut Vec<u32>,
        row: &mut RowWriter<'_>,
    ) -> Result<(), Misfit> {
        match (self.is_nullable, json.kind()) {
            (true, JsonKind::Null) => {
                self.note_absent(shapes);
                row.none();
                return Ok(());
            }
            (true, _) => row.some(),
            (false, _) => {}
        }
        match (&mut self.kind, json.kind()) {
            (_, JsonKind::Null) => return Err(Misfit::New),
            (Kind::Bool, JsonKind::Bool(value)) => row.bool(*value),
            (Kind::Text, JsonKind::Text(text)) => row.str(text),
            (Kind::Number(numbers), JsonKind::Number(number))
                if numbers.with(*number) == *numbers =>
            {
                numbers.write(*number, row);
            }
            (Kind::List(item), JsonKind::Array(len)) => {
                row.list(*len);
                return list(item, json, shapes, row);
            }
            (Kind::Object(known), JsonKind::Object(len)) => {
                return known.write(Object { json, len: *len }, shapes, row);
            }
            (Kind::Opaque, _) => row.str(json.text()),
            _ => return Err(Misfit::New),
        }
        Ok(())
    }

    fn note_absent(&self, shapes: &mut Vec<u32>) {
        match &self.kind {
            Kind::List(item) => item.note_absent(shapes),
            Kind::Object(known) => known.note_absent(shapes),
            _ => {}
        }
    }

    fn field_type(&self, shapes: &mut dyn Iterator<Item = u32>) -> Result<FieldType, SchemaError> {
        let field_type = match &self.kind {
            Kind::Unknown | Kind::Text => FieldType::String,
            Kind::Bool => FieldType::Bool,
            Kind::Number(numbers) => numbers.field_type().unwrap_or(FieldType::F64),
            Kind::List(item) => item.field_type(shapes)?.list(),
            Kind::Object(known) => {
                FieldType::Record(Arc::new(Schema::new("object", known.fields(shapes)?)?))
            }
            Kind::Opaque => FieldType::Record(Arc::clone(&OPAQUE)),
        };
        Ok(match self.is_nullable {
            true => field_type.optional(),
            false => field_type,
        })
    }
}

/// Writes the items of a list. All objects in a list must have the same shapes; otherwise each item
/// is kept as text from now on.
fn list(
    item: &mut Place,
    array: Json<'_, '_>,
    shapes: &mut Vec<u32>,
    row: &mut RowWriter<'_>,
) -> Result<(), Misfit> {
    let before = shapes.len();
    let mut first = None;
    for json in array.items() {
        if item.is_nullable && matches!(json.kind(), JsonKind::Null) {
            row.none();
            continue;
        }
        let here = shapes.len();
        item.write(json, shapes, row)?;
        match first {
            None => first = Some(shapes.len()),
            Some(end) if shapes.get(before..end) == shapes.get(here..) => shapes.truncate(here),
            Some(_) => {
                item.kind = Kind::Opaque;
                return Err(Misfit::Mixed);
            }
        }
    }
    if first.is_none() {
        item.note_absent(shapes);
    }
    Ok(())
}

impl Numbers {
    /// Returns the numbers together with another one.
    pub(super) fn with(mut self, number: Number) -> Self {
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
        self
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

    /// Writes the value in the common type.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a place with floats only has whole numbers that are exact as f64"
    )]
    pub(super) fn write(self, number: Number, row: &mut RowWriter<'_>) {
        match number {
            Number::Signed(value) if self.has_float => row.f64(value as f64),
            Number::Signed(value) if self.has_above_i64 => row.u64(value.unsigned_abs()),
            Number::Signed(value) => row.i64(value),
            Number::Unsigned(value) => row.u64(value),
            Number::Float(value) => row.f64(value),
            Number::Inexact => debug_assert!(false, "its place has become text"),
        }
    }
}

/// JSON text as the value of a field.
static OPAQUE: LazyLock<Arc<Schema>> =
    LazyLock::new(|| text_schema(JSON_TEXT_NAME, FieldType::String));

/// A schema with the one field [`JSON_TEXT_FIELD`].
#[expect(
    clippy::expect_used,
    reason = "callers check the name, and the field is a valid one"
)]
fn text_schema(name: &str, field_type: FieldType) -> Arc<Schema> {
    let field = Field::new(JSON_TEXT_FIELD, field_type);
    Arc::new(Schema::new(name, vec![field]).expect("a name, and one field"))
}

pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
}
