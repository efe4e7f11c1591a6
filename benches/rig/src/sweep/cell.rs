//! What is known of a case after its runs.

use serde::Serialize;

use super::case::{Case, Way, looks_of, records_of};
use super::sample::{ClosedBy, Sample, SecondSample};
use crate::statistics::{Estimate, to_f64};
use crate::wire::Wire;

/// A mean with its 95 % confidence interval.
///
/// Of the means of runs, each with processes of its own; of eight runs or more an eighth is left out
/// at either end ([`Estimate::trimmed`]). Those of CPU time are the wider, the more runs resemble those
/// before them ([`autocorrelation`](crate::statistics::autocorrelation)).
/// Where there is only one run it is of its seconds, as in the paper, which is narrower than what
/// another run would tell.
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
        let Estimate { mean, margin } = Estimate::trimmed(values)?;
        let margin = margin.unwrap_or(0.0);
        Some(Self {
            mean,
            low: mean - margin,
            high: mean + margin,
        })
    }

    /// So many times as wide.
    fn widened(self, times: f64) -> Self {
        let Self { mean, low, high } = self;
        Self {
            mean,
            low: mean - (mean - low) * times,
            high: mean + (high - mean) * times,
        }
    }

    /// Shifted down by so much, but not below nothing.
    fn less(self, load: f64) -> Self {
        let less = |value: f64| (value - load).max(0.0);
        Self {
            mean: less(self.mean),
            low: less(self.low),
            high: less(self.high),
        }
    }

    /// Half its width, as a share of the mean.
    pub fn relative_half_width(&self) -> f64 {
        match self.mean {
            0.0 => 0.0,
            mean => (self.high - self.low) / 2.0 / mean.abs(),
        }
    }
}

/// What is known of a case. The names are those in JSON; rates are for a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What was measured.
    #[serde(flatten)]
    pub case: Case,
    /// How many runs there are.
    pub repetitions: usize,
    /// For how many seconds each was measured.
    pub seconds: f64,
    /// Seconds of CPU time of the writing process.
    pub writer_cpu_seconds_per_second: Option<Interval>,
    /// The same, without what making the records in time costs by itself ([`Way::Pacing`]); nothing
    /// where that was not measured.
    pub writer_cpu_beyond_load_seconds_per_second: Option<Interval>,
    /// What of it was spent in user mode.
    pub writer_user_cpu_seconds_per_second: Option<Interval>,
    /// What of it was spent in the kernel.
    pub writer_system_cpu_seconds_per_second: Option<Interval>,
    /// What of it was spent by the thread that emits: making records in time, and handing them over.
    pub emitting_cpu_seconds_per_second: Option<Interval>,
    /// How often its threads let go of the processor.
    pub writer_context_switches_per_second: Option<Interval>,
    /// How often memory was not where it looked.
    pub writer_page_faults_per_second: Option<Interval>,
    /// Of all reading processes.
    pub reader_cpu_seconds_per_second: Option<Interval>,
    /// Of the broker, where its process is known.
    pub broker_cpu_seconds_per_second: Option<Interval>,
    /// Bytes of TCP payload of the writing process, both ways. Like the other counts on the wire, of a
    /// case that kept up with a rate it is what a record of the whole run takes, times the rate: the
    /// seconds that are measured cut chunks in two, so what is in them depends on how many they are.
    pub wire_bytes_per_second: Option<Interval>,
    /// Those that it sent.
    pub wire_sent_bytes_per_second: Option<Interval>,
    /// Those that it received.
    pub wire_received_bytes_per_second: Option<Interval>,
    /// TCP segments, both ways.
    pub wire_segments_per_second: Option<Interval>,
    /// Messages that the broker confirmed; of a case that kept up with a rate those for each confirmed
    /// record, times the rate.
    pub messages_per_second: Option<Interval>,
    /// From the time at which a record was to be emitted to its being decoded: half of them, ...
    pub latency_ms_p50: Option<Interval>,
    /// ... 99 % ...
    pub latency_ms_p99: Option<Interval>,
    /// ... and 99.9 % of them took no longer; nothing where there is no rate.
    pub latency_ms_p999: Option<Interval>,
    /// Records that were emitted and had not arrived, between two seconds.
    pub lag_records: Option<Interval>,
    /// The writing process's resident memory, the most of each run.
    pub writer_memory_bytes: Option<Interval>,
    /// Why chunks were closed, in all runs.
    pub closed_by: ClosedBy,
    /// Records that were due; nothing: as many as are taken.
    pub offered_rate: Option<f64>,
    /// Records that were confirmed.
    pub achieved_rate: Option<f64>,
    /// Whether fewer were confirmed than were due; never where nothing is, without a rate.
    pub saturated: bool,
    /// Seconds in which the load waited for the readers, where the medium forgets what they do not
    /// read in time; nothing where it never waits.
    pub held_back_seconds_per_second: Option<Interval>,
    /// Records that did not arrive, or arrived altered, in all runs; by number and by hash.
    pub lost: u64,
    /// Writer CPU by that of the pipelined way under the same load; without a rate, where each takes
    /// as many records as it can, this and the other ratios are of what a record costs.
    pub writer_cpu_by_pipelined: Option<f64>,
    /// Writer CPU by that of the awaiting way under the same load.
    pub writer_cpu_by_awaiting: Option<f64>,
    /// The same, without what making the records in time costs on both sides.
    pub writer_cpu_beyond_load_by_pipelined: Option<f64>,
    /// Bytes on the wire by those of the pipelined way under the same load.
    pub wire_bytes_by_pipelined: Option<f64>,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

