//! For tests: a document's text shows what its JSON says.

use baler_spool::SpoolStatus;
use serde::Serialize;
use serde_json::Value;

use super::SpoolFigures;
use crate::output;

/// Fails unless every count of the document is in the text.
pub(crate) fn assert_every_count_is_shown(document: &impl Serialize, text: &str) {
    let document = serde_json::to_value(document).unwrap();
    let counts = counts("", &document);
    assert!(counts.len() > 10, "{document}");
    for (name, count) in counts {
        let shown = [
            count.to_string(),
            output::number(count),
            output::bytes(count),
        ];
        assert!(
            shown.iter().any(|shown| text.contains(shown)),
            "{name} is {count} in {document}, and not in {text}"
        );
    }
}

fn counts(name: &str, value: &Value) -> Vec<(String, u64)> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(field, value)| counts(field, value))
            .collect(),
        _ => value
            .as_u64()
            .map(|count| (name.to_owned(), count))
            .into_iter()
            .collect(),
    }
}

/// Figures of a spool, no two alike.
pub(crate) fn spool_figures() -> SpoolFigures {
    let mut status = SpoolStatus::default();
    status.found_records = 7_001;
    status.found_chunks = 7_002;
    status.stats.spooled_records = 7_003;
    status.stats.spooled_chunks = 7_004;
    status.stats.replayed_records = 7_005;
    status.stats.replayed_chunks = 7_006;
    status.refused_records = 7_007;
    status.refused_chunks = 7_008;
    status.waiting_records = 7_009;
    status.stats.waiting_chunks = 7_010;
    status.stats.waiting_bytes = 7_000_000_011;
    status.lost_records = 7_012;
    status.lost_chunks = 7_013;
    status.disk_failures = 7_014;
    SpoolFigures::new(&status)
}
