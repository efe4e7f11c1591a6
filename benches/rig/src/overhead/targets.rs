//! Rows against what a probe is to cost at most, each beside its floor or peer of the same run.

use super::row::Row;
use crate::report::{TextTable, short};

/// A figure and what it is to be.
struct Target {
    what: &'static str,
    /// What is told of it.
    measured: Measure,
    /// What it is to be at most; `None` where it is only told.
    most: Option<f64>,
    unit: &'static str,
}

/// The figure, of the rows of a run; `None` where they do not have it.
type Measure = fn(&Rows<'_>) -> Option<f64>;

const TARGETS: &[Target] = &[
    Target {
        what: "deactivated probe, over no instrumentation",
        measured: |rows| rows.one("deactivated")?.over_none_ns,
        most: Some(0.3),
        unit: "ns",
    },
    Target {
        what: "probe that a pattern deactivates, over no instrumentation",
        measured: |rows| rows.one("deactivated-pattern")?.over_none_ns,
        most: Some(0.3),
        unit: "ns",
    },
    Target {
        what: "operation, median by two clock reads",
        measured: |rows| rows.one("operation")?.times_clock,
        most: Some(1.10),
        unit: "x",
    },
    Target {
        what: "operation at full blast, mean by two clock reads",
        measured: |rows| rows.one("operation")?.mean_times_clock,
        most: Some(1.5),
        unit: "x",
    },
    Target {
        what: "operation, calls lost with any number of threads",
        measured: |rows| rows.lost("operation"),
        most: Some(0.0),
        unit: "",
    },
    Target {
        what: "operation with 2 threads, median by two clock reads",
        measured: |rows| rows.with("operation", 2)?.times_clock,
        most: None,
        unit: "x",
    },
    Target {
        what: "operation with 2 threads, mean by two clock reads",
        measured: |rows| rows.with("operation", 2)?.mean_times_clock,
        most: None,
        unit: "x",
    },
    Target {
        what: "operation with 4 threads, median by two clock reads",
        measured: |rows| rows.with("operation", 4)?.times_clock,
        most: None,
        unit: "x",
    },
    Target {
        what: "operation with 4 threads, mean by two clock reads",
        measured: |rows| rows.with("operation", 4)?.mean_times_clock,
        most: None,
        unit: "x",
    },
    Target {
        what: "operation paced, p50 by that of two clock reads",
        measured: |rows| rows.paced(|row| row.median_ns_per_call),
        most: Some(1.03),
        unit: "x",
    },
    Target {
        what: "operation paced, p99 by that of two clock reads",
        measured: |rows| rows.paced(|row| row.p99_ns_per_call),
        most: Some(1.10),
        unit: "x",
    },
    Target {
        what: "operation paced, p99.9 by that of two clock reads",
        measured: |rows| rows.paced(|row| row.p999_ns_per_call),
        most: None,
        unit: "x",
    },
    Target {
        what: "aggregated, median by two clock reads",
        measured: |rows| rows.one("aggregated")?.times_clock,
        most: Some(1.05),
        unit: "x",
    },
    Target {
        what: "duration, median by that of operation",
        measured: |rows| rows.ratio("duration", "operation"),
        most: Some(1.0),
        unit: "x",
    },
    Target {
        what: "instructions of operation",
        measured: |rows| rows.one("operation")?.instructions_per_call,
        most: Some(75.0),
        unit: "",
    },
    Target {
        what: "instructions of aggregated",
        measured: |rows| rows.one("aggregated")?.instructions_per_call,
        most: Some(45.0),
        unit: "",
    },
    Target {
        what: "instructions of aggregated-histogram",
        measured: |rows| rows.one("aggregated-histogram")?.instructions_per_call,
        most: Some(60.0),
        unit: "",
    },
    Target {
        what: "instructions of deactivated",
        measured: |rows| rows.one("deactivated")?.instructions_per_call,
        most: Some(18.0),
        unit: "",
    },
    Target {
        what: "operation, median by that of fastrace",
        measured: |rows| rows.ratio("operation", "fastrace"),
        most: Some(1.0 / 2.0),
        unit: "x",
    },
    Target {
        what: "operation, median by that of tracing-registry",
        measured: |rows| rows.ratio("operation", "tracing-registry"),
        most: Some(1.0 / 7.0),
        unit: "x",
    },
    Target {
        what: "operation, median by that of opentelemetry",
        measured: |rows| rows.ratio("operation", "opentelemetry"),
        most: Some(1.0 / 10.0),
        unit: "x",
    },
];

/// The rows of a run.
struct Rows<'a>(&'a [Row]);

