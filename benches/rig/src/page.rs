//! Results as one page of HTML that loads nothing.

use crate::machine::Provenance;

/// The page: a chart as SVG, a table as text, and where they come from.
pub fn page(
    title: &str,
    heading: &str,
    chart: &str,
    table: &str,
    provenance: &Provenance,
) -> String {
    let machine = &provenance.machine;
    let told = format!(
        "{} on {}, {} cores, {}; commit {}",
        provenance.command,
        machine.cpu,
        machine.cores,
        machine.system,
        provenance.commit.as_deref().unwrap_or("unknown")
    );
    let [title, heading, told, table] = [title, heading, &told, table].map(escaped);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font-family:sans-serif;max-width:1000px;margin:2em auto}}\
         figure{{margin:1em 0}}svg{{max-width:100%}}</style></head><body>\n<h1>{heading}</h1>\n\
         <p>{told}</p>\n{chart}\n<pre>{table}</pre>\n</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        let provenance = Provenance::this();
        let page = page("a & b", "", "<svg></svg>", "1 < 2", &provenance);
        assert!(page.contains("a &amp; b") && page.contains("1 &lt; 2"));
        assert!(page.contains("<svg></svg>"));
    }
}
