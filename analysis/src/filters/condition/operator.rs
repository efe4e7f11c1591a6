//! The operators and macros of the language: their spelling, and the results of operators.

use super::value::{EvaluationError, Value};

/// Combines conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connective {
    And,
    Or,
}

impl Connective {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
        }
    }

    /// Combines conditions. A term that decides the result does so beside terms without a value,
    /// whatever their order.
    pub(super) fn decide<'v>(
        self,
        terms: impl Iterator<Item = Result<Value<'v>, EvaluationError>>,
    ) -> Result<Value<'v>, EvaluationError> {
        let decisive = self == Self::Or;
        let mut error = None;
        for term in terms {
            match term.and_then(|it| it.condition(self.symbol())) {
                Ok(holds) if holds == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(undecided) => error = Some(undecided),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }
}

/// An operator between two values that are both needed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operator {
    Arithmetic(Arithmetic),
    Equal,
    Greater,
    GreaterOrEqual,
    In,
    Less,
    LessOrEqual,
    NotEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Divide,
    Multiply,
    Remainder,
    Subtract,
}

impl Operator {
    /// The operators by precedence, the weakest ones first.
    pub(super) const LEVELS: [&[Self]; 3] = [
        &[
            Self::Equal,
            Self::NotEqual,
            Self::LessOrEqual,
            Self::GreaterOrEqual,
            Self::Less,
            Self::Greater,
            Self::In,
        ],
        &[
            Self::Arithmetic(Arithmetic::Add),
            Self::Arithmetic(Arithmetic::Subtract),
        ],
        &[
            Self::Arithmetic(Arithmetic::Multiply),
            Self::Arithmetic(Arithmetic::Divide),
            Self::Arithmetic(Arithmetic::Remainder),
        ],
    ];

    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Arithmetic(arithmetic) => arithmetic.symbol(),
            Self::Equal => "==",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::NotEqual => "!=",
        }
    }

    /// Applies a binary operator.
    pub(super) fn apply<'v>(
        self,
        left: &Value<'v>,
        right: &Value<'v>,
    ) -> Result<Value<'v>, EvaluationError> {
        let no_overload = || EvaluationError::no_overload(self.symbol(), [left, right]);
        if let (Value::Unreadable(_), _) | (_, Value::Unreadable(_)) = (left, right) {
            return Err(no_overload());
        }
        let ordering = || {
            left.compare(right)
                .ok_or_else(|| match left.is_nan() || right.is_nan() {
                    true => EvaluationError::failed("NaN has no order"),
                    false => no_overload(),
                })
        };
        Ok(Value::Bool(match self {
            Self::Arithmetic(arithmetic) => return arithmetic.apply(left, right),
            Self::Equal => left.equals(right),
            Self::Greater => ordering()?.is_gt(),
            Self::GreaterOrEqual => ordering()?.is_ge(),
            Self::In => match right {
                Value::List(list) => list.iter().any(|it| it.equals(left)),
                Value::Map(_) => right.get(left).map_err(|_| no_overload())?.is_some(),
                _ => return Err(no_overload()),
            },
            Self::Less => ordering()?.is_lt(),
            Self::LessOrEqual => ordering()?.is_le(),
            Self::NotEqual => !left.equals(right),
        }))
    }
}

impl Arithmetic {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Divide => "/",
            Self::Multiply => "*",
            Self::Remainder => "%",
            Self::Subtract => "-",
        }
    }

    /// Calculates with numbers of one type, or joins texts, bytes or lists.
    fn apply<'v>(self, left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>, EvaluationError> {
        let no_overload = || EvaluationError::no_overload(self.symbol(), [left, right]);
        let overflow = |_| EvaluationError::overflow(self.symbol());
        Ok(match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                let number = self.apply_to_integers((*left).into(), (*right).into())?;
                Value::Int(i64::try_from(number).map_err(overflow)?)
            }
            (Value::Uint(left), Value::Uint(right)) => {
                let number = self.apply_to_integers((*left).into(), (*right).into())?;
                Value::Uint(u64::try_from(number).map_err(overflow)?)
            }
            (Value::Double(left), Value::Double(right)) => Value::Double(match self {
                Self::Add => left + right,
                Self::Divide => left / right,
                Self::Multiply => left * right,
                Self::Remainder => return Err(no_overload()),
                Self::Subtract => left - right,
            }),
            _ if self != Self::Add => return Err(no_overload()),
            (Value::String(left), Value::String(right)) => {
                Value::String(format!("{left}{right}").into())
            }
            (Value::Bytes(left), Value::Bytes(right)) => {
                Value::Bytes([&**left, &**right].concat().into())
            }
            (Value::List(left), Value::List(right)) => {
                Value::list(left.iter().chain(&**right).cloned())
            }
            _ => return Err(no_overload()),
        })
    }

    /// Calculates with integers of 64 bits. The result may need more.
    fn apply_to_integers(self, left: i128, right: i128) -> Result<i128, EvaluationError> {
        let symbol = self.symbol();
        let number = match self {
            Self::Divide | Self::Remainder if right == 0 => {
                return Err(EvaluationError::failed(format!("`{symbol}` by zero")));
            }
            Self::Add => left.checked_add(right),
            Self::Divide => left.checked_div(right),
            Self::Multiply => left.checked_mul(right),
            Self::Remainder => left.checked_rem(right),
            Self::Subtract => left.checked_sub(right),
        };
        number.ok_or_else(|| EvaluationError::overflow(symbol))
    }
}

/// A method that evaluates an expression for each item, with the item as a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    OptFlatMap,
    OptMap,
}

impl Macro {
    /// Finds a macro. `existsOne` is another spelling of `exists_one`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "exists" => Self::Exists,
            "existsOne" | "exists_one" => Self::ExistsOne,
            "filter" => Self::Filter,
            "map" => Self::Map,
            "optFlatMap" => Self::OptFlatMap,
            "optMap" => Self::OptMap,
            _ => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Exists => "exists",
            Self::ExistsOne => "exists_one",
            Self::Filter => "filter",
            Self::Map => "map",
            Self::OptFlatMap => "optFlatMap",
            Self::OptMap => "optMap",
        }
    }
}
