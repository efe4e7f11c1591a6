//! The figures of a case after its runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::case::{Case, Way, records_of};
use crate::harness::Runs;
use crate::statistics::{Interval, to_f64};

pub(super) const WRITER_CPU: &str = "writer_cpu_seconds_per_second";
pub(super) const READER_CPU: &str = "reader_cpu_seconds_per_second";
pub(super) const BROKER_CPU: &str = "broker_cpu_seconds_per_second";
pub(super) const WIRE_BYTES: &str = "wire_bytes_per_second";
pub(super) const MESSAGES: &str = "messages_per_second";
pub(super) const LATENCY_P50: &str = "latency_ms_p50";
pub(super) const LATENCY_P99: &str = "latency_ms_p99";
pub(super) const LATENCY_P999: &str = "latency_ms_p999";
pub(super) const WRITER_MEMORY: &str = "writer_memory_bytes";

/// The figures of a run, by their names in JSON.
///
/// CPU times are seconds; `reader_` is the sum of all reading processes. Bytes are TCP payload of
/// the writing process's connections, both ways. The latency is the time from the scheduled
/// emission of a record to its decoding.
const MEASURED: [&str; 9] = [
    WRITER_CPU,
    READER_CPU,
    BROKER_CPU,
    WIRE_BYTES,
    MESSAGES,
    LATENCY_P50,
    LATENCY_P99,
    LATENCY_P999,
    WRITER_MEMORY,
];

/// Writer CPU without the cost of making the records in time ([`Way::Pacing`]).
pub(super) const BEYOND_LOAD: &str = "writer_cpu_beyond_load_seconds_per_second";
/// Writer CPU divided by the pipelined way's under the same load. Without a rate each case takes as
/// many records as it can, so this and the other ratios refer to the cost of a record.
pub(super) const CPU_BY_PIPELINED: &str = "writer_cpu_by_pipelined";
pub(super) const CPU_BY_AWAITING: &str = "writer_cpu_by_awaiting";
/// The same without the cost of the load on both sides.
pub(super) const BEYOND_LOAD_BY_PIPELINED: &str = "writer_cpu_beyond_load_by_pipelined";
pub(super) const BYTES_BY_PIPELINED: &str = "wire_bytes_by_pipelined";

/// The result of one run of one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// The measured time.
    pub(super) seconds: f64,
    /// Confirmed records a second.
    pub(super) confirmed: f64,
    /// The figures by their names; a figure that could not be measured is missing.
    pub(super) figures: BTreeMap<String, f64>,
    /// Records of the whole run that did not arrive.
    pub(super) lost: u64,
}

/// The figures of a case. JSON uses the same names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The measured case.
    #[serde(flatten)]
    pub case: Case,
    /// The number of runs.
    pub repetitions: usize,
    /// The measured time of each run.
    pub seconds: f64,
    /// Means and ratios with their intervals; a figure that could not be measured is `None`.
    #[serde(flatten)]
    pub figures: BTreeMap<&'static str, Option<Interval>>,
    /// Due records a second. `None`: as many as the medium takes.
    pub offered_rate: Option<f64>,
    /// Confirmed records a second.
    pub achieved_rate: Option<f64>,
    /// Whether fewer records were confirmed than due; never without a rate.
    pub saturated: bool,
    /// Records of all runs that did not arrive.
    pub lost: u64,
    /// The reason why there are no more runs, if one failed.
    pub failure: Option<String>,
}

/// A case is saturated if the medium confirms less than this share of the due records.
const ACHIEVED: f64 = 0.99;

impl Cell {
    fn new(case: &Case, runs: &Runs<Sample>) -> Self {
        let mean = |of: fn(&Sample) -> f64| runs.interval(of).map(|it| it.mean);
        let achieved = mean(|it| it.confirmed);
        let seconds = mean(|it| it.seconds).unwrap_or(0.0);
        Self {
            case: case.clone(),
            repetitions: runs.samples.len(),
            seconds,
            figures: BTreeMap::new(),
            offered_rate: case.rate,
            achieved_rate: achieved,
            saturated: achieved.is_some_and(|achieved| is_saturated(case, achieved, seconds)),
            lost: runs.samples.iter().map(|it| it.lost).sum(),
            failure: runs.failure.as_ref().map(ToString::to_string),
        }
    }

    /// The figure of this name.
    pub(super) fn figure(&self, name: &str) -> Option<Interval> {
        self.figures.get(name).copied().flatten()
    }

    /// The mean of the figure of this name.
    pub(super) fn mean(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|figure| figure.mean)
    }
}

