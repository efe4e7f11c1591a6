//! What is known of a broker's restarts.

use std::time::Duration;

use baler_rig::report::TextTable;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::flow::Latency;
use crate::failure::Failure;

/// One restart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Round {
    /// Whether the broker was killed.
    pub hard: bool,
    /// From its end to its return, in milliseconds.
    pub away_ms: f64,
    /// From its return to the first chunk that arrived, in milliseconds.
    pub first_ms: f64,
    /// From its return to the first record that was emitted after it, in milliseconds.
    pub fresh_ms: f64,
}

impl Round {
    pub(super) fn new(hard: bool, away: Duration, latency: Latency) -> Self {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            hard,
            away_ms: ms(away),
            first_ms: ms(latency.first),
            fresh_ms: ms(latency.fresh),
        }
    }
}

/// What is known of a broker's restarts of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which broker.
    pub broker: &'static str,
    /// `clean`, `hard`, or `all`.
    pub restart: &'static str,
    /// To which arrival: `first` of any chunk, or of a `fresh` record, emitted after the return.
    pub to: &'static str,
    /// How many restarts.
    pub rounds: usize,
    /// Half of the times are shorter, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 times are shorter, in milliseconds.
    pub p99_ms: f64,
    /// The longest, in milliseconds.
    pub max_ms: f64,
    /// How long the broker was away on average, in milliseconds.
    pub mean_away_ms: f64,
    /// Records emitted over all restarts of the broker.
    pub records: u64,
    /// Records that never arrived.
    pub missing: u64,
    /// In the rows `all`, `fresh`: every restart.
    pub each: Vec<Round>,
}

/// The longest time that the histogram distinguishes, in microseconds.
const LONGEST_US: u64 = 120_000_000;

/// A kind of restarts: its name, and which they are.
type Kind = (&'static str, fn(&Round) -> bool);

/// An arrival: its name, and when it was.
type Arrival = (&'static str, fn(&Round) -> f64);

/// The rows of a broker.
///
/// # Errors
///
/// A time is beyond two minutes.
pub(super) fn rows(
    broker: &'static str,
    rounds: &[Round],
    (records, missing): (u64, u64),
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let kinds: [Kind; 3] = [
        ("clean", |round| !round.hard),
        ("hard", |round| round.hard),
        ("all", |_| true),
    ];
    let arrivals: [Arrival; 2] = [
        ("first", |round| round.first_ms),
        ("fresh", |round| round.fresh_ms),
    ];
    for (restart, is) in kinds {
        let own: Vec<Round> = rounds.iter().filter(|round| is(round)).copied().collect();
        if own.is_empty() || (restart != "all" && own.len() == rounds.len()) {
            continue;
        }
        for (to, time) in arrivals {
            let wrong = Failure::cannot("count a time");
            let mut histogram: Histogram<u64> = Histogram::new_with_bounds(1, LONGEST_US, 3)
                .map_err(|error| wrong(error.to_string()))?;
            for round in &own {
                let time = Duration::from_secs_f64(time(round) / 1e3);
                let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                histogram
                    .record(micros)
                    .map_err(|error| wrong(error.to_string()))?;
            }
            let ms = |micros: u64| Duration::from_micros(micros).as_secs_f64() * 1e3;
            let away = own.iter().map(|round| round.away_ms);
            rows.push(Row {
                broker,
                restart,
                to,
                rounds: own.len(),
                p50_ms: ms(histogram.value_at_quantile(0.5)),
                p99_ms: ms(histogram.value_at_quantile(0.99)),
                max_ms: ms(histogram.max()),
                mean_away_ms: away.sum::<f64>()
                    / baler_rig::statistics::to_f64(u64::try_from(own.len()).unwrap_or(1)),
                records,
                missing,
                each: match (restart, to) {
                    ("all", "fresh") => own.clone(),
                    _ => Vec::new(),
                },
            });
        }
    }
    Ok(rows)
}

/// The rows within 100 columns.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        ("broker", true),
        ("restart", true),
        ("to", true),
        ("rounds", false),
        ("p50 ms", false),
        ("p99 ms", false),
        ("max ms", false),
        ("away ms", false),
        ("records", false),
        ("missing", false),
    ]);
    for row in rows {
        let ms = |value: f64| format!("{value:.0}");
        table.push(vec![
            row.broker.to_owned(),
            row.restart.to_owned(),
            row.to.to_owned(),
            row.rounds.to_string(),
            ms(row.p50_ms),
            ms(row.p99_ms),
            ms(row.max_ms),
            ms(row.mean_away_ms),
            row.records.to_string(),
            row.missing.to_string(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_rounds() {
        let rounds: Vec<Round> = (1..=100)
            .map(|ms| Round {
                hard: ms % 2 == 0,
                away_ms: 10.0,
                first_ms: f64::from(ms),
                fresh_ms: f64::from(ms * 10),
            })
            .collect();
        let rows = rows("amqp", &rounds, (7, 0)).unwrap();
        assert_eq!(rows.len(), 6);
        let all = rows
            .iter()
            .find(|row| row.restart == "all" && row.to == "fresh");
        let all = all.unwrap();
        assert!((all.p50_ms - 500.0).abs() < 1.0 && (all.p99_ms - 990.0).abs() < 1.0);
        assert!((all.max_ms - 1_000.0).abs() < 1.0 && all.each.len() == 100);
        assert_eq!(rows.iter().filter(|row| row.rounds == 50).count(), 4);
        assert!(table(&rows).lines().all(|line| line.len() <= 100));
    }
}
