//! Changes of a file as insertions and removals of text, and their diff.

use std::ops::Range;
use std::path::PathBuf;

/// The lines around a change that a diff shows.
const CONTEXT: usize = 3;

/// The changes of one file. Nothing is written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Its text before.
    pub before: String,
    /// The replaced bytes and their new text, in order and without overlap.
    pub(crate) edits: Vec<(Range<usize>, String)>,
}

/// Lines that change, and what they become.
#[derive(Debug)]
struct Block {
    lines: Range<usize>,
    after: String,
}

impl Change {
    /// Returns the number of insertions or removals.
    pub fn count(&self) -> usize {
        self.edits.len()
    }

    /// Returns the new text.
    pub fn after(&self) -> String {
        self.apply(0..self.before.len(), &self.edits)
    }

    /// Returns these bytes with these edits.
    fn apply(&self, bytes: Range<usize>, edits: &[(Range<usize>, String)]) -> String {
        let mut text = String::new();
        let mut copied = bytes.start;
        for (range, new) in edits {
            text += &self.before[copied..range.start];
            text += new;
            copied = range.end;
        }
        text + &self.before[copied..bytes.end]
    }

    /// Returns the unified diff; `name` is the name of the file in it.
    pub fn diff(&self, name: &str) -> String {
        let mut lines: Vec<_> = self.before.split_inclusive('\n').collect();
        if self.before.is_empty() || self.before.ends_with('\n') {
            // A place for what is inserted at the end.
            lines.push("");
        }
        let blocks = self.blocks(&lines);
        let mut diff = format!("--- a/{name}\n+++ b/{name}\n");
        let (mut all_old, mut all_new) = (0, 0);
        for hunk in blocks.chunk_by(|a, b| b.lines.start <= a.lines.end + 2 * CONTEXT) {
            let [first, .., last] = [&hunk[0], &hunk[hunk.len() - 1]];
            let from = first.lines.start.saturating_sub(CONTEXT);
            let to = lines.len().min(last.lines.end + CONTEXT);
            let mut text = String::new();
            let (mut old, mut new) = (0, 0);
            let mut push = |sign: char, line: &str| {
                if !line.is_empty() {
                    let end = match line.ends_with('\n') {
                        true => "",
                        false => "\n\\ No newline at end of file\n",
                    };
                    text += &format!("{sign}{line}{end}");
                    old += usize::from(sign != '+');
                    new += usize::from(sign != '-');
                }
            };
            let mut shown = from;
            for block in hunk {
                let before = &lines[block.lines.clone()];
                let after: Vec<_> = block.after.split_inclusive('\n').collect();
                let same = before.iter().rev().zip(after.iter().rev());
                let same = same.take_while(|(a, b)| a == b).count();
                let (removed, kept) = before.split_at(before.len() - same);
                let added = &after[..after.len() - same];
                for line in &lines[shown..block.lines.start] {
                    push(' ', line);
                }
                removed.iter().for_each(|line| push('-', line));
                added.iter().for_each(|line| push('+', line));
                kept.iter().for_each(|line| push(' ', line));
                shown = block.lines.end;
            }
            lines[shown..to].iter().for_each(|line| push(' ', line));
            let new_from = from + 1 + all_new - all_old;
            diff += &format!("@@ -{},{old} +{new_from},{new} @@\n{text}", from + 1);
            (all_old, all_new) = (all_old + old, all_new + new);
        }
        diff
    }

    /// Returns the lines that change. Edits that share a line are in one block.
    fn blocks(&self, lines: &[&str]) -> Vec<Block> {
        let mut start = 0;
        let mut starts = Vec::with_capacity(lines.len());
        for line in lines {
            starts.push(start);
            start += line.len();
        }
        starts.push(start + 1);
        let line_of = |byte: usize| starts.partition_point(|start| *start <= byte) - 1;
        let shared = |a: &(Range<usize>, String), b: &(Range<usize>, String)| {
            line_of(a.0.end) >= line_of(b.0.start)
        };
        let groups = self.edits.chunk_by(shared);
        groups
            .map(|edits| {
                let last = &edits[edits.len() - 1];
                let lines = line_of(edits[0].0.start)..line_of(last.0.end) + 1;
                let end = starts[lines.end].min(self.before.len());
                Block {
                    after: self.apply(starts[lines.start]..end, edits),
                    lines,
                }
            })
            .collect()
    }
}