/// Whether fewer records were confirmed a second than were due.
///
/// A chunk is confirmed as a whole, together with all other records that the collector finds when
/// it wakes up. Records in flight at either end of the measured time are not missing.
pub(super) fn is_saturated(case: &Case, achieved: f64, seconds: f64) -> bool {
    let Some(offered) = case.rate else {
        return false;
    };
    let on_their_way = match (case.chunk_records, case.wait_time_ms) {
        (Some(chunk_records), Some(wait_ms)) => {
            // A full chunk waits for others for up to an eighth of the wait time.
            records_of(chunk_records, wait_ms, offered) + offered * wait_ms / 8e3
        }
        (None, Some(bound_ms)) => offered * bound_ms / 1e3,
        _ => 1.0,
    };
    achieved < offered * ACHIEVED - on_their_way / seconds.max(1.0)
}

/// Returns the cells of these cases. They are compared with other ways under the same load that
/// kept up.
pub(super) fn cells(cases: &[Case], all: &[Runs<Sample>]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = cases
        .iter()
        .zip(all)
        .map(|(case, runs)| Cell::new(case, runs))
        .collect();
    let slowness = slowness(all);
    for (cell, runs) in cells.iter_mut().zip(all) {
        for name in MEASURED {
            let values = series(&runs.samples, name);
            let interval = match &slowness {
                Some(slowness) if name.contains("_cpu_") => Interval::of_ratio(&values, slowness),
                _ => Interval::of(&values),
            };
            cell.figures.insert(name, interval);
        }
    }
    let before = cells.clone();
    for (cell, runs) in cells.iter_mut().zip(all) {
        let case = &cell.case;
        let load = load_cpu(case, &before);
        let by = |way: Way, name: &str, less: f64| {
            let mut others = before.iter().zip(all);
            let (_, theirs) = others.find(|(other, _)| {
                other.case.way == way && other.case.is_beside(case) && !other.saturated
            })?;
            let of = |runs: &Runs<Sample>| comparable(case, &runs.samples, name, less);
            Interval::of_ratio(&of(runs), &of(theirs))
        };
        let beyond = |load: f64| by(Way::Pipelined, WRITER_CPU, load);
        let own = cell.figure(WRITER_CPU).filter(|_| case.way != Way::Pacing);
        let compared = [
            (BEYOND_LOAD, own.zip(load).map(|(cpu, load)| cpu.less(load))),
            (CPU_BY_PIPELINED, by(Way::Pipelined, WRITER_CPU, 0.0)),
            (CPU_BY_AWAITING, by(Way::Awaiting, WRITER_CPU, 0.0)),
            (BEYOND_LOAD_BY_PIPELINED, own.and(load).and_then(beyond)),
            (BYTES_BY_PIPELINED, by(Way::Pipelined, WIRE_BYTES, 0.0)),
        ];
        cell.figures.extend(compared);
    }
    cells
}

/// Returns a figure of all runs; empty if one run lacks it.
fn series(samples: &[Sample], name: &str) -> Vec<f64> {
    let values: Option<_> = samples
        .iter()
        .map(|it| it.figures.get(name).copied())
        .collect();
    values.unwrap_or_default()
}

/// Returns a figure of all runs for comparing ways: for a second if there is a rate, otherwise for
/// a record.
fn comparable(case: &Case, samples: &[Sample], name: &str, less: f64) -> Vec<f64> {
    let values = series(samples, name).into_iter().zip(samples);
    values
        .map(|(value, sample)| match case.rate {
            Some(_) => (value - less).max(0.0),
            None => value / sample.confirmed.max(1e-9),
        })
        .collect()
}

/// How slow the machine was in each round, measured by the writer CPU of all cases that have all
/// rounds; 1 on average.
///
/// Every round measures each case once, so a slow minute affects neighbouring cases alike. With
/// this correction the intervals show how well cases can be distinguished. With fewer than three
/// cases a round shows too little.
fn slowness(all: &[Runs<Sample>]) -> Option<Vec<f64>> {
    let rounds = all.iter().map(|runs| runs.samples.len()).max()?;
    let complete: Vec<Vec<f64>> = all
        .iter()
        .map(|runs| series(&runs.samples, WRITER_CPU))
        .filter(|values| values.len() == rounds)
        .filter_map(|values| {
            let mean = Interval::of(&values)?.mean;
            (mean > 0.0).then(|| values.iter().map(|value| value / mean).collect())
        })
        .collect();
    let count = to_f64(complete.len() as u64);
    let mean_of = |round: usize| complete.iter().map(|values| values[round]).sum::<f64>() / count;
    (complete.len() >= 3).then(|| (0..rounds).map(mean_of).collect())
}

