//! What each setting cost in each phase, and what auto costs by it.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::day::Phase;
use super::reading::{Found, histogram};
use super::writing::{Setting, Written};
use crate::failure::Failure;
use crate::report::{TextTable, short};
use crate::statistics::{Summary, to_f64};

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
    cpu_ns_per_record: (f64, f64, f64),
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
    /// CPU time of auto by that of this setting in the same round: median, least and most.
    auto_by_this: Option<(f64, f64, f64)>,
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
            in_phase.extend(row(&of_phase, number, phase, *setting, max_latency_ms)?);
        }
        let best = in_phase
            .iter_mut()
            .filter(|row| row.keeps_bound && row.setting != Setting::Auto.name())
            .min_by(|a, b| a.cpu_ns_per_record.0.total_cmp(&b.cpu_ns_per_record.0));
        if let Some(best) = best {
            best.best = true;
        }
        rows.extend(in_phase);
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
    let cpu =
        |sample: &Sample| to_f64(sample.written.cpu_ns) / to_f64(sample.written.records).max(1.0);
    let total = |count: fn(&Written) -> u64| -> f64 {
        to_f64(of(setting).map(|it| count(&it.written)).sum::<u64>())
    };
    let Some(cpu_ns_per_record) = three(of(setting).map(|it| cpu(it))) else {
        return Ok(None);
    };
    let behind = of(setting).map(|it| {
        to_f64(it.written.cpu_ns.saturating_sub(it.written.emitting_ns))
            / to_f64(it.written.records).max(1.0)
    });
    let pairs = of(setting).filter_map(|it| {
        let auto = of(Setting::Auto).find(|auto| auto.round == it.round)?;
        Some(cpu(auto) / cpu(it))
    });
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
        behind_ns_per_record: three(behind).map_or(0.0, |it| it.0),
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
        auto_by_this: (setting != Setting::Auto).then(|| three(pairs)).flatten(),
        best: false,
    }))
}

/// Median, least and most.
fn three(values: impl Iterator<Item = f64>) -> Option<(f64, f64, f64)> {
    let all = Summary::of(values)?;
    Some((all.median, all.min, all.max))
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
        ("behind", false),
        ("B/rec", false),
        ("rec/chunk", false),
        ("p50 ms", false),
        ("p99", false),
        ("p99.9", false),
        ("kept", true),
        ("auto by it", true),
    ]);
    for row in rows {
        let by = row.auto_by_this.map(|(median, least, most)| {
            let best = if row.best { " best" } else { "" };
            format!("{median:.2} ({least:.2}-{most:.2}){best}")
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
            short(row.behind_ns_per_record),
            short(row.bytes_per_record),
            short(row.records_per_chunk),
            short(row.latency_ms_p50),
            short(row.latency_ms_p99),
            short(row.latency_ms_p999),
            kept.to_owned(),
            by.unwrap_or_default(),
        ]);
    }
    let auto = |phase| {
        let mut autos = rows
            .iter()
            .filter(|row| row.setting == Setting::Auto.name());
        autos.find(move |row| row.phase == phase)
    };
    let met = rows.iter().filter(|row| row.best).filter(|row| {
        let within = row
            .auto_by_this
            .is_some_and(|(median, ..)| median <= TARGET);
        within && auto(row.phase).is_some_and(|auto| auto.keeps_bound)
    });
    let phases = rows.iter().map(|row| row.phase + 1).max().unwrap_or(0);
    let kept = (0..phases).filter(|phase| auto(*phase).is_some_and(|auto| auto.keeps_bound));
    format!(
        "{}\nauto costs at most 5 % more than the best fixed size in {} of {phases} phases, and \
         keeps the bound of {max_latency_ms} ms in {}\n",
        table.render(),
        met.count(),
        kept.count()
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
        assert!(auto.keeps_bound && auto.auto_by_this.is_none() && !auto.best);
        assert!(small.best && !large.best && !large.keeps_bound);
        // However slow the second round was.
        let (median, least, most) = small.auto_by_this.unwrap();
        for ratio in [median, least, most] {
            assert!((ratio - 1.1).abs() < 1e-9);
        }
        assert!(
            text(&rows, 100.0).contains("in 0 of 1 phases, and keeps the bound of 100 ms in 1")
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
