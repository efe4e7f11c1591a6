//! Parses tokens to a syntax tree, by recursive descent.
//!
//! After an error, a member ends with its line, and a declaration ends where the next one begins.

mod cursor;

use self::cursor::{Failed, Parsed, Parser, is_start};
use crate::lexer::{Token, TokenKind, unescaped};
use crate::syntax::{
    Constant, Declaration, File, Import, Kind, LineKind, Member, Modifiers, Name, Property,
    QualifiedName, TypeName, TypeOf,
};
use crate::{About, Base, Edition, Finding, Literal, Reference, Span, Value};

/// Reads a file.
pub(crate) fn parse(text: &str, number: usize, edition: Edition) -> (File<'_>, Vec<Finding>) {
    let mut parser = Parser::new(text, number, edition);
    let mut file = parser.file();
    file.lines = parser.lines;
    (file, parser.findings)
}

impl<'a> Parser<'a> {
    fn file(&mut self) -> File<'a> {
        let mut file = File::default();
        self.line(LineKind::Package);
        if self.take("package").is_ok() {
            file.package = self.qualified_name(false).ok().map(|it| it.0);
        }
        if file.package.is_none() {
            self.skip_to_declaration();
        }
        while self.peek().kind != TokenKind::End {
            if self.statement(&mut file).is_err() {
                self.skip_to_declaration();
            }
        }
        file
    }

    fn statement(&mut self, file: &mut File<'a>) -> Parsed<()> {
        let token = self.peek();
        match token.text {
            "import" => {
                self.line(LineKind::Import);
                self.advance();
                let (name, is_wildcard) = self.qualified_name(true)?;
                self.count()?;
                file.imports.push(Import { name, is_wildcard });
            }
            "use" => {
                self.line(LineKind::Import);
                self.advance();
                let name = self.name("a name")?;
                let uri = self.expect(TokenKind::Text, "the address of a model in quotes")?;
                let what = "`use` of foreign types";
                self.legacy(token.span().to(uri.span()), what, None);
                self.count()?;
                file.uses.push(name);
            }
            _ => {
                let declaration = self.declaration()?;
                file.declarations.push(declaration);
            }
        }
        Ok(())
    }

    fn declaration(&mut self) -> Parsed<Declaration<'a>> {
        self.count()?;
        self.line(LineKind::Declaration);
        let mut about = About {
            doc: self.doc(),
            ..About::default()
        };
        if self.is_sign("@") {
            self.annotations(&mut about)?;
            self.line(LineKind::Head);
            about.doc = about.doc.or_else(|| self.doc());
        }
        let is_abstract = self.accept("abstract");
        let keyword = self.peek();
        let kind = match keyword.text {
            "event" | "entity" | "struct" if is_abstract => Kind::AbstractEvent,
            "event" | "entity" | "struct" => Kind::Event,
            _ if is_abstract => return Err(self.expected("event or entity")),
            "template" | "pattern" | "tag" => Kind::Template,
            "enum" => Kind::Enum,
            "model" => Kind::Model,
            "sub" => Kind::Sub,
            _ => return Err(self.expected("event, entity, template, enum, model or sub")),
        };
        let newer = match keyword.text {
            "struct" => Some("event"),
            "pattern" | "tag" => Some("template"),
            _ => None,
        };
        if newer.is_some() {
            self.legacy(keyword.span(), &format!("`{}`", keyword.text), newer);
        }
        self.advance();
        let mut declaration = Declaration {
            kind,
            name: self.name("a name")?,
            about,
            extends: None,
            parents: Vec::new(),
            model: None,
            members: Vec::new(),
        };
        let is_event = matches!(kind, Kind::Event | Kind::AbstractEvent);
        match kind {
            Kind::Model => {
                declaration.parents = self.names()?;
                return Ok(declaration);
            }
            Kind::Sub => declaration.model = Some(self.qualified_name(false)?.0),
            _ if is_event && self.accept("extends") => {
                declaration.extends = Some(self.qualified_name(false)?.0);
            }
            _ => {}
        }
        if self.accept(":") {
            declaration.parents = self.names()?;
        }
        if self.is_sign("{") {
            declaration.members = self.body(kind)?;
        } else if kind == Kind::Enum || (kind == Kind::Sub && declaration.parents.is_empty()) {
            return Err(self.expected("{"));
        } else if kind == Kind::Template
            && self.peek().kind == TokenKind::Word
            && !is_start(self.peek())
        {
            // One property without braces.
            self.line(LineKind::Member);
            let property = self.member()?;
            declaration.members.push(property);
        }
        Ok(declaration)
    }

    fn annotations(&mut self, about: &mut About) -> Parsed<()> {
        let mut all: Vec<&str> = Vec::new();
        while self.accept("@") {
            self.count()?;
            let name = self.name("author or since")?;
            let text = self.expect(TokenKind::Text, "a string")?.text;
            let field = match name.text {
                "author" => Some(&mut about.author),
                "since" => Some(&mut about.since),
                _ => None,
            };
            if let Some(field @ None) = field {
                *field = Some(unescaped(text).into());
            }
            let problem = match name.text {
                "author" | "since" if all.contains(&name.text) => {
                    Some(format!("@{} stands twice", name.text))
                }
                "author" if !all.is_empty() => Some("@author stands after @since".to_owned()),
                "author" | "since" => None,
                _ => Some(format!("@{} has no meaning", name.text)),
            };
            if let Some(problem) = problem {
                let warning = Finding::warning("annotation", self.number, name.span, problem);
                self.note(warning.hint("write @author once, and then @since once"));
            }
            all.push(name.text);
        }
        Ok(())
    }

    fn body(&mut self, kind: Kind) -> Parsed<Vec<Member<'a>>> {
        self.take("{")?;
        let mut members = Vec::new();
        while !self.is_sign("}") {
            let token = self.peek();
            // The brace of the body was forgotten: what follows is parsed as usual.
            let is_next = kind != Kind::Enum && token.breaks_before > 0 && is_start(token);
            if is_next || token.kind == TokenKind::End {
                let expected = if members.is_empty() {
                    "a type or }"
                } else {
                    "}"
                };
                self.expected(expected);
                return Ok(members);
            }
            self.line(LineKind::Member);
            let before = self.next;
            let member = match kind {
                Kind::Enum => self.enum_literal(),
                _ => self.member(),
            };
            match member {
                Ok(member) => members.push(member),
                Err(Failed) => self.skip_line(before),
            }
        }
        if kind == Kind::Enum && members.is_empty() {
            self.expected("the name of a literal");
        }
        if !members.is_empty() {
            self.line(LineKind::Close);
        }
        self.advance();
        Ok(members)
    }

    fn enum_literal(&mut self) -> Parsed<Member<'a>> {
        self.count()?;
        let name = self.name("the name of a literal")?;
        let mut value = None;
        if self.accept("=") {
            let token = self.expect(TokenKind::Int, "a whole number")?;
            value = Some(self.int(token)?);
        }
        if !self.accept(",") && !self.is_sign("}") {
            return Err(self.expected(", or }"));
        }
        Ok(Member::EnumLiteral { name, value })
    }

    fn member(&mut self) -> Parsed<Member<'a>> {
        self.count()?;
        let doc = self.doc();
        let first = self.peek();
        if matches!(first.text, "const" | "default") {
            self.advance();
            if first.text == "default" {
                self.legacy(first.span(), "`default`", Some("const"));
            }
            let type_name = self.type_name()?;
            let name = self.name("the name of a constant")?;
            self.take("=")?;
            let value = self.literal(0)?;
            return Ok(Member::Constant(Box::new(Constant {
                type_name,
                name,
                value,
                doc,
            })));
        }
        let modifiers = self.modifiers();
        if self.peek().text == "alias" && self.peek_at(2).text == "as" {
            self.advance();
            let target = self.name("a property")?;
            self.take("as")?;
            let name = self.name("a name")?;
            return Ok(Member::Alias { target, name });
        }
        let mut property = Property {
            modifiers,
            type_of: self.type_of()?,
            name: self.name("the name of a property")?,
            semantics: None,
            default: None,
            payload: None,
            doc,
        };
        if self.accept(":") {
            property.semantics = Some(self.name("the value that a probe puts there")?);
        }
        if self.accept("=") {
            let literal = self.literal(0)?;
            let is_value =
                |kind| matches!(kind, TokenKind::Int | TokenKind::Float | TokenKind::Text);
            if matches!(literal.value, Value::Name(_)) && is_value(self.peek().kind) {
                // `= NAME value` defines a constant, too.
                let value = self.literal(0)?;
                let span = literal.span.to(value.span);
                self.legacy(span, "a default value with a name", None);
                property.default = Some(value);
            } else {
                property.default = Some(literal);
            }
        } else if self.is_sign("{") {
            let open = self.peek().span();
            property.payload = Some(self.payload(0)?);
            let span = Span::new(open.start, self.before);
            self.legacy(span, "a payload", None);
        }
        Ok(Member::Property(Box::new(property)))
    }

    fn modifiers(&mut self) -> Modifiers {
        let mut modifiers = Modifiers::default();
        loop {
            let modifier = match self.peek().text {
                "auto-increment" => &mut modifiers.auto_increment,
                "changeable" => &mut modifiers.changeable,
                "transient" => &mut modifiers.transient,
                _ => return modifiers,
            };
            *modifier = true;
            self.advance();
        }
    }

    fn type_of(&mut self) -> Parsed<TypeOf<'a>> {
        if self.peek().text != "grouped" || self.peek_at(1).text != "by" {
            return Ok(TypeOf::Named(self.type_name()?));
        }
        self.advance();
        self.advance();
        let owner = self.name("a record type")?;
        self.take(".")?;
        let property = self.name("a property")?;
        let next = self.peek();
        if Base::of(next.text).is_some() && self.peek_at(1).kind == TokenKind::Word {
            self.legacy(next.span(), "a type after `grouped by`", None);
            self.advance();
        }
        Ok(TypeOf::Group { owner, property })
    }

    fn type_name(&mut self) -> Parsed<TypeName> {
        // A keyword is no type, so that a forgotten brace is found where the next declaration begins.
        if self.peek().kind != TokenKind::Word || is_start(self.peek()) {
            return Err(self.expected("a type"));
        }
        let name = self.qualified_name(false)?.0;
        if name.text.contains('.') {
            self.legacy(name.span, "a type with a point", None);
        }
        let mut dimensions = Vec::new();
        while self.accept("[") {
            self.count()?;
            let mut length = None;
            if self.peek().kind == TokenKind::Int {
                let token = self.advance();
                let parsed = token.text.parse::<u32>().ok().filter(|it| *it > 0);
                let Some(parsed) = parsed else {
                    let message = format!("{} is no length of an array", token.text);
                    self.note(Finding::error("number", self.number, token.span(), message));
                    return Err(Failed);
                };
                length = Some(parsed);
            }
            self.take("]")?;
            dimensions.push(length);
        }
        Ok(TypeName { name, dimensions })
    }

    fn payload(&mut self, depth: usize) -> Parsed<Vec<Reference>> {
        self.deep(depth)?;
        self.take("{")?;
        let mut references = Vec::new();
        while !self.accept("}") {
            self.count()?;
            let name = self.name("a reference or }")?.text.into();
            let mut nested = Vec::new();
            if self.is_sign("{") {
                nested = self.payload(depth + 1)?;
            }
            references.push(Reference {
                name,
                references: nested,
            });
        }
        Ok(references)
    }

    fn literal(&mut self, depth: usize) -> Parsed<Literal> {
        self.count()?;
        let token = self.peek();
        let value = match token.kind {
            TokenKind::Text => Value::Text(unescaped(token.text)),
            TokenKind::Int => {
                self.advance();
                let value = Value::Int(self.int(token)?);
                let span = token.span();
                return Ok(Literal { value, span });
            }
            TokenKind::Float => {
                let number = token.text.trim_end_matches('f').parse();
                Value::Float(number.map_err(|_| self.expected("a number"))?)
            }
            TokenKind::Word => match token.text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "KIEKER_VERSION" => Value::KiekerVersion,
                name => Value::Name(name.trim_start_matches('^').to_owned()),
            },
            TokenKind::Punctuation if token.text == "{" => {
                self.deep(depth)?;
                self.advance();
                let mut items = vec![self.literal(depth + 1)?];
                while self.accept(",") {
                    items.push(self.literal(depth + 1)?);
                }
                let close = self.take("}")?;
                return Ok(Literal {
                    value: Value::Array(items),
                    span: token.span().to(close.span()),
                });
            }
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        let span = token.span();
        Ok(Literal { value, span })
    }

    /// Reads a whole number. It is decimal, also with zeros in front.
    fn int(&mut self, token: Token<'a>) -> Parsed<i64> {
        token.text.parse().map_err(|_| {
            let message = format!("{} does not fit into 64 bits", token.text);
            self.note(Finding::error("number", self.number, token.span(), message));
            Failed
        })
    }

    fn names(&mut self) -> Parsed<Vec<QualifiedName>> {
        let mut names = vec![self.qualified_name(false)?.0];
        while self.accept(",") {
            self.count()?;
            names.push(self.qualified_name(false)?.0);
        }
        Ok(names)
    }

    /// Reads words and points. Returns whether the name ends with an asterisk.
    fn qualified_name(&mut self, may_be_wildcard: bool) -> Parsed<(QualifiedName, bool)> {
        let first = self.name("a name")?;
        let mut name = QualifiedName {
            text: first.text.to_owned(),
            span: first.span,
        };
        let mut is_wildcard = false;
        while !is_wildcard && self.accept(".") {
            is_wildcard = may_be_wildcard && self.accept("*");
            if !is_wildcard {
                name.text.push('.');
                name.text.push_str(self.name("a name")?.text);
            }
        }
        name.span.end = self.before;
        Ok((name, is_wildcard))
    }

    fn name(&mut self, expected: &str) -> Parsed<Name<'a>> {
        let token = self.expect(TokenKind::Word, expected)?;
        Ok(Name {
            text: token.text.trim_start_matches('^'),
            span: token.span(),
        })
    }
}
