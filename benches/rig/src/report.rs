//! Results as text.

use std::fmt::Write as _;

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

/// A column of a table of rows: its heading, whether its cells are text, its cell of a row, and whether
/// it is shown for these rows.
#[derive(Debug, Clone, Copy)]
pub struct Column<R> {
    heading: &'static str,
    is_text: bool,
    cell: fn(&R) -> String,
    is_shown: fn(&[R]) -> bool,
}

impl<R> Column<R> {
    /// A column of text, which stands at the left.
    pub const fn text(heading: &'static str, cell: fn(&R) -> String) -> Self {
        Self {
            heading,
            is_text: true,
            cell,
            is_shown: |_| true,
        }
    }

    /// A column of numbers.
    pub const fn number(heading: &'static str, cell: fn(&R) -> String) -> Self {
        Self {
            is_text: false,
            ..Self::text(heading, cell)
        }
    }

    /// The same column, shown only for such rows.
    #[must_use]
    pub const fn shown_for(mut self, is_shown: fn(&[R]) -> bool) -> Self {
        self.is_shown = is_shown;
        self
    }
}

/// The rows with those of the columns that are shown for them.
pub fn table<R>(rows: &[R], columns: &[Column<R>]) -> String {
    let shown: Vec<_> = columns
        .iter()
        .filter(|column| (column.is_shown)(rows))
        .collect();
    let headings: Vec<_> = shown
        .iter()
        .map(|column| (column.heading, column.is_text))
        .collect();
    let mut table = TextTable::new(&headings);
    for row in rows {
        table.push(shown.iter().map(|column| (column.cell)(row)).collect());
    }
    table.render()
}

/// [`short`], or a dash where there is no value.
pub fn short_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// `yes`, or `NO`, which is to be seen.
pub fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "NO" }.to_owned()
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
