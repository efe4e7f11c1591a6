//! Parses the text of one record.

use std::str::Split;
use std::sync::Arc;

use baler_common::record::{DynamicRecord, Field, FieldType, Schema, Value};

use super::error::Problem;
use super::map::LogMap;
use super::number::{floating, integer};

/// What is wrong with the text of a record, and where.
#[derive(Debug)]
pub(super) struct LineError {
    /// In bytes from the start of the record.
    pub(super) at: usize,
    /// The record's field that was being read.
    pub(super) field: Option<Box<str>>,
    pub(super) problem: Problem,
}

impl LineError {
    pub(super) fn new(at: usize, problem: Problem) -> Self {
        Self {
            at,
            field: None,
            problem,
        }
    }
}

/// Refuses types that a text log cannot hold: those that Kieker's generated classes cannot have.
///
/// Lists are flat: a list of lists would be written as one rectangle, which it need not be.
pub(super) fn check_fields(schema: &Schema) -> Result<(), Problem> {
    fn fits(field_type: &FieldType) -> bool {
        match field_type {
            FieldType::Bytes | FieldType::Optional(_) | FieldType::Record(_) => false,
            FieldType::List(inner) => !matches!(**inner, FieldType::List(_)) && fits(inner),
            _ => true,
        }
    }
    let unfit_field = |field: &&Field| !fits(field.field_type());
    match schema.fields().iter().find(unfit_field) {
        None => Ok(()),
        Some(field) => Err(unfit(schema, field)),
    }
}

fn unfit(schema: &Schema, field: &Field) -> Problem {
    Problem::UnfitRecordType {
        record: schema.name().into(),
        field: field.name().into(),
        field_type: field.field_type().to_string().into(),
    }
}

/// Parses a line that is not empty, with the lines that continue it.
///
/// Empty lines after the record are no part of it, unless it ends in a string: Kieker writes none.
pub(super) fn parse(line: &str, map: &LogMap) -> Result<DynamicRecord, LineError> {
    let Some(rest) = line.strip_prefix('$') else {
        return Err(LineError::new(0, Problem::NoDollar));
    };
    let mut fields = Fields {
        // After the `$`.
        at: 1,
        next: 1,
        rest: rest.split(';'),
    };
    let number = fields.head();
    let number = integer(number, "i32").map_err(|_| {
        let found = Problem::shown(number);
        LineError::new(fields.at, Problem::ClassNumber { found })
    })?;
    let schema = map
        .schema(number)
        .map_err(|problem| LineError::new(fields.at, problem))?;
    let timestamp = fields
        .take(schema)
        .and_then(|text| integer(fields.without_blank_lines(text), "i64"))
        .map_err(|problem| fields.error("(timestamp)", problem))?;
    let mut values = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let value = fields
            .value(schema, field, field.field_type())
            .map_err(|problem| fields.error(field.name(), problem))?;
        values.push(value);
    }
    let extra = fields.left();
    if extra > 0 {
        let record = schema.name().into();
        let problem = Problem::TooManyFields { record, extra };
        return Err(LineError::new(fields.next, problem));
    }
    DynamicRecord::new(Arc::clone(schema), Some(timestamp), values)
        .map_err(|error| LineError::new(0, error.into()))
}

/// The parts of a record between semicolons.
struct Fields<'a> {
    /// Where the part that was taken last begins, in bytes.
    at: usize,
    /// Where the next one begins.
    next: usize,
    rest: Split<'a, char>,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let part = self.rest.next();
        self.at = self.next;
        let length = part.map_or(0, |part| part.len().saturating_add(1));
        self.next = self.next.saturating_add(length);
        part
    }

    /// What stands before the first semicolon.
    fn head(&mut self) -> &'a str {
        self.next().unwrap_or_default()
    }

    fn take(&mut self, schema: &Schema) -> Result<&'a str, Problem> {
        self.next().ok_or_else(|| Problem::TooFewFields {
            record: schema.name().into(),
        })
    }

    /// The part that was taken last, without the empty lines after the record.
    fn without_blank_lines<'t>(&self, text: &'t str) -> &'t str {
        match self.rest.clone().next() {
            None => text.trim_end_matches(['\n', '\r']),
            Some(_) => text,
        }
    }

    fn left(&self) -> usize {
        self.rest.clone().count()
    }

    fn error(&self, field: &str, problem: Problem) -> LineError {
        LineError {
            at: self.at,
            field: Some(field.into()),
            problem,
        }
    }

    fn value(
        &mut self,
        schema: &Schema,
        field: &Field,
        field_type: &FieldType,
    ) -> Result<Value, Problem> {
        let text = self.take(schema)?;
        let text = match field_type {
            FieldType::Char | FieldType::String => text,
            _ => self.without_blank_lines(text),
        };
        Ok(match field_type {
            FieldType::Bool => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => {
                    let found = Problem::shown(text);
                    return Err(Problem::NotABool { found });
                }
            },
            FieldType::I8 => integer::<i8>(text, "i8")?.into(),
            FieldType::I16 => integer::<i16>(text, "i16")?.into(),
            FieldType::I32 => integer::<i32>(text, "i32")?.into(),
            FieldType::I64 => integer::<i64>(text, "i64")?.into(),
            FieldType::U8 => integer::<u8>(text, "u8")?.into(),
            FieldType::U16 => integer::<u16>(text, "u16")?.into(),
            FieldType::U32 => integer::<u32>(text, "u32")?.into(),
            FieldType::U64 => integer::<u64>(text, "u64")?.into(),
            FieldType::F32 => floating::<f32>(text)?.into(),
            FieldType::F64 => floating::<f64>(text)?.into(),
            FieldType::Char => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => char.into(),
                    _ => {
                        let found = Problem::shown(text);
                        return Err(Problem::NotAChar { found });
                    }
                }
            }
            FieldType::String => text.into(),
            FieldType::Enum(enum_type) => {
                let number: u32 = integer(text, "u32")?;
                if enum_type.variant(number).is_none() {
                    return Err(Problem::UnknownVariant {
                        found: Problem::shown(text),
                        wanted: enum_type.name().into(),
                        variants: enum_type.variants().len(),
                    });
                }
                Value::Variant(number)
            }
            FieldType::List(inner) => {
                let count: u32 = integer(text, "u32")?;
                let left = self.left();
                let Some(count) = usize::try_from(count).ok().filter(|count| *count <= left) else {
                    let found = Problem::shown(text);
                    return Err(Problem::ListLength { found, left });
                };
                let items = (0..count).map(|_| self.value(schema, field, inner));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            // `check_fields` lets none of these through.
            FieldType::Bytes | FieldType::Optional(_) | FieldType::Record(_) => {
                return Err(unfit(schema, field));
            }
        })
    }
}
