//! Matching in linear time: an expression becomes a list of instructions, and all its ways are
//! followed at once, character by character.
//!
//! The technique is Thompson's ("Regular Expression Search Algorithm", 1968): neither a pattern nor
//! a text can make it take longer than the product of their lengths, and nothing is recursive while
//! matching.

use super::error::Problem;

/// So many instructions at most; only counted repetitions of `%` expressions come near.
const MAX_INSTRUCTIONS: usize = 10_000;

/// A set of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    Exactly(char),
    /// What a Java identifier may hold: `Character.isJavaIdentifierPart`.
    Identifier,
    /// The same, or a dot.
    IdentifierOrDot,
    /// Java's `\s`.
    Space,
    /// Java's `.`: everything but the end of a line.
    Any,
    /// A character that is neither blank nor one of these.
    WordBut(&'static str),
    /// What a class between brackets says.
    Listed {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
}

impl Class {
    fn contains(&self, c: char) -> bool {
        match self {
            Self::Exactly(this) => *this == c,
            Self::Identifier => is_identifier_part(c),
            Self::IdentifierOrDot => c == '.' || is_identifier_part(c),
            Self::Space => is_space(c),
            Self::Any => !matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
            Self::WordBut(others) => !is_space(c) && !others.contains(c),
            Self::Listed { ranges, negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

/// Java's `\s`.
pub(super) const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// Java's `Character.isJavaIdentifierStart`; beyond ASCII nearly so: by Rust's idea of a letter.
pub(super) fn is_identifier_start(c: char) -> bool {
    c.is_alphabetic() || is_connector(c)
}

/// Java's `Character.isJavaIdentifierPart`; beyond ASCII nearly so: by Rust's idea of a letter and a
/// digit.
pub(super) fn is_identifier_part(c: char) -> bool {
    c.is_alphanumeric()
        || is_connector(c)
        // Characters that Java ignores in identifiers.
        || matches!(c, '\0'..='\x08' | '\x0e'..='\x1b' | '\x7f'..='\u{9f}')
}

fn is_connector(c: char) -> bool {
    matches!(
        c,
        '_' | '$'
            | '\u{a2}'..='\u{a5}'
            | '\u{203f}'
            | '\u{2040}'
            | '\u{2054}'
            | '\u{20a0}'..='\u{20c0}'
            | '\u{ff3f}'
    )
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    One(Class),
    /// Matches nothing, not even nothing.
    Never,
    /// One after the other.
    All(Vec<Self>),
    Either(Vec<Self>),
    Repeat {
        node: Box<Self>,
        least: u32,
        most: Option<u32>,
    },
}

impl Node {
    pub(super) fn text(text: &str) -> Self {
        Self::All(text.chars().map(|c| Self::One(Class::Exactly(c))).collect())
    }

    pub(super) fn maybe(self) -> Self {
        self.repeat(0, Some(1))
    }

    pub(super) fn any_times(self) -> Self {
        self.repeat(0, None)
    }

    pub(super) fn once_or_more(self) -> Self {
        self.repeat(1, None)
    }

    pub(super) fn repeat(self, least: u32, most: Option<u32>) -> Self {
        let node = Box::new(self);
        Self::Repeat { node, least, most }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Instruction {
    One(Class),
    Jump(usize),
    Split(usize, usize),
    Never,
    Match,
}

/// An expression that is ready to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    pub(super) fn new(node: &Node) -> Result<Self, Problem> {
        let mut program = Self {
            instructions: Vec::new(),
        };
        program.append(node)?;
        program.push(Instruction::Match)?;
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize, Problem> {
        let at = self.instructions.len();
        if at >= MAX_INSTRUCTIONS {
            return Err(Problem::TooLarge);
        }
        self.instructions.push(instruction);
        Ok(at)
    }

    fn set(&mut self, at: usize, instruction: Instruction) {
        if let Some(place) = self.instructions.get_mut(at) {
            *place = instruction;
        }
    }

    /// Recursive, but expressions are nested no deeper than their parser allows.
    fn append(&mut self, node: &Node) -> Result<(), Problem> {
        match node {
            Node::One(class) => self.push(Instruction::One(class.clone())).map(drop),
            Node::Never => self.push(Instruction::Never).map(drop),
            Node::All(nodes) => nodes.iter().try_for_each(|node| self.append(node)),
            Node::Either(nodes) => self.either(nodes),
            Node::Repeat { node, least, most } => self.repeat(node, *least, *most),
        }
    }

    fn either(&mut self, nodes: &[Node]) -> Result<(), Problem> {
        let Some((last, nodes)) = nodes.split_last() else {
            return self.push(Instruction::Never).map(drop);
        };
        let mut ends = Vec::new();
        for node in nodes {
            let split = self.push(Instruction::Never)?;
            self.append(node)?;
            ends.push(self.push(Instruction::Never)?);
            let other = self.instructions.len();
            self.set(split, Instruction::Split(split.saturating_add(1), other));
        }
        self.append(last)?;
        let end = self.instructions.len();
        for jump in ends {
            self.set(jump, Instruction::Jump(end));
        }
        Ok(())
    }

    fn repeat(&mut self, node: &Node, least: u32, most: Option<u32>) -> Result<(), Problem> {
        for _ in 0..least {
            let before = self.instructions.len();
            self.append(node)?;
            if before == self.instructions.len() {
                // Nothing, however often.
                break;
            }
        }
        match most {
            None => {
                let split = self.push(Instruction::Never)?;
                self.append(node)?;
                self.push(Instruction::Jump(split))?;
                let end = self.instructions.len();
                self.set(split, Instruction::Split(split.saturating_add(1), end));
            }
            Some(most) => {
                let mut splits = Vec::new();
                for _ in least..most {
                    splits.push(self.push(Instruction::Never)?);
                    self.append(node)?;
                }
                let end = self.instructions.len();
                for split in splits {
                    self.set(split, Instruction::Split(split.saturating_add(1), end));
                }
            }
        }
        Ok(())
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut now = Places::new(self.instructions.len());
        let mut next = Places::new(self.instructions.len());
        self.follow(0, &mut now);
        for c in text.chars() {
            if now.list.is_empty() {
                return false;
            }
            for &at in &now.list {
                if let Some(Instruction::One(class)) = self.instructions.get(at)
                    && class.contains(c)
                {
                    self.follow(at.saturating_add(1), &mut next);
                }
            }
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
        now.list
            .iter()
            .any(|at| matches!(self.instructions.get(*at), Some(Instruction::Match)))
    }

    /// Adds what can be reached without a character.
    fn follow(&self, start: usize, places: &mut Places) {
        places.waiting.push(start);
        while let Some(at) = places.waiting.pop() {
            if !places.enter(at) {
                continue;
            }
            match self.instructions.get(at) {
                Some(Instruction::Jump(to)) => places.waiting.push(*to),
                Some(Instruction::Split(one, other)) => {
                    places.waiting.push(*other);
                    places.waiting.push(*one);
                }
                Some(Instruction::One(_) | Instruction::Match) => places.list.push(at),
                Some(Instruction::Never) | None => {}
            }
        }
    }
}

/// The instructions at which the ways stand, each once.
struct Places {
    list: Vec<usize>,
    waiting: Vec<usize>,
    /// The round in which an instruction was entered last.
    entered: Vec<u32>,
    round: u32,
}

impl Places {
    fn new(instructions: usize) -> Self {
        Self {
            list: Vec::new(),
            waiting: Vec::new(),
            entered: vec![0; instructions],
            round: 1,
        }
    }

    fn enter(&mut self, at: usize) -> bool {
        match self.entered.get_mut(at) {
            Some(entered) if *entered != self.round => {
                *entered = self.round;
                true
            }
            _ => false,
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.entered.fill(0);
            self.round = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(node: &Node) -> Program {
        Program::new(node).unwrap()
    }

    #[test]
    fn the_whole_text_must_match() {
        let ab = program(&Node::text("ab"));
        assert!(ab.matches("ab"));
        for other in ["", "a", "abc", "xab", "ba"] {
            assert!(!ab.matches(other), "{other}");
        }
        assert!(!program(&Node::Never).matches(""));
        assert!(program(&Node::All(Vec::new())).matches(""));
    }

    #[test]
    fn repetitions_count() {
        let between = program(&Node::text("ab").repeat(1, Some(3)));
        let matching: Vec<_> = (0..5)
            .filter(|n| between.matches(&"ab".repeat(*n)))
            .collect();
        assert_eq!(matching, [1, 2, 3]);
        let any = program(&Node::text("ab").any_times());
        assert!(any.matches("") && any.matches("ababab") && !any.matches("aba"));
        let either = Node::Either(vec![Node::text("x"), Node::text("yz"), Node::text("")]);
        let either = program(&either);
        assert!(either.matches("x") && either.matches("yz") && either.matches(""));
        assert!(!either.matches("xyz"));
    }

    #[test]
    fn what_makes_backtracking_matchers_hang_takes_no_time() {
        // ((a*)*)* b against many a.
        let mut nested = Node::text("a");
        for _ in 0..20 {
            nested = nested.any_times();
        }
        let program = program(&Node::All(vec![nested, Node::text("b")]));
        // A matcher that goes back would not end.
        assert!(!program.matches(&"a".repeat(10_000)));
    }

    #[test]
    fn a_repetition_of_repetitions_is_refused() {
        let mut node = Node::text("a");
        for _ in 0..5 {
            node = node.repeat(100, Some(100));
        }
        assert_eq!(Program::new(&node), Err(Problem::TooLarge));
        let mut empty = Node::All(Vec::new());
        for _ in 0..20 {
            empty = empty.repeat(1_000_000_000, Some(1_000_000_000));
        }
        assert!(program(&empty).matches(""));
    }
}