/// Returns the CPU time of a case's load alone; `None` if it was not measured.
pub(super) fn load_cpu(case: &Case, cells: &[Cell]) -> Option<f64> {
    let mut all = cells.iter();
    all.find(|other| other.case.way == Way::Pacing && other.case.rate == case.rate)?
        .mean(WRITER_CPU)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample(cpu: f64, confirmed: f64) -> Sample {
        let figures = [
            (WRITER_CPU, cpu),
            (WIRE_BYTES, 1_100.0),
            (LATENCY_P50, 1.0),
            (LATENCY_P99, 2.0),
        ];
        Sample {
            seconds: 2.0,
            confirmed,
            figures: figures.map(|(name, it)| (name.to_owned(), it)).into(),
            lost: 0,
        }
    }

    pub(in super::super) fn case(way: Way, chunk_records: Option<u32>) -> Case {
        Case {
            way,
            chunk_records,
            rate: Some(1_000.0),
            compression: chunk_records.map(|_| "none".to_owned()),
            wait_time_ms: Some(500.0),
            consumers: 1,
        }
    }

    pub(in super::super) fn runs(samples: &[Sample]) -> Runs<Sample> {
        Runs {
            samples: samples.to_vec(),
            failure: None,
        }
    }

    fn one(case: Case, samples: &[Sample]) -> Cell {
        cells(&[case], &[runs(samples)]).remove(0)
    }

    #[test]
    fn a_cell_says_what_its_runs_say() {
        let samples = [sample(0.1, 1_000.0), sample(0.3, 1_000.0)];
        let cell = one(case(Way::Baler, Some(10)), &samples);
        let cpu = cell.figure(WRITER_CPU).unwrap();
        // 12.706 * 0.1414 / sqrt(2)
        assert!((cpu.mean - 0.2).abs() < 1e-9 && (cpu.high - 1.4706).abs() < 1e-4);
        assert_eq!((cell.saturated, cell.lost), (false, 0));
        let json = serde_json::to_value(&cell).unwrap();
        assert_eq!(json["latency_ms_p50"]["mean"], 1.0);
        let broker = &json["broker_cpu_seconds_per_second"];
        assert_eq!(*broker, serde_json::Value::Null);
    }

    #[test]
    fn what_is_confirmed_late_is_no_saturation_and_what_is_not_is() {
        for (confirmed, records, expected) in [
            (995.0, 1, false),
            (900.0, 1, true),
            // The collector wakes up so rarely.
            (965.0, 1, false),
            // Half a chunk of 256 records was in flight.
            (900.0, 256, false),
            (500.0, 256, true),
        ] {
            let case = case(Way::Baler, Some(records));
            assert_eq!(is_saturated(&case, confirmed, 1.0), expected, "{confirmed}");
        }
    }

    #[test]
    fn cells_are_compared_with_ways_that_kept_up() {
        let cases = [
            case(Way::Pipelined, None),
            case(Way::Awaiting, None),
            case(Way::Baler, Some(10)),
            case(Way::Pacing, None),
        ];
        let all = [
            (0.4, 1_000.0),
            (0.8, 100.0),
            (0.1, 1_000.0),
            (0.04, 1_000.0),
        ];
        let all = all.map(|(cpu, confirmed)| runs(&[sample(cpu, confirmed)]));
        let cell = cells(&cases, &all).remove(2);
        let mean = |name| cell.mean(name).unwrap();
        assert!((mean(BEYOND_LOAD_BY_PIPELINED) - 0.06 / 0.36).abs() < 1e-9);
        assert!((mean(BEYOND_LOAD) - 0.06).abs() < 1e-9);
        assert!((mean(CPU_BY_PIPELINED) - 0.25).abs() < 1e-9);
        assert!((mean(BYTES_BY_PIPELINED) - 1.0).abs() < 1e-9);
        assert_eq!(cell.mean(CPU_BY_AWAITING), None);
    }

    #[test]
    fn without_a_rate_the_costs_of_a_record_are_compared() {
        let cases = [case(Way::Pipelined, None), case(Way::Baler, Some(10))];
        let cases = cases.map(|case| Case { rate: None, ..case });
        let all = [(1.0, 1_000.0), (0.5, 10_000.0)];
        let all = all.map(|(cpu, confirmed)| runs(&[sample(cpu, confirmed)]));
        let cells = cells(&cases, &all);
        let mean = |name| cells[1].mean(name).unwrap();
        assert!((mean(CPU_BY_PIPELINED) - 0.05).abs() < 1e-9);
        assert!((mean(BYTES_BY_PIPELINED) - 0.1).abs() < 1e-9);
        assert!(cells.iter().all(|cell| !cell.saturated));
    }

    #[test]
    fn a_slow_minute_of_all_cases_widens_no_interval() {
        let all = [0.1, 0.2, 0.4].map(|cpu| {
            let slow = [1.0, 1.0, 1.5, 1.5].map(|slow| sample(cpu * slow, 1_000.0));
            runs(&slow)
        });
        let cases = [16, 32, 128].map(|size| case(Way::Baler, Some(size)));
        for (cell, cpu) in cells(&cases, &all).iter().zip([0.1, 0.2, 0.4]) {
            let found = cell.figure(WRITER_CPU).unwrap();
            assert!((found.mean - cpu * 1.25).abs() < 1e-9, "{found:?}");
            assert!(found.margin() < 1e-9, "{found:?}");
        }
    }
}