/// Fewer than so much of what was due is too few.
const ACHIEVED: f64 = 0.99;

impl Cell {
    pub(super) fn new(case: &Case, samples: &[Sample], failure: Option<String>) -> Self {
        // Each run multiplied by something of its own.
        let scaled = |of: &dyn Fn(&SecondSample) -> f64, by: &dyn Fn(&Sample) -> f64| {
            let values: Vec<f64> = match samples {
                [only] => {
                    let by = by(only);
                    only.seconds.iter().map(|second| of(second) * by).collect()
                }
                many => many.iter().map(|it| it.mean(of) * by(it)).collect(),
            };
            Interval::of(&values)
        };
        let mean = |of: &dyn Fn(&SecondSample) -> f64| scaled(of, &|_| 1.0);
        let split = |system: bool| {
            let times = samples.iter().map(|sample| {
                let share = if system {
                    1.0 - sample.user_share
                } else {
                    sample.user_share
                };
                share * sample.mean(|second| second.writer_cpu)
            });
            Interval::of(&times.collect::<Vec<_>>())
        };
        let run = |of: &dyn Fn(&Sample) -> f64| {
            let values: Vec<f64> = samples.iter().map(of).collect();
            Interval::of(&values)
        };
        let is_measured = |interval: Option<Interval>| interval.filter(|_| case.is_read());
        let latency = |of: &dyn Fn(&Sample) -> f64| is_measured(case.rate.and_then(|_| run(of)));
        let achieved = mean(&|second| second.confirmed).map(|rate| rate.mean);
        let seconds = run(&Sample::duration).map_or(0.0, |time| time.mean);
        let saturated = is_saturated(case, achieved, seconds);
        // What is due is what is sent, sooner or later.
        let due = case.rate.filter(|_| !saturated && !pacing(case));
        let wire = |of: fn(Wire) -> u64| {
            scaled(
                &|second| to_f64(of(second.wire)) / second.seconds.max(1e-9),
                &|sample| due.map_or(1.0, |rate| sample.wire_by_record(rate, of)),
            )
        };
        let all = |has: &dyn Fn(&SecondSample) -> bool| {
            let mut seconds = samples.iter().flat_map(|sample| &sample.seconds);
            seconds.all(has)
        };
        Self {
            case: case.clone(),
            repetitions: samples.len(),
            seconds,
            writer_cpu_seconds_per_second: mean(&|second| second.writer_cpu),
            writer_cpu_beyond_load_seconds_per_second: None,
            writer_user_cpu_seconds_per_second: split(false),
            writer_system_cpu_seconds_per_second: split(true),
            emitting_cpu_seconds_per_second: mean(&|second| second.emitting_cpu),
            writer_context_switches_per_second: mean(&|second| second.context_switches),
            writer_page_faults_per_second: mean(&|second| second.page_faults),
            reader_cpu_seconds_per_second: is_measured(mean(&|second| second.reader_cpu)),
            broker_cpu_seconds_per_second: mean(&|second| second.broker_cpu.unwrap_or(0.0))
                .filter(|_| all(&|second| second.broker_cpu.is_some())),
            wire_bytes_per_second: wire(|it| it.sent_bytes.saturating_add(it.received_bytes)),
            wire_sent_bytes_per_second: wire(|it| it.sent_bytes),
            wire_received_bytes_per_second: wire(|it| it.received_bytes),
            wire_segments_per_second: wire(|it| {
                it.sent_segments.saturating_add(it.received_segments)
            }),
            messages_per_second: scaled(&|second| second.messages, &|sample| {
                due.map_or(1.0, |rate| sample.messages_by_record(rate))
            }),
            latency_ms_p50: latency(&|sample| sample.latency.p50_ms),
            latency_ms_p99: latency(&|sample| sample.latency.p99_ms),
            latency_ms_p999: latency(&|sample| sample.latency.p999_ms),
            lag_records: is_measured(mean(&|second| second.lag_records)),
            writer_memory_bytes: run(&Sample::largest_footprint),
            closed_by: samples
                .iter()
                .fold(ClosedBy::default(), |sum, one| sum.plus(one.closed_by)),
            offered_rate: case.rate,
            achieved_rate: achieved,
            saturated,
            held_back_seconds_per_second: mean(&|second| second.held_back.unwrap_or(0.0))
                .filter(|_| all(&|second| second.held_back.is_some())),
            lost: samples.iter().map(Sample::lost).sum(),
            writer_cpu_by_pipelined: None,
            writer_cpu_by_awaiting: None,
            writer_cpu_beyond_load_by_pipelined: None,
            wire_bytes_by_pipelined: None,
            failure,
        }
    }

