//! The tree of an expression and a record -> a value.

use std::iter;
use std::sync::Arc;

use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

use super::functions;
use super::parse::{Access, Expression, Item, Step};
use super::value::{EvaluationError, FieldValue, Map, Value};

/// The values that an expression can name.
#[derive(Debug)]
pub(super) struct Scope<'v> {
    record: RecordRef<'v>,
    fields: Map<'v>,
    chunk: Option<ChunkIdentity>,
    /// The variables of the macros around the current place, from the outermost to the innermost.
    pub(super) locals: Vec<Value<'v>>,
}

impl<'v> Scope<'v> {
    pub(super) fn new(record: RecordRef<'v>, chunk: Option<ChunkIdentity>) -> Self {
        Self {
            record,
            fields: Map::of_record(record.fields()),
            chunk,
            locals: Vec::new(),
        }
    }

    /// Returns the value of a variable, or `None` if the record lacks it.
    fn variable(&self, name: &str) -> Option<Value<'v>> {
        let (record, chunk) = (self.record, self.chunk);
        Some(match name {
            "type" => Value::String(record.type_name().into()),
            "timestamp" => record.timestamp().map_or(Value::Null, Value::Int),
            "producer" => Value::String(chunk?.producer.to_string().into()),
            "epoch" => Value::String(chunk?.epoch.to_string().into()),
            "lane" => Value::Int(chunk?.lane.into()),
            "sequence" => Value::unsigned(chunk?.sequence),
            // For names that are no identifiers.
            "fields" => Value::Map(self.fields.clone()),
            name => match self.fields.field(name) {
                Some(value) => value,
                // As in `type(x) == int`.
                None => Value::type_named(name)?,
            },
        })
    }

    /// Evaluates an expression that names one variable more.
    fn evaluate_with(
        &mut self,
        variable: &Value<'v>,
        expression: &'v Expression,
    ) -> Result<Value<'v>, EvaluationError> {
        self.locals.push(variable.clone());
        let value = expression.evaluate(self);
        self.locals.pop();
        value
    }
}

impl Expression {
    /// Evaluates the expression.
    ///
    /// # Errors
    ///
    /// It has no value in this scope.
    pub(super) fn evaluate<'v>(
        &'v self,
        scope: &mut Scope<'v>,
    ) -> Result<Value<'v>, EvaluationError> {
        self.value(scope).map_err(|error| match error {
            EvaluationError::Failed {
                reason,
                field: None,
            } => EvaluationError::Failed {
                reason,
                field: self.operands().find_map(|it| it.field(scope)),
            },
            other => other,
        })
    }

    /// The expressions whose values an operator or function of this one takes.
    fn operands(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::Not(operand) | Self::Negate(operand) => Box::new(iter::once(&**operand)),
            Self::Binary(first, rest) => {
                Box::new(iter::once(&**first).chain(rest.iter().map(|(_, term)| term)))
            }
            Self::Choice(parts) => Box::new(parts.iter().take(1)),
            Self::Call(_, arguments) => Box::new(arguments.iter()),
            Self::Path(_, steps) => Box::new(iter::once(self).chain(steps.iter().flat_map(|it| {
                let arguments = match it {
                    Step::Method(_, arguments) => &**arguments,
                    _ => &[],
                };
                arguments.iter()
            }))),
            _ => Box::new(iter::empty()),
        }
    }

    /// Returns the field of the record that the expression names, or begins with.
    pub(super) fn field(&self, scope: &Scope<'_>) -> Option<FieldValue> {
        let (name, steps) = match self {
            Self::Variable(name) => (name, &[][..]),
            Self::Path(first, steps) => match &**first {
                Self::Variable(name) => (name, &**steps),
                _ => return None,
            },
            _ => return None,
        };
        let (mut path, mut value) = (name.clone(), scope.variable(name)?);
        for step in steps {
            let key = match step {
                Step::Field(name, _) => Value::String(name.as_str().into()),
                Step::Index(Self::Literal(key), _) => key.borrowed(),
                _ => break,
            };
            let Ok(Some(inner)) = value.get(&key) else {
                break;
            };
            path = match key {
                Value::String(name) if path == "fields" => name.into_owned(),
                Value::String(name) => format!("{path}.{name}"),
                key => format!("{path}[{}]", key.example()),
            };
            value = inner;
        }
        Some(FieldValue {
            name: path,
            type_name: value.type_name(),
            example: value.example(),
        })
    }

    fn value<'v>(&'v self, scope: &mut Scope<'v>) -> Result<Value<'v>, EvaluationError> {
        Ok(match self {
            Self::Literal(value) => value.borrowed(),
            Self::Variable(name) => scope.variable(name).ok_or(EvaluationError::Missing)?,
            #[expect(
                clippy::indexing_slicing,
                reason = "the parser counts the macros around a place as evaluation does"
            )]
            Self::Local(position) => scope.locals[*position].clone(),
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(item.evaluate(scope)?);
                }
                Value::list(list)
            }
            Self::Map(entries) => {
                let mut map: Vec<(Value<'v>, Value<'v>)> = Vec::with_capacity(entries.len());
                for (key, item) in entries {
                    let key = key.evaluate(scope)?;
                    if !key.is_key() {
                        return Err(EvaluationError::no_overload("{}", [&key]));
                    }
                    if let Some(value) = item.evaluate(scope)? {
                        if map.iter().any(|(it, _)| it.equals(&key)) {
                            let reason = "a key of a map is repeated";
                            return Err(EvaluationError::failed(reason));
                        }
                        map.push((key, value));
                    }
                }
                Value::Map(Map::Made(map.into()))
            }
            Self::Not(operand) => Value::Bool(!operand.evaluate(scope)?.condition("!")?),
            Self::Negate(operand) => match operand.evaluate(scope)? {
                Value::Int(number) => {
                    let number = number.checked_neg();
                    Value::Int(number.ok_or_else(|| EvaluationError::overflow("-"))?)
                }
                Value::Double(number) => Value::Double(-number),
                other => return Err(EvaluationError::no_overload("-", [&other])),
            },
            Self::Binary(first, rest) => {
                let terms = iter::once(&**first).chain(rest.iter().map(|(_, term)| term));
                if let Some((operator @ ("||" | "&&"), _)) = rest.first() {
                    return decide(operator, terms.map(|term| term.evaluate(scope)));
                }
                let mut value = first.evaluate(scope)?;
                for (operator, operand) in rest {
                    value = apply(operator, &value, &operand.evaluate(scope)?)?;
                }
                value
            }
            Self::Choice(parts) => {
                let [condition, if_true, if_false] = &**parts;
                let holds = condition.evaluate(scope)?.condition("?:")?;
                return if holds { if_true } else { if_false }.evaluate(scope);
            }
            Self::Call(name, arguments) => {
                let arguments = arguments.iter().map(|it| it.evaluate(scope));
                functions::call(name, &arguments.collect::<Result<Vec<_>, _>>()?)?
            }
            Self::Path(first, steps) => {
                let mut value = first.evaluate(scope)?;
                for step in steps {
                    value = step.evaluate(value, scope)?;
                }
                value
            }
        })
    }
}