impl<'a> Rows<'a> {
    /// The row of a variant back to back with so many threads.
    fn with(&self, variant: &str, threads: usize) -> Option<&'a Row> {
        self.0.iter().find(|row| {
            row.variant == variant && row.threads == threads && row.paced_calls_per_second.is_none()
        })
    }

    /// The same with one thread.
    fn one(&self, variant: &str) -> Option<&'a Row> {
        self.with(variant, 1)
    }

    fn ratio(&self, ours: &str, theirs: &str) -> Option<f64> {
        let (ours, theirs) = (self.one(ours)?, self.one(theirs)?);
        Some(ours.median_ns_per_call? / theirs.median_ns_per_call?)
    }

    /// A figure of the paced operation by that of the paced clock beside it.
    fn paced(&self, figure: fn(&Row) -> Option<f64>) -> Option<f64> {
        let of = |name: &str| {
            let mut rows = self.0.iter();
            rows.find(|row| row.variant == name && row.paced_calls_per_second.is_some())
        };
        Some(figure(of("operation")?)? / figure(of("clock")?)?)
    }

    fn lost(&self, variant: &str) -> Option<f64> {
        let rows: Vec<_> = self.0.iter().filter(|row| row.variant == variant).collect();
        let lost = rows.iter().map(|row| row.lost).sum();
        (!rows.is_empty()).then(|| crate::statistics::to_f64(lost))
    }
}

/// How deep calls nest in the targets, and how long the innermost one is busy.
const APPLICATION: (u32, u64) = (10, 0);

/// What a difference of two measured times may be off by computing it.
const ROUNDING: f64 = 1e-9;

/// The targets of which the rows have the figures, and whether they are met; empty where they have
/// none, or are of another application.
pub(super) fn targets(rows: &[Row]) -> String {
    let is_other = |row: &Row| (row.depth, row.method_time_ns) != APPLICATION;
    if rows.iter().any(is_other) {
        return String::new();
    }
    let rows = Rows(rows);
    let mut table = TextTable::new(&[
        ("against the targets", true),
        ("at most", false),
        ("measured", false),
        ("", true),
    ]);
    let mut is_empty = true;
    for target in TARGETS {
        let Some(measured) = (target.measured)(&rows) else {
            continue;
        };
        is_empty = false;
        let told = |value: f64| match target.unit {
            "x" => format!("{value:.3} x"),
            "" => short(value),
            unit => format!("{value:.2} {unit}"),
        };
        let verdict = match target.most {
            None => "",
            Some(most) if measured <= most + ROUNDING => "met",
            Some(_) => "missed",
        };
        table.push(vec![
            target.what.to_owned(),
            target.most.map_or_else(|| "-".to_owned(), told),
            told(measured),
            verdict.to_owned(),
        ]);
    }
    if is_empty {
        return String::new();
    }
    format!("\n{}", table.render())
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::measure::Measured;
    use super::super::row::compare;
    use super::*;

    fn row(variant: &str, ns: u64, rate: Option<f64>) -> Row {
        let case = Case {
            variant: variant.into(),
            threads: 1,
            depth: 10,
            method_time_ns: 0,
            calls: 200,
            warm_up: 0.5,
            rate,
        };
        let measured = Measured {
            batches_ns: vec![ns],
            calls_a_batch: 1_000,
            calls: 2_000,
            ..Measured::default()
        };
        Row::new(&case, "", &[measured], None)
    }

    #[test]
    fn each_target_is_met_or_missed_by_what_stands_beside_it() {
        let mut rows = [
            row("none", 1_000, None),
            row("deactivated", 1_400, None),
            row("clock", 20_000, None),
            row("operation", 21_000, None),
            row("clock", 20_000, Some(500_000.0)),
            row("operation", 20_400, Some(500_000.0)),
            row("fastrace", 41_000, None),
        ];
        compare(&mut rows);
        let told = targets(&rows);
        let line = |what: &str| told.lines().find(|line| line.starts_with(what)).unwrap();
        assert!(line("deactivated probe, over").contains("0.40 ns"));
        assert!(line("deactivated probe, over").ends_with("missed"));
        assert!(line("operation, median by two").ends_with("met"));
        assert!(line("operation, calls lost").ends_with("met"));
        assert!(line("operation paced, p50").contains("1.020 x"));
        assert!(line("operation, median by that of fastrace").ends_with("missed"));
        assert!(!told.contains("opentelemetry"), "it was not measured");
    }

    #[test]
    fn rows_without_a_target_tell_none() {
        assert_eq!(targets(&[row("clock", 20_000, None)]), "");
    }
}
