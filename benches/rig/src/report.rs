//! Results as tables and as one page of HTML.

use baler_analysis::text::PAGE_STYLE;

use crate::chart::{Chart, MARK};
use crate::machine::Provenance;

pub use crate::numbers::{short, short_or_dash};

/// The number of characters in a line of a terminal.
const WIDTH: usize = 80;

/// A column of a table of rows: its heading, whether its cells are text, whether it names the row,
/// its explanation, the function for the cell of a row, and the function that decides whether it is
/// shown.
#[derive(Debug, Clone, Copy)]
pub struct Column<R> {
    heading: &'static str,
    is_text: bool,
    is_key: bool,
    meaning: &'static str,
    cell: fn(&R) -> String,
    is_shown: fn(&[R]) -> bool,
}

impl<R> Column<R> {
    /// Creates a column of text, aligned to the left.
    pub const fn text(heading: &'static str, cell: fn(&R) -> String) -> Self {
        Self {
            heading,
            is_text: true,
            is_key: false,
            meaning: "",
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

    /// The same column as a part of the row's name: a table in several parts repeats it.
    #[must_use]
    pub const fn key(mut self) -> Self {
        self.is_key = true;
        self
    }

    /// The same column with an explanation, which pages show.
    #[must_use]
    pub const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = meaning;
        self
    }

    /// Returns the same column, shown only for some rows.
    #[must_use]
    pub const fn shown_for(mut self, is_shown: fn(&[R]) -> bool) -> Self {
        self.is_shown = is_shown;
        self
    }
}

/// Returns the rows as text, with the columns that are shown for them. Each column is as wide as
/// its widest cell, and two spaces separate them. Columns beyond 80 characters follow in further
/// parts, each with the columns that name the rows.
pub fn table<R>(rows: &[R], columns: &[Column<R>]) -> String {
    let shown = columns.iter().filter(|column| (column.is_shown)(rows));
    let (keys, others): (Vec<_>, Vec<_>) = shown
        .map(|column| aligned(rows, column))
        .partition(|column| column.is_key);
    let mut parts = vec![keys.clone()];
    for column in others {
        let part = parts.last().expect("there is a first part");
        let width: usize = part.iter().map(|column| column.width + 2).sum();
        let has_more_than_keys = part.len() > keys.len();
        if has_more_than_keys && width + column.width > WIDTH {
            parts.push(keys.clone());
        }
        parts.last_mut().expect("as above").push(column);
    }
    let parts: Vec<String> = parts.iter().map(|part| lines(part)).collect();
    parts.join("\n")
}

/// A column as text: its heading and its cells, all of one width.
#[derive(Clone)]
struct Aligned {
    is_key: bool,
    width: usize,
    cells: Vec<String>,
}

fn aligned<R>(rows: &[R], column: &Column<R>) -> Aligned {
    let mut cells = vec![column.heading.to_owned()];
    cells.extend(rows.iter().map(column.cell));
    let width = cells.iter().map(|cell| cell.chars().count()).max();
    let width = width.expect("the heading is a cell");
    for cell in &mut cells {
        *cell = match column.is_text {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        };
    }
    Aligned {
        is_key: column.is_key,
        width,
        cells,
    }
}

fn lines(columns: &[Aligned]) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let line = |row: usize| {
        let cells: Vec<&str> = columns.iter().map(|it| it.cells[row].as_str()).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    (0..rows).map(line).collect()
}

/// Returns the shown columns with their explanations, below an empty line.
pub fn legend<R>(rows: &[R], columns: &[Column<R>]) -> String {
    let shown = columns.iter().filter(|column| (column.is_shown)(rows));
    let explained = shown.filter(|column| !column.meaning.is_empty());
    let lines = explained.map(|column| wrapped(&format!("{}: {}", column.heading, column.meaning)));
    ["\n".to_owned()].into_iter().chain(lines).collect()
}

/// Returns a text in lines of at most 80 characters. All but the first are indented.
pub fn wrapped(text: &str) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            out.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
    }
    out.push('\n');
    out
}

