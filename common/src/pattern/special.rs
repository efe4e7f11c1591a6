//! Patterns for sensors: they begin with `%` and are expressions over the whole signature, such as
//! `%CPU::[0-2]`.
//!
//! Kieker hands them to Java's regular expressions.
//! Here they are characters, `.`, `\d \D \s \S \w \W` and escaped signs, classes between brackets,
//! groups, `|`, and the repetitions `* + ? {n} {n,} {n,m}`.
//! Anything else that has a meaning in Java is refused by name rather than taken for something else.

use super::error::{Misfit, Problem};
use super::program::{Class, Node};

/// So deep may groups be nested.
const MAX_DEPTH: usize = 20;
/// So many times may something be repeated by count.
const MAX_COUNT: u32 = 1_000;

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Node, Misfit> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.alternatives(0)?;
    match parser.peek() {
        None => Ok(node),
        // Only a closing parenthesis ends alternatives early.
        Some(_) => Err(parser.expected("no `)` without `(`")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at = self.at.saturating_add(c.len_utf8());
        Some(c)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at = self.at.saturating_add(text.len());
        }
        found
    }

    fn expected(&self, what: &'static str) -> Misfit {
        Problem::Expected(what).at(self.at)
    }

    fn unsupported<T>(&self, what: &'static str) -> Result<T, Misfit> {
        Err(Problem::Unsupported(what).at(self.at))
    }

    fn alternatives(&mut self, depth: usize) -> Result<Node, Misfit> {
        if depth > MAX_DEPTH {
            return self.unsupported("a group more than 20 deep");
        }
        let mut nodes = vec![self.sequence(depth)?];
        while self.take("|") {
            nodes.push(self.sequence(depth)?);
        }
        Ok(Node::Either(nodes))
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, Misfit> {
        let mut nodes = Vec::new();
        while self.peek().is_some_and(|c| c != '|' && c != ')') {
            let node = self.atom(depth)?;
            nodes.push(self.repeated(node)?);
        }
        Ok(Node::All(nodes))
    }

    fn atom(&mut self, depth: usize) -> Result<Node, Misfit> {
        match self.peek() {
            Some('(') => self.group(depth),
            Some('[') => self.class().map(Node::One),
            Some('\\') => self.escape().map(Node::One),
            Some('^' | '$') => self.unsupported("an anchor (the whole signature is matched)"),
            Some('*' | '+' | '?' | '{') => Err(self.expected("something to repeat")),
            Some('.') => {
                self.next();
                Ok(Node::One(Class::Any))
            }
            _ => match self.next() {
                Some(c) => Ok(Node::One(Class::Exactly(c))),
                None => Err(self.expected("a character")),
            },
        }
    }

    fn group(&mut self, depth: usize) -> Result<Node, Misfit> {
        if self.rest().starts_with("(?") && !self.rest().starts_with("(?:") {
            return self.unsupported("a group with `?` (look-around, flags or a name)");
        }
        if !self.take("(?:") {
            self.next();
        }
        let node = self.alternatives(depth.saturating_add(1))?;
        if self.take(")") {
            Ok(node)
        } else {
            Err(self.expected("`)`"))
        }
    }

    fn repeated(&mut self, node: Node) -> Result<Node, Misfit> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(node),
            _ => return Ok(node),
        };
        self.next();
        self.reluctant()?;
        Ok(node.repeat(least, most))
    }

    fn counted(&mut self, node: Node) -> Result<Node, Misfit> {
        self.next();
        let least = self.number()?;
        let most = if !self.take(",") {
            Some(least)
        } else if self.peek() == Some('}') {
            None
        } else {
            Some(self.number()?)
        };
        if most.is_some_and(|most| most < least) {
            return Err(self.expected("a second number that is not less"));
        }
        if !self.take("}") {
            return Err(self.expected("`}`"));
        }
        self.reluctant()?;
        Ok(node.repeat(least, most))
    }

    fn number(&mut self) -> Result<u32, Misfit> {
        let digits = self.rest().len()
            - self
                .rest()
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let number = self.rest().get(..digits).and_then(|text| text.parse().ok());
        match number {
            Some(number) if number <= MAX_COUNT => {
                self.at = self.at.saturating_add(digits);
                Ok(number)
            }
            _ => Err(self.expected("a number up to 1,000")),
        }
    }

    /// `?` after a repetition says how to search, which is no matter if the whole text must match;
    /// `+` would change what matches.
    fn reluctant(&mut self) -> Result<(), Misfit> {
        match self.peek() {
            Some('+') => self.unsupported("a possessive repetition"),
            Some('*' | '{') => Err(self.expected("something to repeat")),
            _ => {
                self.take("?");
                match self.peek() {
                    Some('*' | '+' | '?' | '{') => Err(self.expected("something to repeat")),
                    _ => Ok(()),
                }
            }
        }
    }

    fn escape(&mut self) -> Result<Class, Misfit> {
        let start = self.at;
        self.next();
        let class = match self.next() {
            None => return Err(self.expected("a character after `\\`")),
            Some('s') => Class::Space,
            Some(c @ ('d' | 'D' | 'w' | 'W' | 'S')) => shorthand(c),
            Some('t') => Class::Exactly('\t'),
            Some(c) if !c.is_ascii_alphanumeric() => Class::Exactly(c),
            Some(_) => {
                let what = "an escape other than \\d \\D \\s \\S \\w \\W \\t and signs";
                return Err(Problem::Unsupported(what).at(start));
            }
        };
        Ok(class)
    }

    fn class(&mut self) -> Result<Class, Misfit> {
        self.next();
        let negated = self.take("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.expected("`]`")),
                Some(']') if ranges.is_empty() => {
                    return Err(self.expected("a character of the class"));
                }
                Some(']') => {
                    self.next();
                    return Ok(Class::Listed { ranges, negated });
                }
                Some('[') => return self.unsupported("a class within a class"),
                Some('&') if self.rest().starts_with("&&") => {
                    return self.unsupported("an intersection of classes");
                }
                _ => {}
            }
            let at = self.at;
            let Some(from) = self.class_member(&mut ranges)? else {
                continue;
            };
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !is_range {
                ranges.push((from, from));
                continue;
            }
            self.next();
            match self.class_member(&mut Vec::new())? {
                Some(to) if from <= to => ranges.push((from, to)),
                _ => return Err(Problem::Expected("a range from less to more").at(at)),
            }
        }
    }

    /// One character, or `None` if a shorthand added its ranges.
    fn class_member(&mut self, ranges: &mut Vec<(char, char)>) -> Result<Option<char>, Misfit> {
        match self.peek() {
            Some('\\') => match self.escape()? {
                Class::Exactly(c) => Ok(Some(c)),
                Class::Space => {
                    ranges.extend([('\t', '\r'), (' ', ' ')]);
                    Ok(None)
                }
                Class::Listed {
                    ranges: these,
                    negated: false,
                } => {
                    ranges.extend(these);
                    Ok(None)
                }
                _ => self.unsupported("a negated shorthand within a class"),
            },
            Some('[') => self.unsupported("a class within a class"),
            _ => match self.next() {
                Some(c) => Ok(Some(c)),
                None => Err(self.expected("`]`")),
            },
        }
    }
}

