//! Parses tokens to definitions, by recursive descent.

use super::lexer::{Lexer, Token};
use super::{IrlError, IrlProblem, IrlSource};

/// A file: its package, its imports and its definitions.
#[derive(Debug)]
pub(super) struct IrlFile<'a> {
    pub(super) name: &'a str,
    pub(super) package: String,
    /// Full names. An import of all definitions of a package ends with a dot.
    pub(super) imports: Vec<String>,
    pub(super) definitions: Vec<Definition<'a>>,
}

/// An event, a template or an enum.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) kind: Kind,
    /// The parent first, then the templates, in order. For an enum: the enums whose literals it
    /// inherits.
    pub(super) parents: Vec<String>,
    pub(super) members: Vec<Member<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AbstractEvent,
    Enum,
    Event,
    Template,
}

/// A property, or a literal of an enum, which has an empty type.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    /// A base type, or the name of an enum.
    pub(super) type_name: &'a str,
    /// A property of another type; this property has the same type.
    pub(super) grouped_by: Option<(&'a str, &'a str)>,
    pub(super) is_list: bool,
    pub(super) is_transient: bool,
}

/// Reads a file.
pub(super) fn file<'a>(source: &IrlSource<'a>) -> Result<IrlFile<'a>, IrlError> {
    let mut lexer = Lexer::new(source.text);
    let mut parser = Parser {
        file: source.name,
        line: lexer.line(),
        token: lexer.next(),
        lexer,
    };
    parser.file()
}

struct Parser<'a> {
    file: &'a str,
    lexer: Lexer<'a>,
    /// The next token, and the line after it.
    token: Token<'a>,
    line: usize,
}

