//! Shows findings with the lines of their files.

use annotate_snippets::{AnnotationKind, Level, Patch, Renderer, Snippet};

use crate::{Finding, Severity, Source, line_and_column};

/// Lines longer than this are not shown.
const MAX_LINE: usize = 500;

/// Shows a finding with the lines of its file, for a terminal without colours.
pub fn render(finding: &Finding, sources: &[Source<'_>]) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let Some(source) = sources.get(finding.file) else {
        return format!("{}: {}", finding.severity.name(), finding.message);
    };
    let span = finding.span;
    let mut shown = source.text.lines().filter(|it| it.len() > MAX_LINE);
    if shown.next().is_some() {
        let (line, column) = line_and_column(source.text, span.start);
        let (severity, rule) = (finding.severity.name(), finding.rule);
        let place = format!("{}:{line}:{column}", source.name);
        return format!("{severity}[{rule}]: {}\n --> {place}", finding.message);
    }
    let mut snippet = Snippet::source(source.text)
        .path(source.name)
        .annotation(AnnotationKind::Primary.span(span.into()));
    let mut elsewhere = None;
    if let Some((file, place, remark)) = finding.related {
        let remark = AnnotationKind::Context.span(place.into()).label(remark);
        if file == finding.file {
            snippet = snippet.annotation(remark);
        } else if let Some(other) = sources.get(file) {
            elsewhere = Some(
                Snippet::source(other.text)
                    .path(other.name)
                    .annotation(remark),
            );
        }
    }
    let title = level
        .primary_title(finding.message.as_str())
        .id(finding.rule);
    let mut group = title.element(snippet);
    if let Some(elsewhere) = elsewhere {
        group = group.element(elsewhere);
    }
    let mut report = Vec::new();
    match (&finding.hint, finding.replacement) {
        (Some(hint), Some(text)) => {
            let fix = Snippet::source(source.text).patch(Patch::new(span.into(), text));
            report.push(group);
            report.push(Level::HELP.secondary_title(hint.as_str()).element(fix));
        }
        (Some(hint), None) => report.push(group.element(Level::HELP.message(hint.as_str()))),
        (None, _) => report.push(group),
    }
    Renderer::plain().render(&report)
}
