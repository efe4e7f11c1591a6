//! Tokens -> the tree of an expression, by recursive descent over the grammar of CEL.

use std::collections::BTreeSet;

use super::functions;
use super::lexer::{Lexer, SyntaxError, Token};
use super::operator::{Connective, Macro, Operator};
use super::value::Value;

/// The maximum depth of an expression. A thread's stack has room for it, also without optimisation.
const MAX_NESTING: usize = 64;

/// The variables that are no fields, beside the names of types.
const VARIABLES: [&str; 7] = [
    "epoch",
    "fields",
    "lane",
    "producer",
    "sequence",
    "timestamp",
    "type",
];

const RESERVED: &str = "as break const continue else for function if import let loop namespace \
                        package return var void while";

/// An expression. Repetitions are lists and no chains of boxes, so that its depth is bounded.
#[derive(Debug)]
pub(super) enum Expression {
    Literal(Value<'static>),
    Variable(String),
    /// A variable of a macro, by its position in [`super::evaluate::Scope::locals`].
    Local(usize),
    List(Vec<Item>),
    /// Keys and values.
    Map(Vec<(Self, Item)>),
    Not(Box<Self>),
    Negate(Box<Self>),
    /// Operators of one level, from left to right.
    Binary(Box<Self>, Vec<(Operator, Self)>),
    /// A condition, the value if it is true, and the value if it is false.
    Choice(Box<[Self; 3]>),
    Call(&'static str, Vec<Self>),
    /// Conditions that are combined by one connective.
    Connected(Connective, Vec<Self>),
    Path(Box<Self>, Vec<Step>),
}

/// An item of a list, or a value of a map.
#[derive(Debug)]
pub(super) struct Item {
    /// Whether it stands for the value of an optional, or for nothing if that is empty.
    pub(super) is_optional: bool,
    pub(super) value: Expression,
}

/// What follows a value.
#[derive(Debug)]
pub(super) enum Step {
    Field(String, Access),
    Index(Expression, Access),
    Method(&'static str, Vec<Expression>),
    Macro {
        called: Macro,
        filter: Option<Expression>,
        body: Expression,
    },
}

/// What is asked of a field or index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Optional,
    Presence,
    Value,
}

/// Parses a text.
///
/// # Errors
///
/// The text is no expression, or is nested too deeply.
pub(super) fn parse(text: &str) -> Result<Expression, SyntaxError> {
    let mut lexer = Lexer::new(text);
    let (offset, token) = lexer.token()?;
    let mut parser = Parser {
        lexer,
        token,
        offset,
        locals: Vec::new(),
        nesting: 0,
    };
    let expression = parser.expression()?;
    match parser.token {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// The offset of `token`.
    offset: usize,
    /// The variables of the macros around this place.
    locals: Vec<&'t str>,
    nesting: usize,
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Result<(), SyntaxError> {
        (self.offset, self.token) = self.lexer.token()?;
        Ok(())
    }

    fn is_at(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(it) if it == symbol)
    }

    fn take(&mut self, symbol: &str) -> Result<bool, SyntaxError> {
        let is_there = self.is_at(symbol);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SyntaxError> {
        match self.take(symbol)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{symbol}`"))),
        }
    }

    fn name(&mut self) -> Result<&'t str, SyntaxError> {
        let Token::Name(name) = self.token else {
            return Err(self.unexpected("a name"));
        };
        self.advance()?;
        Ok(name)
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match &self.token {
            Token::Name(name) => format!("`{name}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::Integer(number) => format!("`{number}`"),
            Token::Literal(value) => format!("a value of type {}", value.type_name()),
            Token::End => "the end".to_owned(),
        };
        let message = format!("expected {expected} instead of {found}");
        SyntaxError::new(self.offset, message)
    }

    /// Parses one level deeper.
    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expression, SyntaxError>,
    ) -> Result<Expression, SyntaxError> {
        if self.nesting == MAX_NESTING {
            let message = format!("the expression is more than {MAX_NESTING} levels deep");
            return Err(SyntaxError::new(self.offset, message));
        }
        self.nesting += 1;
        let parsed = parse(self)?;
        self.nesting -= 1;
        Ok(parsed)
    }

    fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.nested(|parser| {
            let condition = parser.connected(Connective::Or)?;
            if !parser.take("?")? {
                return Ok(condition);
            }
            let if_true = parser.connected(Connective::Or)?;
            parser.expect(":")?;
            let if_false = parser.expression()?;
            Ok(Expression::Choice(Box::new([condition, if_true, if_false])))
        })
    }

