//! Lines with the keys and types of the two lines before. Most lines have them.
//!
//! Such a line becomes a row while it is parsed, without a list of its values. It then takes a
//! quarter fewer instructions. `Inference::add` parses other lines from their beginning.

use std::sync::Arc;

use baler_common::record::{RowWriter, Schema};

use super::shapes::{Kind, LineType, Misfit, Place, Shapes};
use crate::lines::json::JsonLine;
use crate::lines::origin::{Origin, write_origin};

/// The line before.
#[derive(Debug)]
pub(super) struct LastLine {
    /// The name of its type.
    name: Box<str>,
    /// The shapes of its objects.
    shapes: Box<[u32]>,
    schema: Arc<Schema>,
    /// Whether the line before it was like it, too.
    is_repeated: bool,
}

/// The type and the shapes that the line should have.
struct Expected<'a> {
    type_field: &'a str,
    last: &'a LastLine,
}

impl LastLine {
    /// Notes a line that was parsed as a list of values.
    pub(super) fn note(last: &mut Option<Self>, name: &str, shapes: &[u32], schema: &Arc<Schema>) {
        match last {
            Some(last) if Arc::ptr_eq(&last.schema, schema) => last.is_repeated = true,
            _ => {
                *last = Some(Self {
                    name: name.into(),
                    shapes: shapes.into(),
                    schema: Arc::clone(schema),
                    is_repeated: false,
                });
            }
        }
    }

    /// Returns the name of the type of the next line, if it is probably like this one.
    pub(super) fn repeated(&self) -> Option<&str> {
        self.is_repeated.then_some(&*self.name)
    }
}

impl LineType {
    /// Writes the values of a line and returns their schema, if it is like the last one.
    pub(super) fn alike(
        &mut self,
        line: &mut JsonLine<'_>,
        (type_field, last): (&str, &LastLine),
        origin: Option<&Origin<'_>>,
        (shapes, row): (&mut Vec<u32>, &mut Vec<u8>),
    ) -> Option<Arc<Schema>> {
        shapes.clear();
        row.clear();
        let mut writer = RowWriter::new(row);
        let expected = Expected { type_field, last };
        line.skip_space();
        match self.shapes.read(line, 0, &expected, shapes, &mut writer) {
            Ok(()) => {}
            Err(Misfit::New) => return None,
            Err(Misfit::Mixed) => {
                self.schemas.clear();
                return None;
            }
        }
        line.end()?;
        if let Some(origin) = origin {
            write_origin(origin, &mut writer);
        }
        let is_row = !line.has_lone_surrogate && !writer.is_too_large();
        is_row.then(|| Arc::clone(&last.schema))
    }
}

impl Shapes {
    /// Writes the values of an object with the expected shape.
    fn read(
        &mut self,
        line: &mut JsonLine<'_>,
        depth: usize,
        expected: &Expected<'_>,
        shapes: &mut Vec<u32>,
        row: &mut RowWriter<'_>,
    ) -> Result<(), Misfit> {
        let number = *expected.last.shapes.get(shapes.len()).ok_or(Misfit::New)?;
        shapes.push(number);
        let shape = usize::try_from(number)
            .ok()
            .and_then(|at| self.0.get_mut(at));
        let shape = shape.filter(|it| it.has_plain_keys).ok_or(Misfit::New)?;
        line.take(b'{').then_some(()).ok_or(Misfit::New)?;
        line.skip_space();
        for (at, (key, place)) in shape.keys.iter().zip(&mut shape.places).enumerate() {
            if at > 0 {
                line.take(b',').then_some(()).ok_or(Misfit::New)?;
                line.skip_space();
            }
            line.key(key).ok_or(Misfit::New)?;
            if depth == 0 && **key == *expected.type_field {
                let name = line.string().ok_or(Misfit::New)?;
                let is_same = place.is_text() && *name == *expected.last.name;
                is_same.then_some(()).ok_or(Misfit::New)?;
                row.str(&name);
            } else {
                place.read(line, depth + 1, expected, shapes, row)?;
            }
            line.skip_space();
        }
        line.take(b'}').then_some(()).ok_or(Misfit::New)
    }
}

impl Place {
    fn is_text(&self) -> bool {
        !self.is_nullable && matches!(self.kind, Kind::Text)
    }

    /// Writes the next value.
    fn read(
        &mut self,
        line: &mut JsonLine<'_>,
        depth: usize,
        expected: &Expected<'_>,
        shapes: &mut Vec<u32>,
        row: &mut RowWriter<'_>,
    ) -> Result<(), Misfit> {
        match (&mut self.kind, line.next()) {
            (Kind::Text, Some(b'"')) => {
                let text = line.string().ok_or(Misfit::New)?;
                if self.is_nullable {
                    row.some();
                }
                row.str(&text);
                Ok(())
            }
            (Kind::Number(numbers), Some(b'-' | b'0'..=b'9')) => {
                let number = line.number().ok_or(Misfit::New)?;
                let fits = numbers.with(number) == *numbers;
                fits.then_some(()).ok_or(Misfit::New)?;
                if self.is_nullable {
                    row.some();
                }
                numbers.write(number, row);
                Ok(())
            }
            (Kind::Object(known), Some(b'{')) => {
                if self.is_nullable {
                    row.some();
                }
                known.read(line, depth, expected, shapes, row)
            }
            _ => {
                line.any(depth).ok_or(Misfit::New)?;
                let json = line.json().ok_or(Misfit::New)?;
                let here = shapes.len();
                self.write(json, shapes, row)?;
                let last = expected.last.shapes.get(here..shapes.len());
                let is_same = last == shapes.get(here..);
                is_same.then_some(()).ok_or(Misfit::New)
            }
        }
    }
}
