//! The figures of a case after its runs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::case::{Case, Way, looks_of, records_of};
use super::sample::{ClosedBy, Sample};
use crate::statistics::{Estimate, to_f64};

/// A mean with its 95 % confidence interval: Student's, of the runs, each with processes of its own. A
/// single run has no interval: `low`, `mean` and `high` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Interval {
    fn of(values: &[f64]) -> Option<Self> {
        let Estimate { mean, margin } = Estimate::of(values)?;
        let margin = margin.unwrap_or(0.0);
        Some(Self {
            mean,
            low: mean - margin,
            high: mean + margin,
        })
    }

    /// Less `load` at each end, but not below 0.
    fn less(self, load: f64) -> Self {
        Self {
            mean: (self.mean - load).max(0.0),
            low: (self.low - load).max(0.0),
            high: (self.high - load).max(0.0),
        }
    }
}

/// The figure of a sample, given the rate that the case kept up with.
type Figure = fn(&Sample, Option<f64>) -> Option<f64>;

pub(super) const WRITER_CPU: &str = "writer_cpu_seconds_per_second";
/// Writer CPU without the cost of making the records in time ([`Way::Pacing`]).
pub(super) const BEYOND_LOAD: &str = "writer_cpu_beyond_load_seconds_per_second";
pub(super) const READER_CPU: &str = "reader_cpu_seconds_per_second";
pub(super) const BROKER_CPU: &str = "broker_cpu_seconds_per_second";
pub(super) const WIRE_BYTES: &str = "wire_bytes_per_second";
pub(super) const MESSAGES: &str = "messages_per_second";
pub(super) const LATENCY_P50: &str = "latency_ms_p50";
pub(super) const LATENCY_P99: &str = "latency_ms_p99";

/// Every figure, by its name in JSON and CSV.
///
/// CPU times are seconds; `reader_` is the sum of all reading processes. Bytes are TCP payload of the
/// writing process's connections, both ways. The latency is from the time at which a record was to be
/// emitted to its being decoded. `lag_records` were emitted and had not arrived at the end.
const FIGURES: &[(&str, Figure)] = &[
    (WRITER_CPU, |it, _| Some(it.writer_cpu)),
    (READER_CPU, |it, _| it.reader_cpu),
    (BROKER_CPU, |it, _| it.broker_cpu),
    (WIRE_BYTES, |it, due| Some(it.wire_bytes(due))),
    (MESSAGES, |it, due| Some(it.messages(due))),
    (LATENCY_P50, |it, _| Some(it.latency?.p50_ms)),
    (LATENCY_P99, |it, _| Some(it.latency?.p99_ms)),
    ("latency_ms_p999", |it, _| Some(it.latency?.p999_ms)),
    ("lag_records", |it, _| it.lag_records),
    ("writer_memory_bytes", |it, _| {
        Some(to_f64(it.writer_memory_bytes))
    }),
];

/// The figures of a case. The names are those in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What was measured.
    #[serde(flatten)]
    pub case: Case,
    /// The number of runs.
    pub repetitions: usize,
    /// How long each was measured.
    pub seconds: f64,
    /// Means with intervals; a figure that could not be measured is `None`.
    #[serde(flatten)]
    pub figures: BTreeMap<&'static str, Option<Interval>>,
    /// Why chunks were closed, in all runs.
    pub closed_by: ClosedBy,
    /// The records that were due a second. `None`: as many as the medium takes.
    pub offered_rate: Option<f64>,
    /// The records that were confirmed a second.
    pub achieved_rate: Option<f64>,
    /// Whether fewer were confirmed than were due; never without a rate.
    pub saturated: bool,
    /// Records of all runs that did not arrive, or arrived altered; by number and by hash.
    pub lost: u64,
    /// Writer CPU by that of the pipelined way under the same load. Without a rate each case takes as
    /// many records as it can, so this and the other ratios are of the cost of a record.
    pub writer_cpu_by_pipelined: Option<f64>,
    /// Writer CPU by that of the awaiting way under the same load.
    pub writer_cpu_by_awaiting: Option<f64>,
    /// As `writer_cpu_by_pipelined`, without the cost of the load on both sides.
    pub writer_cpu_beyond_load_by_pipelined: Option<f64>,
    /// Bytes on the wire by those of the pipelined way under the same load.
    pub wire_bytes_by_pipelined: Option<f64>,
    /// Why there are no more runs, if one failed.
    pub failure: Option<String>,
}

