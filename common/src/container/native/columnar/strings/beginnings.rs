//! Beginnings of strings, which strings share.

use std::collections::HashMap;

use super::known::Step;
use super::words::WORDS;
use crate::container::num::to_usize;

/// Words that strings begin with, by their numbers.
///
/// Those at which strings part or end make a tree ("radix tree"); the others are passed by: whoever
/// has one of them has the next one of the tree, too.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    all: Vec<Beginning>,
    /// The beginning that is another one with a word more.
    next: HashMap<(u32, u32), u32>,
    /// By number of a beginning + 1: the string of its chunk that had it first, where strings are
    /// counted on and on. The first place stands for none, which the first string of each chunk has.
    seen: Vec<u32>,
    /// The first string of this chunk.
    chunk: u32,
    /// How many strings it has at most.
    strings: u32,
    /// Counts how often a beginning became one of the tree that strings had before.
    version: u32,
}

/// Some words that strings begin with.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    /// How many bytes and words it has.
    bytes: u32,
    words: u32,
    /// The longest shorter one of the tree.
    shorter: u32,
    /// The next one of the tree that begins with it: itself, if it is of the tree.
    longer: u32,
}

/// Instead of a number: there is no beginning.
pub(super) const NONE: u32 = u32::MAX;

/// So many beginnings of a string are looked at, however many it has.
const LEVELS: usize = 5;

/// The beginnings of a string that are of the tree, the longest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// The string is a beginning, too.
    whole: u32,
    /// The tree that it is made of.
    version: u32,
    levels: [Level; LEVELS],
}

/// A beginning of a string, and what of the string is behind it.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Where it is in `seen`.
    seen: u32,
    behind: Behind,
}

/// What of a string is behind a beginning, if that may as well be spelled again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    /// Where it is spelled from, and in how many bytes.
    pub(super) spelled: u32,
    pub(super) spelled_bytes: u8,
    /// How many words it has.
    pub(super) words: u8,
    /// The head of the string, or [`UNFIT`].
    pub(super) head: u8,
}

/// What no head is that takes one byte: what is behind is long, or nothing, or all of the string.
const UNFIT: u8 = u8::MAX;

impl Default for Behind {
    fn default() -> Self {
        Self {
            spelled: 0,
            spelled_bytes: 0,
            words: 0,
            head: UNFIT,
        }
    }
}

/// What a string has of an earlier one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    pub(super) bytes: u32,
    pub(super) words: u32,
    /// How many strings before it is.
    pub(super) distance: u32,
}

/// What a string has of an earlier one, as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// The beginning, or [`NONE`].
    beginning: u32,
    /// How many strings before it is that has it.
    pub(super) distance: u32,
    pub(super) behind: Behind,
}

impl Line {
    /// Of a string that is this beginning.
    pub(super) fn new(whole: u32) -> Self {
        Self {
            whole,
            // Of no tree that is.
            version: NONE,
            levels: [Level::default(); LEVELS],
        }
    }
}

