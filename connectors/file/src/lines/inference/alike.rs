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

/// A line that becomes a row while it is parsed.
struct Reading<'a, 'line, 'row> {
    line: &'a mut JsonLine<'line>,
    /// The shapes of the objects so far.
    shapes: &'a mut Vec<u32>,
    row: RowWriter<'row>,
    type_field: &'a str,
    /// The line that it should be like.
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
        line.skip_space();
        let mut reading = Reading {
            line,
            shapes,
            row: RowWriter::new(row),
            type_field,
            last,
        };
        match reading.object(&mut self.shapes, 0) {
            Ok(()) => {}
            Err(Misfit::New) => return None,
            Err(Misfit::Mixed) => {
                self.schemas.clear();
                return None;
            }
        }
        let Reading {
            line,
            row: mut writer,
            ..
        } = reading;
        line.end()?;
        if let Some(origin) = origin {
            write_origin(origin, &mut writer);
        }
        let is_row = !line.has_lone_surrogate && !writer.is_too_large();
        is_row.then(|| Arc::clone(&last.schema))
    }
}

impl Reading<'_, '_, '_> {
    /// Writes the values of an object with the expected shape.
    fn object(&mut self, known: &mut Shapes, depth: usize) -> Result<(), Misfit> {
        let number = *self.last.shapes.get(self.shapes.len()).ok_or(Misfit::New)?;
        self.shapes.push(number);
        let shape = usize::try_from(number)
            .ok()
            .and_then(|at| known.0.get_mut(at));
        let shape = shape.filter(|it| it.has_plain_keys).ok_or(Misfit::New)?;
        self.take(b'{')?;
        self.line.skip_space();
        for (at, (key, place)) in shape.keys.iter().zip(&mut shape.places).enumerate() {
            if at > 0 {
                self.take(b',')?;
                self.line.skip_space();
            }
            self.line.key(key).ok_or(Misfit::New)?;
            if depth == 0 && **key == *self.type_field {
                let name = self.line.string().ok_or(Misfit::New)?;
                let is_same = place.is_text() && *name == *self.last.name;
                is_same.then_some(()).ok_or(Misfit::New)?;
                self.row.str(&name);
            } else {
                self.value(place, depth + 1)?;
            }
            self.line.skip_space();
        }
        self.take(b'}')
    }

    /// Writes the next value.
    fn value(&mut self, place: &mut Place, depth: usize) -> Result<(), Misfit> {
        match (&mut place.kind, self.line.next()) {
            (Kind::Text, Some(b'"')) => {
                let text = self.line.string().ok_or(Misfit::New)?;
                if place.is_nullable {
                    self.row.some();
                }
                self.row.str(&text);
                Ok(())
            }
            (Kind::Number(numbers), Some(b'-' | b'0'..=b'9')) => {
                let number = self.line.number().ok_or(Misfit::New)?;
                let fits = numbers.with(number) == *numbers;
                fits.then_some(()).ok_or(Misfit::New)?;
                if place.is_nullable {
                    self.row.some();
                }
                numbers.write(number, &mut self.row);
                Ok(())
            }
            (Kind::Object(known), Some(b'{')) => {
                if place.is_nullable {
                    self.row.some();
                }
                self.object(known, depth)
            }
            _ => {
                self.line.any(depth).ok_or(Misfit::New)?;
                let json = self.line.json().ok_or(Misfit::New)?;
                let here = self.shapes.len();
                place.write(json, self.shapes, &mut self.row)?;
                let last = self.last.shapes.get(here..self.shapes.len());
                let is_same = last == self.shapes.get(here..);
                is_same.then_some(()).ok_or(Misfit::New)
            }
        }
    }

    fn take(&mut self, byte: u8) -> Result<(), Misfit> {
        self.line.take(byte).then_some(()).ok_or(Misfit::New)
    }
}

impl Place {
    fn is_text(&self) -> bool {
        !self.is_nullable && matches!(self.kind, Kind::Text)
    }
}