/// Returns `yes`, or `NO` in capitals to be noticed.
pub fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "NO" }.to_owned()
}

/// Whether the rows differ in this value.
pub fn differ<R, T: PartialEq>(rows: &[R], of: impl Fn(&R) -> T) -> bool {
    rows.windows(2)
        .any(|pair| matches!(pair, [one, other] if of(one) != of(other)))
}

/// Returns the rows as a table of HTML, with the shown columns and their explanations.
pub fn html_table<R>(rows: &[R], columns: &[Column<R>]) -> String {
    let columns = columns.iter().filter(|column| (column.is_shown)(rows));
    let columns: Vec<&Column<R>> = columns.collect();
    let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr>");
    let mut meanings = String::new();
    for column in &columns {
        let [heading, meaning] = [column.heading, column.meaning].map(escaped);
        out.push_str(&format!("<th scope=\"col\">{heading}</th>"));
        if !meaning.is_empty() {
            meanings.push_str(&format!("<dt>{heading}</dt><dd>{meaning}</dd>\n"));
        }
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let cells = columns.iter().map(|column| (column.cell)(row));
        let cells = cells.map(|cell| format!("<td>{}</td>", escaped(&cell)));
        out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    out.push_str("</tbody>\n</table></div>\n");
    if !meanings.is_empty() {
        out.push_str(&format!("<dl>\n{meanings}</dl>\n"));
    }
    out
}

/// Returns a chart in the colours of the page, with the names of its lines below it.
pub fn figure(title: &str, chart: &Chart) -> String {
    let keys = chart.keys.iter().map(|(name, colour)| {
        let name = escaped(name);
        let class = if colour == MARK { "ring" } else { "" };
        format!("<li><i class=\"{class}\" style=\"background:{colour}\"></i>{name}</li>")
    });
    let (title, svg, keys) = (escaped(title), &chart.svg, keys.collect::<String>());
    let figure = format!("<figure><h2>{title}</h2>\n{svg}\n<ul>{keys}</ul></figure>\n");
    let figure = figure.replace("#FFFFFF", "var(--card)");
    figure.replace("#000000", "var(--text)")
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a page of HTML that loads nothing: a heading, a body, and the provenance of its figures.
pub fn page(heading: &str, body: &str, provenance: &Provenance) -> String {
    let machine = &provenance.machine;
    let origin = format!(
        "{} on {}, {} cores, {}; commit {}",
        provenance.command,
        machine.cpu,
        machine.cores,
        machine.system,
        provenance.commit.as_deref().unwrap_or("unknown")
    );
    let [heading, origin] = [heading, &origin].map(escaped);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{heading}</title>\n<style>{PAGE_STYLE}{STYLE}</style></head><body>\n\
         <header><h1>{heading}</h1></header>\n<main>\n{body}\
         <footer class=\"soft\">{origin}</footer>\n</main></body></html>\n"
    )
}

/// Returns a part of a page.
pub fn section(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!("<section><h2>{title}</h2>\n{body}</section>\n")
}

/// The look of charts and tables. Wide tables scroll by themselves, so that the page fits a telephone.
const STYLE: &str = "
.lead { font-size:1.1rem; font-weight:600 } .advice p { margin:0 0 8px }
.charts { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr)); gap:12px }
svg { display:block; width:100%; height:auto }
ul { display:flex; flex-wrap:wrap; gap:2px 14px; margin:0; padding:0; list-style:none; font-size:.86rem }
li i { display:inline-block; width:14px; height:4px; margin:0 5px 3px 0; border-radius:2px }
li i.ring { width:11px; height:11px; margin-bottom:-1px; border:2px solid; border-radius:50%; background:none !important }
table { width:auto }
footer { overflow-wrap:anywhere }
";

#[cfg(test)]
mod tests;