    /// Makes the intervals of all CPU times so many times as wide.
    pub(super) fn widen_cpu(&mut self, times: f64) {
        for cpu in [
            &mut self.writer_cpu_seconds_per_second,
            &mut self.writer_user_cpu_seconds_per_second,
            &mut self.writer_system_cpu_seconds_per_second,
            &mut self.emitting_cpu_seconds_per_second,
            &mut self.reader_cpu_seconds_per_second,
            &mut self.broker_cpu_seconds_per_second,
        ] {
            *cpu = cpu.map(|interval| interval.widened(times));
        }
    }

    /// For which share of the time the load waited for the readers.
    pub(super) fn held_back(&self) -> f64 {
        let held = self.held_back_seconds_per_second;
        held.map_or(0.0, |held| held.mean)
    }

    /// As it is compared with that of another way: of a second where so many records are due, else of
    /// a record.
    fn comparable(&self, per_second: Option<f64>) -> Option<f64> {
        match self.case.rate {
            Some(_) => per_second,
            None => Some(per_second? / self.achieved_rate.filter(|rate| *rate > 0.0)?),
        }
    }

    /// The mean of writer CPU, if it was measured.
    pub fn cpu(&self) -> Option<f64> {
        self.writer_cpu_seconds_per_second.map(|cpu| cpu.mean)
    }

    /// The mean of bytes on the wire, if it was measured.
    pub fn bytes(&self) -> Option<f64> {
        self.wire_bytes_per_second.map(|bytes| bytes.mean)
    }
}

/// A chunk is confirmed as a whole, and all that the collector finds at a look at the same time:
/// what is under way at either end is not missing.
fn is_saturated(case: &Case, achieved: Option<f64>, seconds: f64) -> bool {
    let (Some(offered), Some(achieved)) = (case.rate, achieved) else {
        return false;
    };
    let under_way = match (case.chunk_records, case.wait_time_ms) {
        (Some(chunk_records), Some(wait_ms)) => {
            let records = records_of(chunk_records, wait_ms, offered);
            records.max(offered / looks_of(records, wait_ms, offered))
        }
        (None, Some(bound_ms)) => offered * bound_ms / 1e3,
        _ => 1.0,
    };
    achieved < offered * ACHIEVED - under_way / seconds.max(1.0)
}

fn pacing(case: &Case) -> bool {
    case.way == Way::Pacing
}