impl<'a> Parser<'a> {
    fn file(&mut self) -> Result<IrlFile<'a>, IrlError> {
        self.keyword("package")?;
        let mut file = IrlFile {
            name: self.file,
            package: self.qualified_name()?,
            imports: Vec::new(),
            definitions: Vec::new(),
        };
        loop {
            match self.token {
                Token::End => return Ok(file),
                Token::Word("import") => {
                    self.advance();
                    file.imports.push(self.qualified_name()?);
                }
                Token::Word("use") => {
                    self.advance();
                    self.word("a name")?;
                    self.literal()?;
                }
                Token::Sign('@') => {
                    self.advance();
                    self.word("the name of an annotation")?;
                    self.literal()?;
                }
                _ => file.definitions.push(self.definition()?),
            }
        }
    }

    fn definition(&mut self) -> Result<Definition<'a>, IrlError> {
        let is_abstract = self.accept(Token::Word("abstract"));
        let kind = match self.token {
            Token::Word("event" | "entity") if is_abstract => Kind::AbstractEvent,
            Token::Word("event" | "entity") => Kind::Event,
            Token::Word("template") => Kind::Template,
            Token::Word("enum") => Kind::Enum,
            Token::Word("model") => return Err(self.unsupported("model")),
            Token::Word("sub") => return Err(self.unsupported("sub")),
            _ => return Err(self.expected("event, entity, template or enum")),
        };
        self.advance();
        let line = self.line;
        let mut definition = Definition {
            name: self.word("a name")?,
            line,
            kind,
            parents: Vec::new(),
            members: Vec::new(),
        };
        if self.accept(Token::Word("extends")) {
            definition.parents.push(self.qualified_name()?);
        }
        if self.accept(Token::Sign(':')) {
            definition.parents.push(self.qualified_name()?);
            while self.accept(Token::Sign(',')) {
                definition.parents.push(self.qualified_name()?);
            }
        }
        if self.accept(Token::Sign('{')) {
            while !self.accept(Token::Sign('}')) {
                let member = match kind {
                    Kind::Enum => Some(self.enum_literal()?),
                    _ => self.property()?,
                };
                definition.members.extend(member);
            }
        }
        Ok(definition)
    }

    fn enum_literal(&mut self) -> Result<Member<'a>, IrlError> {
        let literal = Member {
            line: self.line,
            name: self.word("the name of a literal")?,
            type_name: "",
            grouped_by: None,
            is_list: false,
            is_transient: false,
        };
        self.value()?;
        self.accept(Token::Sign(','));
        Ok(literal)
    }

    /// Reads a property; returns `None` for a constant or an alias, which have no bytes.
    fn property(&mut self) -> Result<Option<Member<'a>>, IrlError> {
        let mut is_transient = false;
        loop {
            match self.token {
                Token::Word("transient") => is_transient = true,
                Token::Word("changeable") => {}
                Token::Word("auto") => {
                    self.advance();
                    if self.token != Token::Sign('-') {
                        return Err(self.expected("auto-increment"));
                    }
                    self.advance();
                    if self.token != Token::Word("increment") {
                        return Err(self.expected("auto-increment"));
                    }
                }
                _ => break,
            }
            self.advance();
        }
        if self.accept(Token::Word("alias")) {
            self.word("a property")?;
            self.keyword("as")?;
            self.word("a name")?;
            return Ok(None);
        }
        let is_constant = self.accept(Token::Word("const"));
        let mut grouped_by = None;
        let mut type_name = "";
        let mut is_list = false;
        if self.accept(Token::Word("grouped")) {
            self.keyword("by")?;
            let record = self.word("a record type")?;
            self.sign('.', "a point")?;
            grouped_by = Some((record, self.word("a property")?));
        } else {
            type_name = self.word("a type")?;
            is_list = self.dimensions()?;
        }
        let line = self.line;
        let name = self.word("the name of a property")?;
        if self.accept(Token::Sign(':')) {
            self.word("what an instrumentation puts there")?;
        }
        self.value()?;
        let property = Member {
            name,
            line,
            type_name,
            grouped_by,
            is_list,
            is_transient,
        };
        Ok((!is_constant).then_some(property))
    }

    /// Reads the dimensions; returns whether the type is a list.
    fn dimensions(&mut self) -> Result<bool, IrlError> {
        if !self.accept(Token::Sign('[')) {
            return Ok(false);
        }
        if self.token == Token::Number {
            return Err(self.unsupported("an array of a fixed length"));
        }
        self.sign(']', "]")?;
        if self.token == Token::Sign('[') {
            return Err(self.unsupported("an array of several dimensions"));
        }
        Ok(true)
    }

    /// Reads an equals sign with a value, if there is one.
    fn value(&mut self) -> Result<(), IrlError> {
        if self.accept(Token::Sign('=')) {
            self.literal()?;
        }
        Ok(())
    }

    fn literal(&mut self) -> Result<(), IrlError> {
        match self.token {
            Token::Text | Token::Word(_) => self.advance(),
            Token::Number => {
                self.advance();
                // The fraction and the sign of an exponent.
                if self.accept(Token::Sign('.')) && self.token == Token::Number {
                    self.advance();
                }
                if self.token == Token::Number {
                    self.advance();
                }
            }
            // The braces are counted, so that deep nesting cannot fill the stack.
            Token::Sign('{') => {
                let mut depth = 0_usize;
                loop {
                    match self.token {
                        Token::Sign('{') => depth = depth.saturating_add(1),
                        Token::Sign('}') => depth = depth.saturating_sub(1),
                        Token::Sign(',' | '.') | Token::Number | Token::Text | Token::Word(_) => {}
                        _ => return Err(self.expected("a value")),
                    }
                    self.advance();
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => return Err(self.expected("a value")),
        }
        Ok(())
    }

    /// Reads words and dots. An asterisk at the end leaves the dot.
    fn qualified_name(&mut self) -> Result<String, IrlError> {
        let mut name = self.word("a name")?.to_owned();
        while self.accept(Token::Sign('.')) {
            name.push('.');
            if self.accept(Token::Sign('*')) {
                break;
            }
            name.push_str(self.word("a name")?);
        }
        Ok(name)
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str, IrlError> {
        let Token::Word(word) = self.token else {
            return Err(self.expected(expected));
        };
        self.advance();
        Ok(word)
    }

    fn keyword(&mut self, keyword: &'static str) -> Result<(), IrlError> {
        match self.accept(Token::Word(keyword)) {
            true => Ok(()),
            false => Err(self.expected(keyword)),
        }
    }

    fn sign(&mut self, sign: char, expected: &'static str) -> Result<(), IrlError> {
        match self.accept(Token::Sign(sign)) {
            true => Ok(()),
            false => Err(self.expected(expected)),
        }
    }

    fn accept(&mut self, token: Token<'static>) -> bool {
        let is_it = self.token == token;
        if is_it {
            self.advance();
        }
        is_it
    }

    fn advance(&mut self) {
        self.token = self.lexer.next();
        self.line = self.lexer.line();
    }

    fn expected(&self, expected: &'static str) -> IrlError {
        let found = match self.token {
            Token::End => "the end".into(),
            Token::Number => "a number".into(),
            Token::Sign(sign) => sign.to_string(),
            Token::Text => "a string".into(),
            Token::Word(word) => word.chars().take(64).collect::<String>(),
            Token::Unended(what) => format!("{what} without an end"),
        };
        let found = found.into();
        let problem = IrlProblem::Expected { expected, found };
        IrlError::new(self.file, self.line, problem)
    }

    fn unsupported(&self, what: &'static str) -> IrlError {
        IrlError::new(self.file, self.line, IrlProblem::Unsupported { what })
    }
}
