//! What each setting cost in each phase, and what auto costs by it.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::cost::{AutoBy, Cpu, Three, auto_by, auto_by_best, cheapest, three};
use super::day::Phase;
use super::reading::{Found, histogram};
use super::writing::{Setting, Written};
use crate::failure::Failure;
use crate::report::{TextTable, short};
use crate::statistics::to_f64;

/// What a run told of a phase.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) round: usize,
    pub(super) phase: usize,
    pub(super) setting: Setting,
    pub(super) written: Written,
    pub(super) found: Found,
}

/// A setting in a phase.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// The number of the phase, from 0.
    phase: usize,
    /// Records a second.
    rate: u32,
    /// `auto`, or the number of records.
    setting: String,
    rounds: usize,
    /// CPU time of the writing process a record, in nanoseconds: median, least and most.
    cpu_ns_per_record: Three,
    /// Of it, without what the load's waiting for the next record costs.
    own_ns_per_record: Three,
    /// Of it, without the thread that emits.
    behind_ns_per_record: f64,
    bytes_per_record: f64,
    records_per_chunk: f64,
    /// What was chosen, or set, at the end of the phase.
    chunk_records: u64,
    wait_ms: f64,
    latency_ms_p50: f64,
    latency_ms_p99: f64,
    latency_ms_p999: f64,
    latency_ms_max: f64,
    /// Whether 99.9 % of the records were delivered within the bound, and all that were due emitted.
    keeps_bound: bool,
    saturated: bool,
    lost: u64,
    /// CPU time of auto by that of this setting in the same round: median, least and most. Of auto
    /// itself, by the fixed size that was best in the other rounds.
    auto_by: Option<AutoBy>,
    /// Whether it is the cheapest of the fixed ones that keep the bound.
    best: bool,
}

/// The rows of all phases, each phase's settings in their order.
pub(super) fn rows(
    samples: &[Sample],
    phases: &[Phase],
    settings: &[Setting],
    max_latency_ms: f64,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (number, phase) in phases.iter().enumerate() {
        let of_phase: Vec<&Sample> = samples.iter().filter(|it| it.phase == number).collect();
        let mut in_phase = Vec::new();
        for setting in settings {
            let row = row(&of_phase, number, phase, *setting, max_latency_ms)?;
            in_phase.extend(row.map(|row| (*setting, row)));
        }
        let kept: Vec<Setting> = in_phase
            .iter()
            .filter(|(setting, row)| row.keeps_bound && *setting != Setting::Auto)
            .map(|(setting, _)| *setting)
            .collect();
        let best = cheapest(&of_phase, &kept, Cpu::Own, None);
        rows.extend(in_phase.into_iter().map(|(setting, row)| Row {
            best: Some(setting) == best,
            auto_by: match setting {
                Setting::Auto => auto_by_best(&of_phase, &kept),
                fixed @ Setting::Fixed(_) => auto_by(&of_phase, fixed),
            },
            ..row
        }));
    }
    Ok(rows)
}

fn row(
    of_phase: &[&Sample],
    number: usize,
    phase: &Phase,
    setting: Setting,
    max_latency_ms: f64,
) -> Result<Option<Row>, Failure> {
    let of = |setting| of_phase.iter().filter(move |it| it.setting == setting);
    let cost = |cpu: Cpu| three(of(setting).map(|it| cpu.of(&it.written)));
    let total = |count: fn(&Written) -> u64| -> f64 {
        to_f64(of(setting).map(|it| count(&it.written)).sum::<u64>())
    };
    let (Some(cpu_ns_per_record), Some(own_ns_per_record), Some(behind)) =
        (cost(Cpu::Whole), cost(Cpu::Own), cost(Cpu::Behind))
    else {
        return Ok(None);
    };
    let mut latency: Histogram<u64> = histogram()?;
    let mut lost = 0;
    for it in of(setting) {
        for (nanos, count) in &it.found.latency {
            latency.saturating_record_n(*nanos, *count);
        }
        let missing = it.written.emitted.saturating_sub(it.found.records);
        let is_altered = missing == 0 && it.written.sum != it.found.sum;
        lost += missing.max(u64::from(is_altered));
    }
    let ms = |share| to_f64(latency.value_at_quantile(share)) / 1e6;
    let saturated = of(setting).any(|it| it.written.is_saturated());
    let records = total(|it| it.records).max(1.0);
    let last = of(setting).next_back().map(|it| it.written);
    Ok(Some(Row {
        phase: number,
        rate: phase.rate,
        setting: setting.name(),
        rounds: of(setting).count(),
        cpu_ns_per_record,
        own_ns_per_record,
        behind_ns_per_record: behind.0,
        bytes_per_record: total(|it| it.bytes) / records,
        records_per_chunk: records / total(|it| it.chunks).max(1.0),
        chunk_records: last.map_or(0, |it| it.chunk_records),
        wait_ms: last.map_or(0.0, |it| it.wait_ms),
        latency_ms_p50: ms(0.5),
        latency_ms_p99: ms(0.99),
        latency_ms_p999: ms(0.999),
        latency_ms_max: ms(1.0),
        keeps_bound: !saturated && lost == 0 && ms(0.999) <= max_latency_ms,
        saturated,
        lost,
        auto_by: None,
        best: false,
    }))
}

/// Auto costs so much by the best fixed size at most.
const TARGET: f64 = 1.05;

