//! Whether default values and constants fit their types.

use std::collections::HashMap;

use crate::Finding;
use crate::model::{Base, Constant, Literal, Type, Value};

/// Returns the errors of a value.
pub(crate) fn check(
    literal: &Literal,
    wanted: &Type,
    constants: &HashMap<&str, &Constant>,
    file: usize,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    inner(
        literal,
        &wanted.base,
        &wanted.dimensions,
        &mut |literal, problem| {
            findings.push(Finding::error("wrong-value", file, literal.span, problem));
        },
        constants,
    );
    findings
}

fn inner(
    literal: &Literal,
    base: &Base,
    dimensions: &[Option<u32>],
    note: &mut impl FnMut(&Literal, String),
    constants: &HashMap<&str, &Constant>,
) {
    let wanted = || {
        let dimensions = dimensions.to_vec();
        Type {
            base: base.clone(),
            dimensions,
        }
        .to_string()
    };
    if let Value::Name(name) = &literal.value {
        let found = constants.get(&**name).map(|it| &it.constant_type);
        let is_literal =
            matches!(base, Base::Enum(it) if it.literals.iter().any(|it| *it.0 == **name));
        match found {
            Some(found)
                if found.dimensions.len() == dimensions.len() && widens(&found.base, base) =>
            {
                let value = constants.get(&**name).map(|it| &it.value.value);
                let items = match value {
                    Some(Value::Array(items)) => Some(items.len()),
                    _ => None,
                };
                if let (Some(Some(length)), Some(items)) = (dimensions.first(), items) {
                    if usize::try_from(*length).ok() != Some(items) {
                        note(literal, format!("{} has not {items} items", wanted()));
                    }
                }
            }
            _ if dimensions.is_empty() && is_literal => {}
            Some(found) => note(
                literal,
                format!("{name} is of type {found}, not {}", wanted()),
            ),
            None => {
                let scope = match base {
                    Base::Enum(it) => it.name.to_string(),
                    _ => "the type or its parents".to_owned(),
                };
                note(literal, format!("{name} is no constant of {scope}"));
            }
        }
        return;
    }
    match (dimensions, &literal.value) {
        ([length, rest @ ..], Value::Array(items)) => {
            if length.is_some_and(|it| usize::try_from(it).ok() != Some(items.len())) {
                note(
                    literal,
                    format!("{} has not {} items", wanted(), items.len()),
                );
            }
            for item in items {
                inner(item, base, rest, note, constants);
            }
        }
        ([_, ..], _) | ([], Value::Array(_)) => {
            note(
                literal,
                format!("{} does not fit {}", kind(&literal.value), wanted()),
            );
        }
        ([], value) => {
            if let Some(problem) = single(value, base) {
                note(literal, problem);
            }
        }
    }
}

/// Whether each value of one type is a value of another one.
fn widens(from: &Base, to: &Base) -> bool {
    let rank = |base: &Base| {
        let order = [
            Base::Byte,
            Base::Short,
            Base::Int,
            Base::Long,
            Base::Float,
            Base::Double,
        ];
        order.iter().position(|it| it == base)
    };
    from == to || matches!((rank(from), rank(to)), (Some(from), Some(to)) if from < to)
}

/// Returns why a value does not fit a type without dimensions.
fn single(value: &Value, base: &Base) -> Option<String> {
    let fits = match (base, value) {
        (Base::Byte, Value::Int(it)) => i8::try_from(*it).is_ok(),
        (Base::Short, Value::Int(it)) => i16::try_from(*it).is_ok(),
        (Base::Int, Value::Int(it)) => i32::try_from(*it).is_ok(),
        (Base::Char, Value::Text(it)) => it.encode_utf16().count() == 1,
        (Base::Boolean, Value::Bool(_))
        | (Base::Double | Base::Float, Value::Float(_) | Value::Int(_))
        | (Base::Long, Value::Int(_))
        | (Base::String, Value::KiekerVersion | Value::Text(_)) => true,
        _ => return Some(format!("{} does not fit {base}", kind(value))),
    };
    match value {
        _ if fits => None,
        Value::Int(it) => Some(format!("{it} is out of the range of {base}")),
        _ => Some(format!("{} does not fit {base}", kind(value))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "an array",
        Value::Bool(_) => "true or false",
        Value::Float(_) => "a number with a fraction",
        Value::Int(_) => "a whole number",
        Value::KiekerVersion => "KIEKER_VERSION",
        Value::Name(_) => "a name",
        Value::Text(_) => "a string",
    }
}
