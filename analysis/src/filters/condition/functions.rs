//! The functions of CEL's standard library that need neither regular expressions nor a calendar.

use std::borrow::Cow;
use std::sync::Arc;

use super::value::{EvaluationError, Value};

/// Functions, and the numbers of their arguments.
const GLOBAL: [(&str, usize); 12] = [
    ("bool", 1),
    ("bytes", 1),
    ("double", 1),
    ("dyn", 1),
    ("int", 1),
    ("optional.none", 0),
    ("optional.of", 1),
    ("optional.ofNonZeroValue", 1),
    ("size", 1),
    ("string", 1),
    ("type", 1),
    ("uint", 1),
];

const METHODS: [(&str, usize); 8] = [
    ("contains", 1),
    ("endsWith", 1),
    ("hasValue", 0),
    ("or", 1),
    ("orValue", 1),
    ("size", 0),
    ("startsWith", 1),
    ("value", 0),
];

/// Finds a function.
///
/// # Errors
///
/// There is none with this name and this number of arguments.
pub(super) fn global(name: &str, arguments: usize) -> Result<&'static str, String> {
    find(&GLOBAL, "function", name, arguments)
}

/// Finds a method.
///
/// # Errors
///
/// There is none with this name and this number of arguments.
pub(super) fn method(name: &str, arguments: usize) -> Result<&'static str, String> {
    find(&METHODS, "method", name, arguments)
}

fn find(
    known: &[(&'static str, usize)],
    kind: &str,
    name: &str,
    arguments: usize,
) -> Result<&'static str, String> {
    match known.iter().find(|(it, _)| *it == name) {
        Some((name, count)) if *count == arguments => Ok(name),
        Some((_, count)) => Err(format!("the number of arguments of `{name}` is {count}")),
        None => Err(format!("there is no {kind} `{name}`")),
    }
}

/// Calls a function, or a method with its object as the first argument.
///
/// # Errors
///
/// It does not take values of these types, or has no result for these values.
pub(super) fn call<'v>(name: &str, arguments: &[Value<'v>]) -> Result<Value<'v>, EvaluationError> {
    let no_result = || {
        let types = arguments.iter().map(Value::type_name);
        let types = types.collect::<Vec<_>>().join(", ");
        EvaluationError::failed(format!("`{name}` has no result for this {types}"))
    };
    Ok(match (name, arguments) {
        ("size", [Value::String(text)]) => Value::size(text.chars().count()),
        ("size", [Value::Bytes(bytes)]) => Value::size(bytes.len()),
        ("size", [Value::List(list)]) => Value::size(list.len()),
        ("size", [Value::Map(map)]) => Value::size(map.len()),

        ("contains", [Value::String(text), Value::String(part)]) => {
            Value::Bool(text.contains(&**part))
        }
        ("endsWith", [Value::String(text), Value::String(part)]) => {
            Value::Bool(text.ends_with(&**part))
        }
        ("startsWith", [Value::String(text), Value::String(part)]) => {
            Value::Bool(text.starts_with(&**part))
        }

        ("type", [value]) => Value::Type(value.type_name()),
        ("dyn", [value])
        | ("bool", [value @ Value::Bool(_)])
        | ("bytes", [value @ Value::Bytes(_)])
        | ("double", [value @ Value::Double(_)])
        | ("string", [value @ Value::String(_)]) => value.clone(),
        ("bool", [Value::String(text)]) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Value::Bool(true),
            "0" | "f" | "false" | "FALSE" | "False" => Value::Bool(false),
            _ => return Err(no_result()),
        },
        ("bytes", [Value::String(text)]) => Value::Bytes(match text {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.clone().into_bytes().into(),
        }),
        ("double", [Value::String(text)]) => Value::Double(text.parse().map_err(|_| no_result())?),
        #[expect(clippy::cast_precision_loss, reason = "a double is rounded")]
        ("double", [Value::Int(number)]) => Value::Double(*number as f64),
        #[expect(clippy::cast_precision_loss, reason = "a double is rounded")]
        ("double", [Value::Uint(number)]) => Value::Double(*number as f64),
        ("int" | "uint", [value]) => {
            let number: Option<i128> = match value {
                Value::Int(number) => Some((*number).into()),
                Value::Uint(number) => Some((*number).into()),
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "beyond 64 bits it saturates"
                )]
                Value::Double(number) => (!number.is_nan()).then_some(*number as i128),
                Value::String(text) => text.parse().ok(),
                _ => return Err(EvaluationError::no_overload(name, arguments)),
            };
            let number = number.ok_or_else(no_result)?;
            match name {
                "int" => Value::Int(i64::try_from(number).map_err(|_| no_result())?),
                _ => Value::Uint(u64::try_from(number).map_err(|_| no_result())?),
            }
        }
        ("string", [Value::Bool(value)]) => Value::String(value.to_string().into()),
        ("string", [Value::Int(number)]) => Value::String(number.to_string().into()),
        ("string", [Value::Uint(number)]) => Value::String(number.to_string().into()),
        ("string", [Value::Double(number)]) => Value::String(number.to_string().into()),
        ("string", [Value::Bytes(bytes)]) => {
            let text = String::from_utf8(bytes.to_vec());
            Value::String(text.map_err(|_| no_result())?.into())
        }

        ("optional.none", []) => Value::Optional(None),
        ("optional.ofNonZeroValue", [value]) if value.is_zero() => Value::Optional(None),
        ("optional.of" | "optional.ofNonZeroValue", [value]) => {
            Value::Optional(Some(Arc::new(value.clone())))
        }
        ("hasValue", [Value::Optional(value)]) => Value::Bool(value.is_some()),
        ("value", [Value::Optional(None)]) => return Err(no_result()),
        ("value" | "orValue", [Value::Optional(Some(value)), ..]) => (**value).clone(),
        ("or" | "orValue", [Value::Optional(None), other]) => other.clone(),
        ("or", [value @ Value::Optional(Some(_)), _]) => value.clone(),

        _ => return Err(EvaluationError::no_overload(name, arguments)),
    })
}