/// Whether nothing was lost.
pub(super) fn are_whole(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.lost == 0)
}

/// The table, and below it what there is to say of the target.
pub(super) fn text(rows: &[Row], max_latency_ms: f64) -> String {
    let mut table = TextTable::new(&[
        ("rate/s", false),
        ("size", true),
        ("CPU ns/rec", false),
        ("own", false),
        ("behind", false),
        ("B/rec", false),
        ("rec/chunk", false),
        ("p50 ms", false),
        ("p99", false),
        ("p99.9", false),
        ("kept", true),
        ("auto by it", true),
        ("whole", true),
    ]);
    for row in rows {
        let is_auto = row.setting == Setting::Auto.name();
        let of = |(median, least, most): Three| format!("{median:.2} ({least:.2}-{most:.2})");
        let by = row.auto_by.map(|by| {
            let mark = match (is_auto, row.best) {
                (true, _) => " by the best",
                (false, true) => " best",
                (false, false) => "",
            };
            format!("{}{mark}", of(by.own))
        });
        let kept = match (row.lost, row.saturated, row.keeps_bound) {
            (0, false, true) => "yes",
            (0, false, false) => "late",
            (0, true, _) => "full",
            _ => "LOST",
        };
        table.push(vec![
            short(f64::from(row.rate)),
            row.setting.clone(),
            short(row.cpu_ns_per_record.0),
            short(row.own_ns_per_record.0),
            short(row.behind_ns_per_record),
            short(row.bytes_per_record),
            short(row.records_per_chunk),
            short(row.latency_ms_p50),
            short(row.latency_ms_p99),
            short(row.latency_ms_p999),
            kept.to_owned(),
            by.unwrap_or_default(),
            row.auto_by.map(|by| of(by.whole)).unwrap_or_default(),
        ]);
    }
    let autos = || {
        rows.iter()
            .filter(|row| row.setting == Setting::Auto.name())
    };
    let met = |of: fn(&AutoBy) -> Three| {
        let is_met = |row: &&Row| row.auto_by.is_some_and(|by| of(&by).0 <= TARGET);
        autos().filter(|row| row.keeps_bound).filter(is_met).count()
    };
    format!(
        "{}\nauto costs at most 5 % more than the best fixed size in {} of {} phases ({} with what \
         the load's waiting costs), and keeps the bound of {max_latency_ms} ms in {}\n",
        table.render(),
        met(|by| by.own),
        autos().count(),
        met(|by| by.whole),
        autos().filter(|row| row.keeps_bound).count()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASE: Phase = Phase {
        rate: 1_000,
        seconds: 1.0,
    };

    fn sample(setting: Setting, round: usize, cpu_ns: u64, latency_ms: u64) -> Sample {
        Sample {
            round,
            phase: 0,
            setting,
            written: Written {
                due: 1_000,
                emitted: 1_000,
                records: 1_000,
                cpu_ns,
                chunks: 10,
                ..Written::default()
            },
            found: Found {
                records: 1_000,
                sum: 0,
                latency: vec![(latency_ms * 1_000_000, 1_000)],
            },
        }
    }

    fn of(samples: &[Sample]) -> Vec<Row> {
        let settings = [Setting::Auto, Setting::Fixed(16), Setting::Fixed(1_024)];
        rows(samples, &[PHASE], &settings, 100.0).unwrap()
    }

    #[test]
    fn auto_is_compared_in_pairs_with_the_cheapest_that_keeps_the_bound() {
        let mut samples = Vec::new();
        for (round, noise) in [(0, 1), (1, 10)] {
            samples.push(sample(Setting::Auto, round, 110_000 * noise, 50));
            samples.push(sample(Setting::Fixed(16), round, 100_000 * noise, 50));
            // Cheaper, and late.
            samples.push(sample(Setting::Fixed(1_024), round, 50_000 * noise, 150));
        }
        let rows = of(&samples);
        let (auto, small, large) = (&rows[0], &rows[1], &rows[2]);
        assert!(auto.keeps_bound && !auto.best);
        assert!(small.best && !large.best && !large.keeps_bound);
        // However slow the second round was.
        for by in [small.auto_by, auto.auto_by].map(Option::unwrap) {
            let ((a, b, c), (d, e, f)) = (by.own, by.whole);
            for ratio in [a, b, c, d, e, f] {
                assert!((ratio - 1.1).abs() < 1e-9);
            }
        }
        let text = text(&rows, 100.0);
        assert!(
            text.contains("in 0 of 1 phases (0 with") && text.contains("the bound of 100 ms in 1"),
            "{text}"
        );
        assert!(are_whole(&rows));
    }

    #[test]
    fn what_is_missing_altered_or_not_emitted_keeps_no_bound() {
        let mut missing = sample(Setting::Auto, 0, 1, 1);
        missing.found.records = 990;
        let mut altered = sample(Setting::Fixed(16), 0, 1, 1);
        altered.found.sum = 7;
        let mut full = sample(Setting::Fixed(1_024), 0, 1, 1);
        full.written.due = 1_100;
        let rows = of(&[missing, altered, full]);
        assert_eq!([rows[0].lost, rows[1].lost, rows[2].lost], [10, 1, 0]);
        assert!(rows[2].saturated);
        assert!(rows.iter().all(|row| !row.keeps_bound));
        assert!(!are_whole(&rows));
    }
}