    /// Parses conditions between `||`, or between `&&`, which binds more strongly.
    fn connected(&mut self, connective: Connective) -> Result<Expression, SyntaxError> {
        let term = |parser: &mut Self| match connective {
            Connective::Or => parser.connected(Connective::And),
            Connective::And => parser.binary(0),
        };
        let first = term(self)?;
        if !self.is_at(connective.symbol()) {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take(connective.symbol())? {
            terms.push(term(self)?);
        }
        Ok(Expression::Connected(connective, terms))
    }

    fn binary(&mut self, level: usize) -> Result<Expression, SyntaxError> {
        let Some(operators) = Operator::LEVELS.get(level) else {
            return self.unary();
        };
        let first = self.binary(level + 1)?;
        let mut rest = Vec::new();
        while let Some(operator) = operators.iter().find(|it| self.is_at(it.symbol())) {
            self.advance()?;
            rest.push((*operator, self.binary(level + 1)?));
        }
        Ok(match rest.is_empty() {
            true => first,
            false => Expression::Binary(Box::new(first), rest),
        })
    }

    fn unary(&mut self) -> Result<Expression, SyntaxError> {
        if self.take("!")? {
            return Ok(Expression::Not(Box::new(self.nested(Self::unary)?)));
        }
        let offset = self.offset;
        if !self.take("-")? {
            let first = self.primary()?;
            return self.path(first);
        }
        let Token::Integer(number) = self.token else {
            return Ok(Expression::Negate(Box::new(self.nested(Self::unary)?)));
        };
        self.advance()?;
        // The smallest integer has no positive counterpart.
        let number = integer(0_i64.checked_sub_unsigned(number), offset)?;
        self.path(number)
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        let offset = self.offset;
        if self.take("(")? {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[")? {
            let items = self.listed("]", Self::item)?;
            // A list of constants is made once, and not for each record.
            let constants: Option<Vec<_>> = items.iter().map(Item::constant).collect();
            let constant = |it| Expression::Literal(Value::list(it));
            return Ok(constants.map_or(Expression::List(items), constant));
        }
        if self.take("{")? {
            let entries = self.listed("}", |parser| {
                let Item {
                    is_optional,
                    value: key,
                } = parser.item()?;
                parser.expect(":")?;
                let value = parser.expression()?;
                Ok((key, Item { is_optional, value }))
            });
            return Ok(Expression::Map(entries?));
        }
        // A name behind a dot is never the variable of a macro.
        let is_root = self.take(".")?;
        match self.token.clone() {
            Token::Name(name) => {
                self.advance()?;
                self.named(offset, name, is_root)
            }
            Token::Integer(number) if !is_root => {
                self.advance()?;
                integer(i64::try_from(number).ok(), offset)
            }
            Token::Literal(value) if !is_root => {
                self.advance()?;
                Ok(Expression::Literal(value))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Parses a variable or the call of a function. Its name is taken already.
    fn named(
        &mut self,
        offset: usize,
        name: &str,
        is_root: bool,
    ) -> Result<Expression, SyntaxError> {
        if RESERVED.split_whitespace().any(|it| it == name) {
            let message = format!("`{name}` is a reserved word; for a field write fields.{name}");
            return Err(SyntaxError::new(offset, message));
        }
        if !self.take("(")? {
            let local = self.locals.iter().rposition(|it| *it == name);
            return Ok(match local {
                Some(position) if !is_root => Expression::Local(position),
                _ => Expression::Variable(name.to_owned()),
            });
        }
        let mut arguments = self.listed(")", Self::expression)?;
        if name != "has" {
            let name = functions::global(name, arguments.len());
            let name = name.map_err(|message| SyntaxError::new(offset, message))?;
            return Ok(Expression::Call(name, arguments));
        }
        match &mut *arguments {
            [Expression::Path(_, steps)] => {
                if let Some(Step::Field(_, access @ Access::Value)) = steps.last_mut() {
                    *access = Access::Presence;
                    return Ok(arguments.remove(0));
                }
            }
            [Expression::Variable(name)] if !is_own(name) => {
                let field = Step::Field(std::mem::take(name), Access::Presence);
                let fields = Expression::Variable("fields".to_owned());
                return Ok(Expression::Path(Box::new(fields), vec![field]));
            }
            _ => {}
        }
        let message = "has() takes one field, as in has(name)";
        Err(SyntaxError::new(offset, message))
    }

    /// Parses what follows a value: fields, indexes and methods.
    fn path(&mut self, mut first: Expression) -> Result<Expression, SyntaxError> {
        let mut steps = Vec::new();
        loop {
            if self.take("[")? {
                let access = self.access()?;
                steps.push(Step::Index(self.expression()?, access));
                self.expect("]")?;
            } else if self.take(".")? {
                let access = self.access()?;
                let (offset, name) = (self.offset, self.name()?);
                if access == Access::Optional || !self.take("(")? {
                    steps.push(Step::Field(name.to_owned(), access));
                } else if let Some(called) = Macro::named(name) {
                    steps.push(self.macro_arguments(called)?);
                } else {
                    let arguments = self.listed(")", Self::expression)?;
                    let invalid = |message| SyntaxError::new(offset, message);
                    // `optional.of` is the name of a function.
                    let is_method = !steps.is_empty() || !first.is_variable("optional");
                    if is_method {
                        let name = functions::method(name, arguments.len()).map_err(invalid)?;
                        steps.push(Step::Method(name, arguments));
                    } else {
                        let name = format!("optional.{name}");
                        let name = functions::global(&name, arguments.len()).map_err(invalid)?;
                        first = Expression::Call(name, arguments);
                    }
                }
            } else {
                return Ok(match steps.is_empty() {
                    true => first,
                    false => Expression::Path(Box::new(first), steps),
                });
            }
        }
    }

    fn access(&mut self) -> Result<Access, SyntaxError> {
        Ok(match self.take("?")? {
            true => Access::Optional,
            false => Access::Value,
        })
    }

    /// Parses the variable and the expressions of a macro. Its name is taken already.
    fn macro_arguments(&mut self, called: Macro) -> Result<Step, SyntaxError> {
        let variable = self.name()?;
        self.expect(",")?;
        self.locals.push(variable);
        let (mut filter, mut body) = (None, self.expression()?);
        if called == Macro::Map && self.take(",")? {
            filter = Some(body);
            body = self.expression()?;
        }
        self.locals.pop();
        self.expect(")")?;
        Ok(Step::Macro {
            called,
            filter,
            body,
        })
    }

    /// Parses what lies between commas until `end`. A comma before the end is allowed.
    fn listed<T>(
        &mut self,
        end: &str,
        mut parse: impl FnMut(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<Vec<T>, SyntaxError> {
        let mut items = Vec::new();
        while !self.take(end)? {
            items.push(parse(self)?);
            if !self.is_at(end) {
                self.expect(",")?;
            }
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<Item, SyntaxError> {
        let is_optional = self.take("?")?;
        let value = self.expression()?;
        Ok(Item { is_optional, value })
    }
}

fn integer(number: Option<i64>, offset: usize) -> Result<Expression, SyntaxError> {
    let number =
        number.ok_or_else(|| SyntaxError::new(offset, "the number does not fit into 64 bits"));
    Ok(Expression::Literal(Value::Int(number?)))
}

impl Item {
    fn constant(&self) -> Option<Value<'static>> {
        match &self.value {
            Expression::Literal(value) if !self.is_optional => Some(value.clone()),
            _ => None,
        }
    }
}

/// Whether the name is a variable that is no field.
fn is_own(name: &str) -> bool {
    VARIABLES.contains(&name) || Value::type_named(name).is_some()
}

/// The fields that an expression names.
#[derive(Debug, Default)]
pub(super) struct Names<'e> {
    /// Those whose values it needs.
    needed: BTreeSet<&'e str>,
    /// Those of which it says that a record may lack them, by `has` or `?`.
    optional: BTreeSet<&'e str>,
}

impl<'e> Names<'e> {
    /// Returns the fields that some record must have.
    pub(super) fn needed(&self) -> impl Iterator<Item = &'e str> {
        self.needed.difference(&self.optional).copied()
    }

    pub(super) fn add(&mut self, expression: &'e Expression) {
        match expression {
            Expression::Literal(_) | Expression::Local(_) => {}
            Expression::Variable(name) => {
                self.needed.extend((!is_own(name)).then_some(&**name));
            }
            Expression::List(items) => items.iter().for_each(|it| self.add(&it.value)),
            Expression::Map(entries) => entries.iter().for_each(|(key, item)| {
                self.add(key);
                self.add(&item.value);
            }),
            Expression::Not(operand) | Expression::Negate(operand) => self.add(operand),
            Expression::Binary(first, rest) => {
                self.add(first);
                rest.iter().for_each(|(_, term)| self.add(term));
            }
            Expression::Choice(parts) => parts.iter().for_each(|it| self.add(it)),
            Expression::Call(_, parts) | Expression::Connected(_, parts) => {
                parts.iter().for_each(|it| self.add(it));
            }
            Expression::Path(first, steps) => {
                let field = match steps.first() {
                    Some(Step::Field(name, access)) => Some((&**name, *access)),
                    Some(Step::Index(Expression::Literal(Value::String(name)), access)) => {
                        Some((&**name, *access))
                    }
                    _ => None,
                };
                match field.filter(|_| first.is_variable("fields")) {
                    Some((name, Access::Value)) => self.needed.insert(name),
                    Some((name, _)) => self.optional.insert(name),
                    None => false,
                };
                self.add(first);
                for step in steps {
                    match step {
                        Step::Field(..) => {}
                        Step::Index(key, _) => self.add(key),
                        Step::Method(_, arguments) => arguments.iter().for_each(|it| self.add(it)),
                        Step::Macro { filter, body, .. } => {
                            filter.iter().for_each(|it| self.add(it));
                            self.add(body);
                        }
                    }
                }
            }
        }
    }
}

impl Expression {
    fn is_variable(&self, name: &str) -> bool {
        matches!(self, Self::Variable(it) if it == name)
    }
}
