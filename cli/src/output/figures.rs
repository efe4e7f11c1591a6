//! Figures that several commands show.

use std::collections::BTreeMap;

use baler_connector_file::quarantine::NotKept;
use serde_json::Value;

use super::numbers::number;
use super::tables::table;
use super::{count_of, number_of, span, text_of};

/// Returns the counts that only one medium has, by name.
pub(crate) fn named_counts(counts: &[(&'static str, u64)]) -> Value {
    let counts = counts.iter();
    counts
        .map(|(name, count)| ((*name).to_owned(), Value::from(*count)))
        .collect()
}

/// Returns counts of poison messages that were not kept, by the reason's name.
pub(crate) fn not_kept(counts: &BTreeMap<NotKept, u64>) -> BTreeMap<&'static str, u64> {
    let counts = counts.iter();
    counts.map(|(why, count)| (why.name(), *count)).collect()
}

/// Shortens an operation's signature to fit into a table: without its parameters and result, and
/// with only the last two parts of its path.
pub(crate) fn short_operation(signature: &str) -> &str {
    let head = signature.split('(').next().unwrap_or(signature);
    let path = head.rsplit(' ').next().unwrap_or(head);
    let mut separators = path.rmatch_indices(['.', ':']).filter(|(at, _)| {
        // In `::`, the second colon is the separator.
        !path.get(at + 1..).is_some_and(|rest| rest.starts_with(':'))
    });
    let start = separators.nth(1).map_or(0, |(at, _)| at + 1);
    path.get(start..)
        .filter(|short| !short.is_empty())
        .unwrap_or(signature)
}

/// Formats a table of the response times in a document, in order. It shows failed calls if there are
/// any.
pub(crate) fn operations_table<'a>(operations: impl IntoIterator<Item = &'a Value>) -> String {
    let operations: Vec<&Value> = operations.into_iter().collect();
    let time = |operation: &Value, name: &str| span(number_of(operation, name));
    // Only the analysis of traces counts failed calls.
    let failed = |operation: &Value| operation["failed"].as_u64();
    let has_failed = operations
        .iter()
        .filter_map(|it| failed(it))
        .any(|it| it > 0);
    let mut header = vec!["operation", "count", "mean", "p50", "p99", "max"];
    if has_failed {
        header.insert(2, "failed");
    }
    let rows = operations.iter().map(|it| {
        let mut row = vec![
            short_operation(text_of(it, "operation")).to_owned(),
            number(count_of(it, "count")),
            time(it, "mean_ns"),
            time(it, "p50_ns"),
            time(it, "p99_ns"),
            time(it, "max_ns"),
        ];
        if has_failed {
            row.insert(2, number(count_of(it, "failed")));
        }
        row
    });
    table(&header, &[1, 2, 3, 4, 5, 6], rows)
}

#[cfg(test)]
mod tests;