impl Item {
    /// Evaluates the item. Returns `None` if there is none.
    fn evaluate<'v>(&'v self, scope: &mut Scope<'v>) -> Result<Option<Value<'v>>, EvaluationError> {
        Ok(match (self.value.evaluate(scope)?, self.is_optional) {
            (Value::Optional(value), true) => value.map(Arc::unwrap_or_clone),
            (value, _) => Some(value),
        })
    }
}

/// Combines conditions by `||` or `&&`. A term that decides the result does so beside terms
/// without a value, whatever their order.
fn decide<'v>(
    operator: &str,
    terms: impl Iterator<Item = Result<Value<'v>, EvaluationError>>,
) -> Result<Value<'v>, EvaluationError> {
    let decisive = operator == "||";
    let mut error = None;
    for term in terms {
        match term.and_then(|it| it.condition(operator)) {
            Ok(holds) if holds == decisive => return Ok(Value::Bool(decisive)),
            Ok(_) => {}
            Err(undecided) => error = Some(undecided),
        }
    }
    error.map_or(Ok(Value::Bool(!decisive)), Err)
}

/// Applies a binary operator.
fn apply<'v>(
    operator: &str,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Result<Value<'v>, EvaluationError> {
    let no_overload = || EvaluationError::no_overload(operator, [left, right]);
    let ordering = || {
        left.compare(right)
            .ok_or_else(|| match left.is_nan() || right.is_nan() {
                true => EvaluationError::failed("NaN has no order"),
                false => no_overload(),
            })
    };
    Ok(match (operator, left, right) {
        (_, Value::Unreadable(_), _) | (_, _, Value::Unreadable(_)) => return Err(no_overload()),
        ("==", ..) => Value::Bool(left.equals(right)),
        ("!=", ..) => Value::Bool(!left.equals(right)),
        ("<", ..) => Value::Bool(ordering()?.is_lt()),
        ("<=", ..) => Value::Bool(ordering()?.is_le()),
        (">", ..) => Value::Bool(ordering()?.is_gt()),
        (">=", ..) => Value::Bool(ordering()?.is_ge()),
        ("in", _, Value::List(list)) => Value::Bool(list.iter().any(|it| it.equals(left))),
        ("in", _, Value::Map(_)) => {
            let value = right.get(left).map_err(|_| no_overload())?;
            Value::Bool(value.is_some())
        }
        ("in", ..) => return Err(no_overload()),
        (_, Value::Int(left), Value::Int(right)) => {
            let number = calculate(operator, (*left).into(), (*right).into())?;
            let number = i64::try_from(number);
            Value::Int(number.map_err(|_| EvaluationError::overflow(operator))?)
        }
        (_, Value::Uint(left), Value::Uint(right)) => {
            let number = calculate(operator, (*left).into(), (*right).into())?;
            let number = u64::try_from(number);
            Value::Uint(number.map_err(|_| EvaluationError::overflow(operator))?)
        }
        (_, Value::Double(left), Value::Double(right)) => Value::Double(match operator {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => return Err(no_overload()),
        }),
        ("+", Value::String(left), Value::String(right)) => {
            Value::String(format!("{left}{right}").into())
        }
        ("+", Value::Bytes(left), Value::Bytes(right)) => {
            Value::Bytes([&**left, &**right].concat().into())
        }
        ("+", Value::List(left), Value::List(right)) => {
            Value::list(left.iter().chain(&**right).cloned())
        }
        _ => return Err(no_overload()),
    })
}