/// A case is saturated if the medium confirms less than this share of the due records.
const ACHIEVED: f64 = 0.99;

impl Cell {
    pub(super) fn new(case: &Case, samples: &[Sample], failure: Option<String>) -> Self {
        let interval = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let values: Option<Vec<f64>> = samples.iter().map(of).collect();
            Interval::of(&values?)
        };
        let achieved = interval(&|it| Some(it.confirmed)).map(|rate| rate.mean);
        let seconds = interval(&|it| Some(it.seconds)).map_or(0.0, |time| time.mean);
        let saturated = is_saturated(case, achieved, seconds);
        let due = case.rate.filter(|_| !saturated && case.way != Way::Pacing);
        let mut closed_by = ClosedBy::default();
        for sample in samples {
            closed_by.add(sample.closed_by, ClosedBy::default());
        }
        Self {
            case: case.clone(),
            repetitions: samples.len(),
            seconds,
            figures: FIGURES
                .iter()
                .map(|(name, of)| (*name, interval(&|sample| of(sample, due))))
                .collect(),
            closed_by,
            offered_rate: case.rate,
            achieved_rate: achieved,
            saturated,
            lost: samples.iter().map(Sample::lost).sum(),
            writer_cpu_by_pipelined: None,
            writer_cpu_by_awaiting: None,
            writer_cpu_beyond_load_by_pipelined: None,
            wire_bytes_by_pipelined: None,
            failure,
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

    /// The mean as it is compared between ways: of a second where a rate is due, else of a record.
    fn comparable(&self, name: &str) -> Option<f64> {
        let mean = self.mean(name)?;
        match self.case.rate {
            Some(_) => Some(mean),
            None => Some(mean / self.achieved_rate.filter(|rate| *rate > 0.0)?),
        }
    }
}

/// A chunk is confirmed as a whole, and together with all that the collector finds when it wakes up.
/// Records on their way at either end of the measured time are not missing.
fn is_saturated(case: &Case, achieved: Option<f64>, seconds: f64) -> bool {
    let (Some(offered), Some(achieved)) = (case.rate, achieved) else {
        return false;
    };
    let on_their_way = match (case.chunk_records, case.wait_time_ms) {
        (Some(chunk_records), Some(wait_ms)) => {
            let records = records_of(chunk_records, wait_ms, offered);
            records.max(offered / looks_of(records, wait_ms, offered))
        }
        (None, Some(bound_ms)) => offered * bound_ms / 1e3,
        _ => 1.0,
    };
    achieved < offered * ACHIEVED - on_their_way / seconds.max(1.0)
}

/// Compares every cell with the other ways under the same load, where these kept up.
pub(super) fn compare(cells: &mut [Cell]) {
    let before = cells.to_vec();
    for cell in cells {
        let beside = |way: Way| {
            let mut all = before.iter();
            all.find(|other| {
                other.case.way == way && other.case.is_beside(&cell.case) && !other.saturated
            })
        };
        let ratio = |ours: Option<f64>, theirs: Option<f64>| {
            let theirs = theirs.filter(|theirs| *theirs > 0.0)?;
            Some(ours? / theirs)
        };
        let by = |way: Way, name: &str| {
            ratio(
                cell.comparable(name),
                beside(way).and_then(|it| it.comparable(name)),
            )
        };
        let cpu_by_pipelined = by(Way::Pipelined, WRITER_CPU);
        let cpu_by_awaiting = by(Way::Awaiting, WRITER_CPU);
        let bytes_by_pipelined = by(Way::Pipelined, WIRE_BYTES);
        let load = load_cpu(&cell.case, &before);
        let beyond = |cell: &Cell| Some(cell.figure(WRITER_CPU)?.less(load?));
        let own = beyond(cell).filter(|_| cell.case.way != Way::Pacing);
        let theirs = beside(Way::Pipelined).and_then(beyond);
        cell.writer_cpu_beyond_load_by_pipelined =
            ratio(own.map(|it| it.mean), theirs.map(|it| it.mean));
        cell.figures.insert(BEYOND_LOAD, own);
        cell.writer_cpu_by_pipelined = cpu_by_pipelined;
        cell.writer_cpu_by_awaiting = cpu_by_awaiting;
        cell.wire_bytes_by_pipelined = bytes_by_pipelined;
    }
}

/// The CPU time of the load of a case by itself; `None` where it was not measured.
pub(super) fn load_cpu(case: &Case, cells: &[Cell]) -> Option<f64> {
    let mut all = cells.iter();
    all.find(|other| other.case.way == Way::Pacing && other.case.rate == case.rate)?
        .mean(WRITER_CPU)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::reading::Latency;
    use super::*;

    pub(in super::super) fn sample(cpu: f64, confirmed: f64) -> Sample {
        Sample {
            seconds: 2.0,
            writer_cpu: cpu,
            confirmed,
            messages: confirmed / 10.0,
            wire_bytes: 1_100.0,
            latency: Some(Latency {
                p50_ms: 1.0,
                p99_ms: 2.0,
                ..Latency::default()
            }),
            emitted: 100,
            arrived: 100,
            unaltered: true,
            ..Sample::default()
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

    #[test]
    fn a_cell_says_what_its_runs_say() {
        let samples = [sample(0.1, 1_000.0), sample(0.3, 1_000.0)];
        let cell = Cell::new(&case(Way::Baler, Some(10)), &samples, None);
        let cpu = cell.figure(WRITER_CPU).unwrap();
        // 12.706 * 0.1414 / sqrt(2)
        assert!((cpu.mean - 0.2).abs() < 1e-9 && (cpu.high - 1.4706).abs() < 1e-4);
        assert_eq!(cell.mean(WIRE_BYTES), Some(1_100.0));
        assert_eq!((cell.saturated, cell.lost), (false, 0));
        assert_eq!(cell.figure(BROKER_CPU), None);
        assert_eq!(cell.mean(LATENCY_P99), Some(2.0));
        let json = serde_json::to_value(&cell).unwrap();
        assert_eq!(json["latency_ms_p50"]["mean"], 1.0);
        assert_eq!(
            json["broker_cpu_seconds_per_second"],
            serde_json::Value::Null
        );
        let one = Cell::new(&case(Way::Baler, Some(10)), &samples[..1], None);
        let cpu = one.figure(WRITER_CPU).unwrap();
        assert_eq!((cpu.low, cpu.high), (0.1, 0.1));
    }

    #[test]
    fn what_is_confirmed_late_is_no_saturation_and_what_is_not_is() {
        let cell = |confirmed, records| {
            let samples = [Sample {
                seconds: 1.0,
                ..sample(0.1, confirmed)
            }];
            Cell::new(&case(Way::Baler, Some(records)), &samples, None).saturated
        };
        assert!(!cell(995.0, 1));
        assert!(cell(900.0, 1));
        // The collector wakes up this seldom.
        assert!(!cell(965.0, 1));
        // Half a chunk of 256 records was on its way.
        assert!(!cell(900.0, 256));
        assert!(cell(500.0, 256));
    }

    #[test]
    fn cells_are_compared_with_ways_that_kept_up() {
        let cell = |way, cpu, confirmed| {
            let records = (way == Way::Baler).then_some(10);
            Cell::new(&case(way, records), &[sample(cpu, confirmed)], None)
        };
        let mut cells = [
            cell(Way::Pipelined, 0.4, 1_000.0),
            cell(Way::Awaiting, 0.8, 100.0),
            cell(Way::Baler, 0.1, 1_000.0),
            cell(Way::Pacing, 0.04, 1_000.0),
        ];
        compare(&mut cells);
        let beyond = cells[2].writer_cpu_beyond_load_by_pipelined.unwrap();
        assert!((beyond - 0.06 / 0.36).abs() < 1e-9);
        assert!((cells[2].mean(BEYOND_LOAD).unwrap() - 0.06).abs() < 1e-9);
        assert_eq!(cells[2].writer_cpu_by_pipelined, Some(0.25));
        assert_eq!(cells[2].wire_bytes_by_pipelined, Some(1.0));
        assert_eq!(cells[2].writer_cpu_by_awaiting, None);
    }

    #[test]
    fn without_a_rate_the_costs_of_a_record_are_compared() {
        let cell = |way, cpu, confirmed| {
            let mut case = case(way, (way == Way::Baler).then_some(10));
            case.rate = None;
            Cell::new(&case, &[sample(cpu, confirmed)], None)
        };
        let mut cells = [
            cell(Way::Pipelined, 1.0, 1_000.0),
            cell(Way::Baler, 0.5, 10_000.0),
        ];
        compare(&mut cells);
        let cpu = cells[1].writer_cpu_by_pipelined.unwrap();
        let bytes = cells[1].wire_bytes_by_pipelined.unwrap();
        assert!((cpu - 0.05).abs() < 1e-9 && (bytes - 0.1).abs() < 1e-9);
        assert!(cells.iter().all(|cell| !cell.saturated));
    }
}
