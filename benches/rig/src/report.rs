//! Results as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine::Provenance;

/// What is kept of a run: how it came about, and its rows.
#[derive(Debug, Clone, Serialize)]
pub struct Document<'a, R> {
    /// How it came about.
    #[serde(flatten)]
    pub provenance: &'a Provenance,
    /// The results.
    pub rows: &'a [R],
}

/// A table of text: columns as wide as their widest cell, two spaces apart.
#[derive(Debug, Clone, Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    /// For each column whether its cells are text, which stands at the left.
    text: Vec<bool>,
}

impl TextTable {
    /// A table with these columns: a heading, and whether the cells below it are text rather than
    /// numbers.
    pub fn new(columns: &[(&str, bool)]) -> Self {
        Self {
            rows: vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect()],
            text: columns.iter().map(|(_, text)| *text).collect(),
        }
    }

    /// Adds a row; cells beyond the columns are left out.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table's lines.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.text.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), text) in row.iter().zip(&widths).zip(&self.text) {
                let gap = if line.is_empty() { "" } else { "  " };
                // Writing to a string cannot fail.
                let written = match text {
                    true => write!(line, "{gap}{cell:<width$}"),
                    false => write!(line, "{gap}{cell:>width$}"),
                };
                debug_assert!(written.is_ok());
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A number with three digits that count, or three decimals below 1, in a form that fits a column:
/// `3.10k`, `25.0M`, `0.017`.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    for (unit, factor) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // What would be shown as 1000 of one unit is shown as 1 of the next.
        if magnitude >= factor * 0.9995 {
            return format!("{}{unit}", three_digits(value / factor));
        }
    }
    three_digits(value)
}

fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 99.95 => 0,
        medium if medium >= 9.995 => 1,
        small if small >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_left_and_numbers_stand_right() {
        let mut table = TextTable::new(&[("name", true), ("rate", false)]);
        table.push(vec!["emit".into(), "12".into()]);
        table.push(vec!["öl".into(), "1234567".into()]);
        let expected = "name     rate\nemit       12\nöl    1234567\n";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0.000"),
            (0.123_4, "0.123"),
            (1.234_5, "1.23"),
            (12.345, "12.3"),
            (999.4, "999"),
            (999.9, "1.00k"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
            (2.5e9, "2.50G"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
    }
}
