//! What the demo found, as JSON and as text.

use baler_analysis::SourceReport;
use baler_analysis::traces::TraceAnalysis;
use serde::Serialize;

use super::analysis::Findings;
use super::shop::Visits;
use crate::output;
use crate::output::figures::{OperationFigures, operations_table};
use crate::shipping::Report;

/// What the demo found. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    visits: Visits,
    /// Records that the consumer got.
    received: u64,
    /// Whether `emitted` is `delivered` and all of `dropped`, and `received` is `delivered`.
    adds_up: bool,
    /// Bytes of the same chunks as rows, in Kieker's container.
    kieker_bytes: u64,
    operations: Vec<OperationFigures>,
    call_tree: Option<Tree>,
}

/// The executions of one trace, in order of entry.
#[derive(Debug, Serialize)]
struct Tree {
    trace_id: i64,
    executions: Vec<Call>,
}

/// One execution.
#[derive(Debug, Serialize)]
struct Call {
    operation: String,
    eoi: i32,
    ess: i32,
    total_ns: u64,
    self_ns: u64,
}

impl<'a> Document<'a> {
    /// Collects the figures.
    pub(super) fn new(
        report: &'a Report,
        source: &SourceReport,
        findings: &Findings,
        visits: Visits,
    ) -> Self {
        Self {
            report,
            visits,
            received: source.records,
            adds_up: report.adds_up() && source.records == report.delivered,
            kieker_bytes: findings.kieker_bytes,
            operations: OperationFigures::all(&findings.times),
            call_tree: findings.traces.read(Tree::largest),
        }
    }

    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let mut rows = vec![("visits".to_owned(), self.visits.to_string())];
        rows.extend(output::figures_of(report.document()));
        let received = output::number(self.received);
        rows.push(("received".to_owned(), format!("{received} records")));
        let rows_text = format!(
            "{} bytes a record, against {} as Kieker's rows in the same chunks",
            output::decimal(report.bytes, report.delivered),
            output::decimal(self.kieker_bytes, self.received),
        );
        rows.push(("size".to_owned(), rows_text));
        let mut text = output::two_columns(&rows);
        text.push('\n');
        text.push_str(&operations_table(&self.operations));
        if let Some(tree) = &self.call_tree {
            text.push_str(&format!("\n call tree of trace {}\n", tree.trace_id));
            let lines = tree.executions.iter().map(|call| {
                let indent = "  ".repeat(usize::try_from(call.ess).unwrap_or(0).min(20));
                let name = output::figures::short_operation(&call.operation);
                vec![
                    format!("{indent}{name}"),
                    time(call.total_ns),
                    time(call.self_ns),
                ]
            });
            text.push_str(&output::table(
                &["operation", "total", "self"],
                &[1, 2],
                lines,
            ));
        }
        text
    }
}

impl Tree {
    /// That of the trace with the most calls.
    fn largest(analysis: &TraceAnalysis) -> Option<Self> {
        let classes = analysis.profile().classes().into_iter();
        let trace = &classes
            .max_by_key(|class| class.example.calls.len())?
            .example;
        let calls = trace.calls.iter().zip(trace.callers());
        let calls = calls.map(|(call, (_, self_ns))| {
            let operation = analysis.operations().get(call.operation);
            Call {
                operation: operation
                    .map_or_else(String::new, |it| it.signature.as_ref().to_owned()),
                eoi: call.eoi,
                ess: call.ess,
                total_ns: call.nanos(),
                self_ns,
            }
        });
        Some(Self {
            trace_id: trace.id,
            executions: calls.collect(),
        })
    }
}

fn time(nanos: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    output::span(nanos as f64)
}