impl Beginnings {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.next.clear();
        self.seen.clear();
    }

    /// Begins a chunk of so many strings.
    pub(super) fn begin(&mut self, strings: u32) {
        // One more, so that 0 is before all chunks.
        let chunk = self.chunk.checked_add(self.strings.saturating_add(1));
        let chunk = chunk.filter(|chunk| chunk.checked_add(strings).is_some());
        self.chunk = chunk.unwrap_or_else(|| {
            // After four billion strings the numbers begin anew.
            self.seen.fill(0);
            1
        });
        self.strings = strings;
        match self.seen.first_mut() {
            Some(seen) => *seen = self.chunk,
            None => self.seen.push(self.chunk),
        }
    }

    /// The beginning that is `before` with a word more, after which it has so many bytes and words;
    /// whether it is new.
    pub(super) fn with_word(
        &mut self,
        before: u32,
        word: u32,
        bytes: u32,
        words: u32,
    ) -> (u32, bool) {
        let new = u32::try_from(self.all.len()).unwrap_or(NONE);
        let number = *self.next.entry((before, word)).or_insert(new);
        if number == new {
            self.seen.push(0);
            self.all.push(Beginning {
                bytes,
                words,
                shorter: NONE,
                longer: NONE,
            });
        }
        (number, number == new)
    }

    /// Makes the beginnings of a string part of the tree, so many of which there were before.
    pub(super) fn plant(&mut self, path: &[u32], known: usize) {
        let (known, new) = path.split_at_checked(known).unwrap_or((path, &[]));
        let parting = known.last().copied().unwrap_or(NONE);
        self.part(known);
        let Some(last) = new.last() else {
            return;
        };
        for number in new {
            if let Some(beginning) = self.all.get_mut(index(*number)) {
                beginning.longer = *last;
            }
        }
        if let Some(beginning) = self.all.get_mut(index(*last)) {
            beginning.shorter = parting;
        }
    }

    /// Makes the last one of some beginnings, each of which is the one before with a word more, one
    /// of the tree.
    fn part(&mut self, known: &[u32]) {
        let Some((number, before)) = known.split_last() else {
            return;
        };
        let longer = self.all.get(index(*number));
        let longer = longer.map_or(NONE, |beginning| beginning.longer);
        if longer == *number {
            return;
        }
        self.version = self.version.wrapping_add(1) % NONE;
        // Who had the longer one had this one; nobody else had.
        if let Some(below) = self.all.get_mut(index(longer)) {
            let shorter = std::mem::replace(&mut below.shorter, *number);
            if let Some(beginning) = self.all.get_mut(index(*number)) {
                (beginning.shorter, beginning.longer) = (shorter, *number);
            }
        }
        let seen = self.seen.get(place(longer)).copied();
        if let Some((to, seen)) = self.seen.get_mut(place(*number)).zip(seen) {
            *to = seen;
        }
        for number_before in before.iter().rev() {
            match self.all.get_mut(index(*number_before)) {
                Some(beginning) if beginning.longer == longer => beginning.longer = *number,
                _ => break,
            }
        }
    }

    /// Whether the tree is still the one that the line was made of.
    #[inline]
    pub(super) fn is_right(&self, line: &Line) -> bool {
        line.version == self.version
    }

    /// Makes the line of a string with these steps anew.
    #[cold]
    pub(super) fn mend(&self, line: &mut Line, steps: &[Step]) {
        line.version = self.version;
        line.levels = [Level::default(); LEVELS];
        let mut number = line.whole;
        for level in &mut line.levels {
            let Some(beginning) = self.all.get(index(number)) else {
                break;
            };
            level.seen = u32::try_from(place(number)).unwrap_or(0);
            level.behind = behind(beginning, steps).unwrap_or_default();
            number = beginning.shorter;
        }
    }

    /// What a string, whose line is right, has of an earlier one of its chunk; it is an earlier one for
    /// those behind it. `None` if none of the beginnings was seen at which it was looked.
    ///
    /// What begins like an earlier string does so with all shorter beginnings.
    /// How many of them were seen cannot be foretold: all are looked at, so that nothing branches.
    #[inline(always)]
    pub(super) fn share(&mut self, line: &Line, string: u32) -> Option<Found> {
        let now = self.chunk.wrapping_add(string);
        let mut new = 0;
        for level in &line.levels {
            let seen = self.seen.get_mut(index(level.seen))?;
            let is_new = *seen < self.chunk;
            *seen = std::hint::select_unpredictable(is_new, now, *seen);
            new += usize::from(is_new);
        }
        let level = line.levels.get(new)?;
        let seen = self.seen.get(index(level.seen))?;
        Some(Found {
            beginning: level.seen.wrapping_sub(1),
            distance: now.wrapping_sub(*seen),
            behind: level.behind,
        })
    }

    /// As [`Self::share`], from a string's longest beginning that was not looked at.
    #[cold]
    pub(super) fn share_beyond(&mut self, line: &Line, string: u32) -> Option<Found> {
        let now = self.chunk.wrapping_add(string);
        let last = line.levels.last();
        let mut beginning = last.map_or(NONE, |level| level.seen.wrapping_sub(1));
        loop {
            beginning = self.all.get(index(beginning))?.shorter;
            let seen = self.seen.get_mut(place(beginning))?;
            if *seen >= self.chunk {
                return Some(Found {
                    beginning,
                    distance: now.wrapping_sub(*seen),
                    behind: Behind::default(),
                });
            }
            *seen = now;
        }
    }

    /// What was found, if it is anything.
    #[inline]
    pub(super) fn shared(&self, found: Found) -> Option<Shared> {
        let beginning = self.all.get(index(found.beginning))?;
        Some(Shared {
            bytes: beginning.bytes,
            words: beginning.words,
            distance: found.distance,
        })
    }
}

/// What of a string is behind one of its beginnings, if that is short.
fn behind(beginning: &Beginning, steps: &[Step]) -> Option<Behind> {
    let first = steps.get(index(beginning.words))?;
    let words = steps.len() - index(beginning.words);
    let short = |number: u32| u8::try_from(number).ok().filter(|byte| *byte < 0x80);
    (index(first.short) == words).then_some(())?;
    Some(Behind {
        spelled: first.spelled,
        spelled_bytes: short(first.short_to.checked_sub(first.spelled)?)
            .filter(|bytes| usize::from(*bytes) <= super::known::SPELLED_BLOCK)?,
        words: short(first.short)?,
        head: short(u32::try_from(WORDS).ok()?.checked_add(beginning.bytes)?)?,
    })
}

/// Where a beginning is in `seen`.
fn place(number: u32) -> usize {
    index(number.wrapping_add(1))
}

fn index(number: u32) -> usize {
    to_usize(number.into())
}