/// Compares every cell with the rivals under the same load, where these kept up.
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
        let (pipelined, awaiting) = (beside(Way::Pipelined), beside(Way::Awaiting));
        let cpu = |cell: &Cell| cell.comparable(cell.cpu());
        let bytes = |cell: &Cell| cell.comparable(cell.bytes());
        cell.writer_cpu_by_pipelined = ratio(cpu(cell), pipelined.and_then(cpu));
        cell.writer_cpu_by_awaiting = ratio(cpu(cell), awaiting.and_then(cpu));
        cell.wire_bytes_by_pipelined = ratio(bytes(cell), pipelined.and_then(bytes));
        let load = before
            .iter()
            .find(|other| pacing(&other.case) && other.case.rate == cell.case.rate)
            .and_then(Cell::cpu);
        let beyond = |cpu: Option<f64>| Some((cpu? - load?).max(0.0));
        cell.writer_cpu_beyond_load_by_pipelined =
            ratio(beyond(cell.cpu()), beyond(pipelined.and_then(Cell::cpu)));
        cell.writer_cpu_beyond_load_seconds_per_second = cell
            .writer_cpu_seconds_per_second
            .zip(load)
            .filter(|_| !pacing(&cell.case))
            .map(|(cpu, load)| cpu.less(load));
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::Latency;
    use super::*;

    pub(super) fn sample(cpu: f64, confirmed: f64) -> Sample {
        let second = SecondSample {
            seconds: 1.0,
            writer_cpu: cpu,
            confirmed,
            messages: confirmed / 10.0,
            wire: Wire {
                sent_bytes: 1_000,
                received_bytes: 100,
                ..Wire::default()
            },
            ..SecondSample::default()
        };
        Sample {
            seconds: vec![second; 2],
            user_share: 0.75,
            latency: Latency {
                p50_ms: 1.0,
                p99_ms: 2.0,
                ..Latency::default()
            },
            emitted: 100,
            arrived: 100,
            unaltered: true,
            ..Sample::default()
        }
    }

    fn case(way: Way, chunk_records: Option<u32>) -> Case {
        Case {
            way,
            chunk_records,
            rate: Some(1_000.0),
            compression: None,
            string_table: chunk_records.map(|_| true),
            wait_time_ms: Some(500.0),
            consumers: 1,
        }
    }

    #[test]
    fn a_cell_says_what_its_runs_say() {
        let samples = [sample(0.1, 1_000.0), sample(0.3, 1_000.0)];
        let cell = Cell::new(&case(Way::Baler, Some(10)), &samples, None);
        let cpu = cell.writer_cpu_seconds_per_second.unwrap();
        assert!((cpu.mean - 0.2).abs() < 1e-9 && cpu.low < 0.0 && cpu.high > 0.4);
        let user = cell.writer_user_cpu_seconds_per_second.unwrap();
        assert!((user.mean - 0.15).abs() < 1e-9);
        assert_eq!(cell.bytes(), Some(1_100.0));
        assert_eq!((cell.saturated, cell.lost), (false, 0));
        assert_eq!(cell.broker_cpu_seconds_per_second, None);
        assert_eq!(cell.latency_ms_p99.unwrap().mean, 2.0);
    }

    #[test]
    fn what_is_confirmed_late_is_no_saturation_and_what_is_not_is() {
        let cell = |confirmed, records| {
            let samples = [sample(0.1, confirmed)];
            Cell::new(&case(Way::Baler, Some(records)), &samples, None).saturated
        };
        assert!(!cell(995.0, 1));
        assert!(cell(900.0, 1));
        // So many come between two looks.
        assert!(!cell(965.0, 1));
        // Half a chunk of 256 records was under way.
        assert!(!cell(900.0, 256));
        assert!(cell(500.0, 256));
    }

    #[test]
    fn cells_are_compared_with_rivals_that_kept_up() {
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
        let net = cells[2].writer_cpu_beyond_load_seconds_per_second.unwrap();
        assert!((net.mean - 0.06).abs() < 1e-9);
        assert_eq!(cells[2].writer_cpu_by_pipelined, Some(0.25));
        assert_eq!(cells[2].wire_bytes_by_pipelined, Some(1.0));
        assert_eq!(cells[2].writer_cpu_by_awaiting, None);
    }

    #[test]
    fn without_a_rate_the_costs_of_a_record_are_compared_and_waiting_is_told() {
        let cell = |way, cpu, confirmed, held_back| {
            let mut case = case(way, (way == Way::Baler).then_some(10));
            case.rate = None;
            let mut sample = sample(cpu, confirmed);
            for second in &mut sample.seconds {
                second.held_back = held_back;
            }
            Cell::new(&case, &[sample], None)
        };
        let mut cells = [
            cell(Way::Pipelined, 1.0, 1_000.0, None),
            cell(Way::Baler, 0.5, 10_000.0, Some(0.25)),
        ];
        compare(&mut cells);
        let (cpu, bytes) = (
            cells[1].writer_cpu_by_pipelined.unwrap(),
            cells[1].wire_bytes_by_pipelined.unwrap(),
        );
        assert!((cpu - 0.05).abs() < 1e-9 && (bytes - 0.1).abs() < 1e-9);
        assert!(cells.iter().all(|cell| !cell.saturated));
        assert_eq!(cells[0].held_back_seconds_per_second, None);
        assert_eq!((cells[0].held_back(), cells[1].held_back()), (0.0, 0.25));
    }
}
