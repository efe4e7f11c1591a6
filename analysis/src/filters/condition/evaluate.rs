//! The tree of an expression and a record -> a value, or the reason why it has none.

use std::iter;
use std::sync::Arc;

use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

use super::functions;
use super::operator::{Connective, Macro};
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
    /// A failure names the field that is its likely cause: the first field among the operands of
    /// the operator or function that failed. If none of them is a field, the error passes outwards
    /// to the next operator that has one. In `1 + eoi + 'a' == tin`, `+` fails and `eoi` is named.
    ///
    /// # Errors
    ///
    /// It has no value in this scope.
    pub(super) fn evaluate<'v>(
        &'v self,
        scope: &mut Scope<'v>,
    ) -> Result<Value<'v>, EvaluationError> {
        self.evaluate_operands(scope).map_err(|error| match error {
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

    /// Returns the expressions that may be the cause if this one fails.
    fn operands(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::Not(operand) | Self::Negate(operand) => Box::new(iter::once(&**operand)),
            Self::Binary(first, rest) => {
                Box::new(iter::once(&**first).chain(rest.iter().map(|(_, term)| term)))
            }
            // The other two are results, not operands.
            Self::Choice(parts) => Box::new(parts.iter().take(1)),
            Self::Call(_, operands) | Self::Connected(_, operands) => Box::new(operands.iter()),
            // The path itself names a field, as in `tin.contains('5')`.
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

    /// Evaluates the operands, and applies the operator or function to them.
    fn evaluate_operands<'v>(
        &'v self,
        scope: &mut Scope<'v>,
    ) -> Result<Value<'v>, EvaluationError> {
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
                let mut value = first.evaluate(scope)?;
                for (operator, operand) in rest {
                    value = operator.apply(&value, &operand.evaluate(scope)?)?;
                }
                value
            }
            Self::Connected(connective, terms) => {
                return connective.decide(terms.iter().map(|term| term.evaluate(scope)));
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
            Self::Macro {
                called,
                filter,
                body,
            } => evaluate_macro(*called, &value, filter.as_ref(), body, scope),
        }
    }
}

fn evaluate_macro<'v>(
    called: Macro,
    value: &Value<'v>,
    filter: Option<&'v Expression>,
    body: &'v Expression,
    scope: &mut Scope<'v>,
) -> Result<Value<'v>, EvaluationError> {
    let no_overload = || EvaluationError::no_overload(called.name(), [value]);
    let items = || value.items().ok_or_else(no_overload);
    match called {
        Macro::All => Connective::And.decide(items()?.map(|it| scope.evaluate_with(&it, body))),
        Macro::Exists => Connective::Or.decide(items()?.map(|it| scope.evaluate_with(&it, body))),
        Macro::ExistsOne | Macro::Filter => {
            let mut passed = Vec::new();
            for item in items()? {
                if scope.evaluate_with(&item, body)?.condition(called.name())? {
                    passed.push(item);
                }
            }
            Ok(match called {
                Macro::Filter => Value::list(passed),
                _ => Value::Bool(passed.len() == 1),
            })
        }
        Macro::Map => {
            let mut mapped = Vec::new();
            for item in items()? {
                let passes = filter.map_or(Ok(true), |filter| {
                    let passed = scope.evaluate_with(&item, filter)?;
                    passed.condition(called.name())
                })?;
                if passes {
                    mapped.push(scope.evaluate_with(&item, body)?);
                }
            }
            Ok(Value::list(mapped))
        }
        Macro::OptFlatMap | Macro::OptMap => match value {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(content)) => {
                let mapped = scope.evaluate_with(content, body)?;
                Ok(match called {
                    Macro::OptMap => Value::Optional(Some(Arc::new(mapped))),
                    _ => mapped,
                })
            }
            _ => Err(no_overload()),
        },
    }
}

impl<'v> Value<'v> {
    /// Returns the value of a field or an index.
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
