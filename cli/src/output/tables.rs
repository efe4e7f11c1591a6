//! Rows of texts -> a table that fits the width of the terminal.

use std::borrow::Cow;

use baler_analysis::text::shortened;

use super::{escape, width};

/// The narrowest column of a table that does not fit the terminal.
const MIN_WIDTH: usize = 8;

/// Formats a table with a header line. The columns named in `right` are aligned to the right. If it
/// does not fit the terminal, cells of the widest columns are broken at spaces, and longer words
/// are shortened.
pub(crate) fn table(
    header: &[&str],
    right: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    table_within(width(), header, right, rows)
}

fn table_within(
    width: Option<usize>,
    header: &[&str],
    right: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let escaped = |row: Vec<String>| -> Vec<String> {
        let cells = row.iter().map(|cell| escape(cell).into_owned());
        cells.collect()
    };
    let header = header.iter().map(|it| (*it).to_owned()).collect();
    let rows: Vec<_> = [header].into_iter().chain(rows).map(escaped).collect();
    let mut widths = vec![0; rows[0].len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    // Two spaces are before each column.
    let full = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len();
    while width.is_some_and(|width| full(&widths) > width) {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_WIDTH => *widest -= 1,
            _ => break,
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells.map(|(cell, width)| wrapped(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max();
        for index in 0..height.expect("a row has cells") {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let part = cell.get(index).map_or("", |it| it);
                let part = shortened(part, *width);
                match right.contains(&column) {
                    true => line.push_str(&format!("  {part:>width$}")),
                    false => line.push_str(&format!("  {part:<width$}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Formats names and values, one pair a line, indented. A long value continues below itself.
pub(crate) fn two_columns(rows: &[(impl AsRef<str>, String)]) -> String {
    two_columns_within(width(), rows)
}

fn two_columns_within(columns: Option<usize>, rows: &[(impl AsRef<str>, String)]) -> String {
    let widths = rows.iter().map(|(name, _)| name.as_ref().len());
    let Some(width) = widths.max() else {
        return String::new();
    };
    let room = room_beside(width + 4, columns);
    let mut text = String::new();
    for (name, value) in rows {
        for (index, line) in wrapped(&escape(value), room).iter().enumerate() {
            let name = if index == 0 { name.as_ref() } else { "" };
            text.push_str(format!("  {name:<width$}  {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Breaks a text at spaces into lines of at most `room` characters. A longer word stays whole,
/// because it is a path or a URI that the user may copy.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (index, word) in text.split(' ').enumerate() {
        let line = lines.last_mut().expect("there is a first line");
        let length = line.chars().count() + 1 + word.chars().count();
        if index == 0 {
            line.push_str(word);
        } else if length <= room || line.is_empty() {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Shortens a value to the terminal's width less `indent` columns.
pub(crate) fn cut(text: &str, indent: usize) -> Cow<'_, str> {
    shortened(text, room_beside(indent, width()))
}

/// Returns how much of a line's width is left; a line without a width has no limit.
fn room_beside(taken: usize, width: Option<usize>) -> usize {
    width.map_or(usize::MAX, |width| width.saturating_sub(taken))
}

#[cfg(test)]
mod tests;