/// Java's, which are of ASCII.
fn shorthand(c: char) -> Class {
    let ranges = match c.to_ascii_lowercase() {
        'd' => vec![('0', '9')],
        'w' => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        _ => vec![('\t', '\r'), (' ', ' ')],
    };
    Class::Listed {
        ranges,
        negated: c.is_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Program;
    use super::*;

    fn matches(expression: &str, text: &str) -> bool {
        Program::new(&parse(expression).unwrap())
            .unwrap()
            .matches(text)
    }

    #[test]
    fn what_is_supported_means_what_it_means_in_java() {
        let cases = [
            (r"%CPU", "%CPU", "%CPU::0"),
            (r"%CPU::.*", "%CPU::12", "%CPU"),
            (r"%CPU::[0-2]", "%CPU::2", "%CPU::3"),
            (r"%CPU::[^0-2]", "%CPU::3", "%CPU::1"),
            (r"%CPU::\d+", "%CPU::10", "%CPU::x"),
            (r"%(CPU|MEM_SWAP)(::.+)?", "%MEM_SWAP", "%LOAD_AVERAGE"),
            (r"%CPU::(?:1|2){2}", "%CPU::12", "%CPU::1"),
            (r"%CPU::\d{1,2}?", "%CPU::12", "%CPU::123"),
            (r"%CPU::[\d_-]+", "%CPU::1_-", "%CPU::a"),
            (r"%\S*\.x", "%ab.x", "%ab,x"),
            (r"%a\s\W", "%a !", "%a b"),
            ("%|%CPU", "%CPU", "%CP"),
        ];
        for (expression, yes, no) in cases {
            assert!(matches(expression, yes), "{expression} {yes}");
            assert!(!matches(expression, no), "{expression} {no}");
        }
    }

    #[test]
    fn what_is_not_supported_is_refused_where_it_stands() {
        let cases = [
            ("%(?=x)", 1),
            ("%(?<name>x)", 1),
            ("%(?i)x", 1),
            (r"%(x)\1", 4),
            (r"%\bx", 1),
            (r"%\p{Lu}", 1),
            (r"%\Qx\E", 1),
            ("%[a&&[b]]", 3),
            ("%[a[b]]", 3),
            ("%^x", 1),
            ("%x$", 2),
            ("%x++", 3),
            ("%x**", 3),
            ("%*", 0),
            ("%CPU::[", 7),
            ("%[]x]", 2),
            ("%[b-a]", 2),
            ("%(x", 3),
            ("%x)", 2),
            ("%x{2", 4),
            ("%x{2,1}", 6),
            ("%x{10001}", 3),
            ("%x\\", 3),
        ];
        for (expression, position) in cases {
            // `%` itself may be repeated.
            if expression == "%*" {
                assert!(matches(expression, "%%%"));
                continue;
            }
            let error = parse(expression).unwrap_err();
            assert_eq!(error.position, position, "{expression}: {error:?}");
        }
        let deep = format!("%{}x{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).is_err());
    }
}
