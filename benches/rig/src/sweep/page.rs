//! The report: one page of HTML with everything in it.

use super::cell::Cell;
use super::chart::{FIGURES, svg};
use super::recommend::Recommendation;
use crate::failure::Failure;
use crate::machine::Provenance;
use crate::page;

/// The page; it loads nothing.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn page(
    to: &str,
    cells: &[Cell],
    recommended: &[Recommendation],
    text: &str,
    provenance: &Provenance,
) -> Result<String, Failure> {
    let mut charts = String::new();
    for figure in &FIGURES {
        if let Some(chart) = svg(figure, cells, recommended)? {
            charts.push_str(&format!(
                "<figure role=\"img\" aria-label=\"{}\">{chart}</figure>\n",
                figure.title
            ));
        }
    }
    let heading = format!("What each chunk size costs: {to}");
    Ok(page::page(
        "Chunk-size sweep",
        &heading,
        &charts,
        text,
        provenance,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::case::{Case, Way};
    use super::super::cell::Interval;
    use super::*;

    fn cell(size: Option<u32>, value: f64) -> Cell {
        let case = Case {
            way: size.map_or(Way::Pipelined, |_| Way::Baler),
            chunk_records: size,
            rate: Some(10_000.0),
            compression: None,
            string_table: None,
            wait_time_ms: None,
            consumers: 1,
        };
        let mut cell = Cell::new(&case, &[], None);
        let interval = Some(Interval {
            mean: value,
            low: value * 0.9,
            high: value * 1.1,
        });
        cell.writer_cpu_seconds_per_second = interval;
        cell.wire_bytes_per_second = interval;
        cell.latency_ms_p99 = interval;
        cell
    }

    #[test]
    fn the_page_has_every_plot_and_refers_to_nothing_outside() {
        let cells = [
            cell(None, 0.8),
            cell(Some(1), 0.5),
            cell(Some(16), 0.2),
            cell(Some(1_024), 0.1),
        ];
        let provenance = Provenance::this();
        let page = page("tcp://a:1", &cells, &[], "a < b", &provenance).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
        assert_eq!(page.matches("<polygon").count(), 3);
        for outside in ["src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // The namespace of SVG is a name, not an address.
        let rest = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains("http"), "{rest}");
        assert!(page.contains("a &lt; b") && page.contains("pipelined"));
    }

    #[test]
    fn cells_without_figures_have_no_plot_and_the_page_is_still_there() {
        let case = Case {
            way: Way::Baler,
            chunk_records: Some(8),
            rate: None,
            compression: None,
            string_table: None,
            wait_time_ms: None,
            consumers: 1,
        };
        let cells = [Cell::new(&case, &[], Some("it broke".to_owned()))];
        let page = page("tcp://a:1", &cells, &[], "", &Provenance::this()).unwrap();
        assert!(!page.contains("<svg") && page.contains("<h1>"));
    }
}