/// Calculates with integers of 64 bits. The result may need more.
fn calculate(operator: &str, left: i128, right: i128) -> Result<i128, EvaluationError> {
    let number = match operator {
        "/" | "%" if right == 0 => {
            return Err(EvaluationError::failed(format!("`{operator}` by zero")));
        }
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    number.ok_or_else(|| EvaluationError::overflow(operator))
}

impl Step {
    fn evaluate<'v>(
        &'v self,
        value: Value<'v>,
        scope: &mut Scope<'v>,
    ) -> Result<Value<'v>, EvaluationError> {
        match self {
            Self::Field(name, access) => {
                value.select(&Value::String(name.as_str().into()), *access)
            }
            Self::Index(key, access) => value.select(&key.evaluate(scope)?, *access),
            Self::Method(name, arguments) => {
                let arguments = arguments.iter().map(|it| it.evaluate(scope));
                let arguments = iter::once(Ok(value)).chain(arguments);
                functions::call(name, &arguments.collect::<Result<Vec<_>, _>>()?)
            }
            Self::Macro { name, filter, body } => {
                evaluate_macro(name, &value, filter.as_ref(), body, scope)
            }
        }
    }
}

fn evaluate_macro<'v>(
    name: &str,
    value: &Value<'v>,
    filter: Option<&'v Expression>,
    body: &'v Expression,
    scope: &mut Scope<'v>,
) -> Result<Value<'v>, EvaluationError> {
    match (name, value) {
        ("optMap" | "optFlatMap", Value::Optional(None)) => return Ok(Value::Optional(None)),
        ("optMap", Value::Optional(Some(value))) => {
            let mapped = scope.evaluate_with(value, body)?;
            return Ok(Value::Optional(Some(Arc::new(mapped))));
        }
        ("optFlatMap", Value::Optional(Some(value))) => return scope.evaluate_with(value, body),
        _ => {}
    }
    let items = value.items().filter(|_| !name.starts_with("opt"));
    let items = items.ok_or_else(|| EvaluationError::no_overload(name, [value]))?;
    if let "all" | "exists" = name {
        let operator = if name == "all" { "&&" } else { "||" };
        return decide(operator, items.map(|item| scope.evaluate_with(&item, body)));
    }
    let is_map = name == "map";
    let mut list = Vec::new();
    for item in items {
        let filter = if is_map { filter } else { Some(body) };
        if let Some(filter) = filter {
            if !scope.evaluate_with(&item, filter)?.condition(name)? {
                continue;
            }
        }
        list.push(match is_map {
            true => scope.evaluate_with(&item, body)?,
            false => item,
        });
    }
    Ok(match name {
        "exists_one" | "existsOne" => Value::Bool(list.len() == 1),
        _ => Value::list(list),
    })
}

impl<'v> Value<'v> {
    /// Returns the value of a condition of an operator or macro.
    fn condition(&self, of: &str) -> Result<bool, EvaluationError> {
        match self {
            Self::Bool(holds) => Ok(*holds),
            other => Err(EvaluationError::no_overload(of, [other])),
        }
    }

    fn select(&self, key: &Value<'_>, access: Access) -> Result<Self, EvaluationError> {
        let (container, is_optional) = match self {
            Self::Optional(None) if access == Access::Presence => return Ok(Self::Bool(false)),
            Self::Optional(None) => return Ok(Self::Optional(None)),
            Self::Optional(Some(container)) => (&**container, true),
            container => (container, access == Access::Optional),
        };
        let found = container.get(key);
        if access == Access::Presence {
            return Ok(Self::Bool(found?.is_some()));
        }
        if is_optional {
            // What cannot have the key has no value either.
            return Ok(Self::Optional(found.ok().flatten().map(Arc::new)));
        }
        found?.ok_or_else(|| match container {
            Self::List(_) => EvaluationError::failed("the index is beyond the list"),
            _ => EvaluationError::Missing,
        })
    }
}
