//! What `send` did, as JSON and as text.

use std::collections::BTreeMap;

use baler_analysis::SourceReport;
use baler_analysis::kieker_log::BadLines;
use serde::Serialize;

use crate::endpoint::Readership;
use crate::output;
use crate::shipping::Report;

/// What `send` did. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub(super) source: &'a SourceFigures,
    #[serde(flatten)]
    pub(super) report: &'a Report,
}

/// What came from the source.
#[derive(Debug, Default, Serialize)]
pub(super) struct SourceFigures {
    from: String,
    records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_lines: Option<BTreeMap<&'static str, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given_back: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates_within_reader: Option<u64>,
    /// Chunks that never came and do not come again; see [`Readership::missing`].
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    /// Whether a signal or the other medium ended it before a log's end.
    pub(super) stopped_early: bool,
}

impl SourceFigures {
    /// Those of a log.
    pub(super) fn of_log(
        from: String,
        records: u64,
        bad_lines: &BadLines,
        stopped_early: bool,
    ) -> Self {
        Self {
            from,
            records,
            bad_lines: Some(bad_lines.reasons().clone()),
            stopped_early,
            ..Self::default()
        }
    }

    /// Those of a medium.
    pub(super) fn of_medium(from: String, report: &SourceReport, readership: Readership) -> Self {
        Self {
            from,
            records: report.records,
            chunks: Some(report.chunks),
            acknowledged: Some(report.acknowledged),
            given_back: Some(report.given_back),
            quarantined: Some(report.quarantined),
            redelivered: Some(report.redelivered),
            duplicates_within_reader: Some(report.duplicates),
            missing: Some(readership.missing(report)),
            ..Self::default()
        }
    }

    /// Whether lines were skipped, or chunks put aside or missing.
    pub(super) fn is_incomplete(&self) -> bool {
        let mut lines = self.bad_lines.iter().flat_map(BTreeMap::values);
        let chunks = [self.quarantined, self.missing];
        lines.any(|it| *it > 0) || chunks.into_iter().flatten().any(|it| it > 0)
    }
}

impl Document<'_> {
    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let number = output::number;
        let mut rows = vec![
            ("from", self.source.from.clone()),
            ("to", self.report.to.clone()),
            ("read", format!("{} records", number(self.source.records))),
        ];
        if let Some(chunks) = self.source.chunks {
            rows.push((
                "chunks read",
                format!(
                    "{} = {} acknowledged + {} given back",
                    number(chunks),
                    number(self.source.acknowledged.unwrap_or(0)),
                    number(self.source.given_back.unwrap_or(0)),
                ),
            ));
        }
        for (reason, count) in self.source.bad_lines.iter().flatten() {
            rows.push(("skipped lines", format!("{} {reason}", number(*count))));
        }
        for (name, count) in [
            ("quarantined", self.source.quarantined),
            ("redelivered", self.source.redelivered),
            ("duplicates", self.source.duplicates_within_reader),
            ("missing chunks", self.source.missing),
        ] {
            if let Some(count) = count.filter(|count| *count > 0) {
                rows.push((name, number(count)));
            }
        }
        rows.extend(self.report.rows());
        output::two_columns(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipping::agreement::assert_every_count_is_shown;
    use crate::shipping::example_report;

    #[test]
    fn text_and_json_say_the_same() {
        let source = SourceFigures {
            from: "null:".to_owned(),
            records: 2_001,
            bad_lines: Some(BTreeMap::from([("too_long", 2_002)])),
            chunks: Some(2_003),
            acknowledged: Some(2_004),
            given_back: Some(2_005),
            quarantined: Some(2_006),
            redelivered: Some(2_007),
            duplicates_within_reader: Some(2_008),
            missing: Some(2_009),
            stopped_early: false,
        };
        let report = example_report();
        let document = Document {
            source: &source,
            report: &report,
        };
        assert_every_count_is_shown(&document, &document.text());
    }
}
