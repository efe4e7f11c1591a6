//! Parses the text of one record.

use std::str::Split;
use std::sync::Arc;

use baler_common::record::{DynamicRecord, Field, FieldType, Schema, Value};

use super::error::Problem;
use super::map::LogMap;
use super::number::{floating, integer};

/// A problem in the text of a record, and its place.
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

/// Refuses types that a text log cannot hold. Kieker's generated classes do not have them either.
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
    let (record, name, kind) = (schema.name(), field.name(), field.field_type());
    let message = format!("a text log cannot hold {record}.{name} of type {kind}");
    Problem::new("unfit_record_type", message)
}

/// Parses a line that is not empty, with the lines that continue it.
///
/// Empty lines after the record are no part of it, unless it ends in a string: Kieker writes none.
pub(super) fn parse(line: &str, map: &LogMap) -> Result<DynamicRecord, LineError> {
    let Some(rest) = line.strip_prefix('$') else {
        let message = "a record begins with $ and the number of its class; no record begins here";
        return Err(LineError::new(0, Problem::new("no_dollar", message)));
    };
    let mut fields = Fields {
        // After the `$`.
        at: 1,
        next: 1,
        rest: rest.split(';'),
    };
    let number = fields.head();
    let number = integer(number, "i32")
        .map_err(|_| LineError::new(fields.at, Problem::class_number(number)))?;
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
        let record = schema.name();
        let message = format!(
            "{extra} fields too many for {record}; is there a semicolon in one of its strings?"
        );
        let problem = Problem::new("too_many_fields", message);
        return Err(LineError::new(fields.next, problem));
    }
    DynamicRecord::new(Arc::clone(schema), Some(timestamp), values)
        .map_err(|error| LineError::new(0, Problem::new("values", error.to_string())))
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

    /// The part before the first semicolon.
    fn head(&mut self) -> &'a str {
        self.next().unwrap_or_default()
    }

    fn take(&mut self, schema: &Schema) -> Result<&'a str, Problem> {
        self.next().ok_or_else(|| {
            let message = format!("the record ends; {} has more fields", schema.name());
            Problem::new("too_few_fields", message)
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
                    let message = format!("{:?} is neither true nor false", Problem::shown(text));
                    return Err(Problem::new("not_a_bool", message));
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
            FieldType::F32 => floating::<f32>(text, "f32")?.into(),
            FieldType::F64 => floating::<f64>(text, "f64")?.into(),
            FieldType::Char => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => char.into(),
                    _ => {
                        let message = format!("{:?} is not one character", Problem::shown(text));
                        return Err(Problem::new("not_a_char", message));
                    }
                }
            }
            FieldType::String => text.into(),
            FieldType::Enum(enum_type) => {
                let number: u32 = integer(text, "u32")?;
                if enum_type.variant(number).is_none() {
                    let message = format!(
                        "{} is not the number of a variant of {}, which has {}",
                        Problem::shown(text),
                        enum_type.name(),
                        enum_type.variants().len()
                    );
                    return Err(Problem::new("unknown_variant", message));
                }
                Value::Variant(number)
            }
            FieldType::List(inner) => {
                let count: u32 = integer(text, "u32")?;
                let left = self.left();
                let Some(count) = usize::try_from(count).ok().filter(|count| *count <= left) else {
                    let message = format!(
                        "a list of {} items is announced, {left} fields are left",
                        Problem::shown(text)
                    );
                    return Err(Problem::new("list_length", message));
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
