//! Which cases are measured more often, since their runs differ too much.

use super::args::Plan;
use super::case::Way;
use super::cell::Cell;
use super::drift::drift;
use super::run::Runs;
use crate::schedule::interleaved;
use crate::statistics::widening;

/// Of fewer runs an interval says little; from so many on a disturbed one is left out of it.
pub(super) const FEWEST: usize = 8;

/// A case is measured so many times as often as planned at most.
const MOST: usize = 2;

/// The cases that need one more run each, in a random order of their own (`number` is that of the
/// first of these runs): those that keep up with their rate, and whose interval of writer CPU is wider
/// than it should be.
///
/// An interval of a mean shrinks with the root of the number of runs, so where a machine is disturbed
/// now and then, twice as many make it narrower by a third.
/// That runs end as soon as it is narrow enough makes it a little narrower than it should be, which is
/// why there are fifteen at least by default.
pub(super) fn further(plan: &Plan, found: &[Runs], number: usize) -> Vec<usize> {
    let Some(precision) = plan.precision.filter(|_| plan.repetitions >= FEWEST) else {
        return Vec::new();
    };
    // The interval that is told is wider by what runs have in common.
    let precision = precision / widening(drift(plan, found));
    let is_wide = |(index, runs): &(usize, &Runs)| {
        let Some(case) = plan.cases.get(*index) else {
            return false;
        };
        // What a case costs that does not keep up, or loses records, is no figure anyway; the load by
        // itself is small, and only taken away from others.
        let is_wanted = runs.failure.is_none()
            && runs.samples.len() < plan.repetitions.saturating_mul(MOST)
            && case.way != Way::Pacing;
        let cell = is_wanted.then(|| Cell::new(case, &runs.samples, None));
        cell.filter(|cell| !cell.saturated && cell.lost == 0)
            .and_then(|cell| cell.writer_cpu_seconds_per_second)
            .is_some_and(|cpu| cpu.relative_half_width() > precision)
    };
    let wide: Vec<usize> = found
        .iter()
        .enumerate()
        .filter(is_wide)
        .map(|(index, _)| index)
        .collect();
    let seed = plan.seed ^ u64::try_from(number).unwrap_or(0).rotate_left(32);
    let order = interleaved(wide.len(), 1, seed);
    order
        .into_iter()
        .filter_map(|place| wide.get(place).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::plan;
    use super::super::sample::{Sample, SecondSample};
    use super::*;

    /// Runs that took so much CPU time in turns.
    fn runs(cpu: [f64; 2], of: usize, confirmed: f64) -> Runs {
        let sample = |cpu| Sample {
            seconds: vec![SecondSample {
                seconds: 1.0,
                writer_cpu: cpu,
                confirmed,
                ..SecondSample::default()
            }],
            emitted: 100,
            arrived: 100,
            unaltered: true,
            ..Sample::default()
        };
        Runs {
            samples: cpu.into_iter().cycle().take(of).map(sample).collect(),
            failure: None,
        }
    }

    #[test]
    fn wide_intervals_get_more_runs_up_to_twice_as_many() {
        let plan = plan(&["--repetitions=10", "--chunk-sizes=16,32,128,1024,2048"]);
        let (wide, narrow) = ([1.0, 2.0], [1.0, 1.01]);
        let found = |of| {
            vec![
                runs(wide, of, 10_000.0),
                runs(wide, of, 10_000.0),
                runs(wide, of, 1_000.0),
                runs(narrow, of, 10_000.0),
                runs(wide, of, 10_000.0),
                Runs {
                    failure: Some("it broke".to_owned()),
                    ..runs(wide, of, 10_000.0)
                },
                runs(narrow, of, 10_000.0),
                runs(wide, of, 10_000.0),
            ]
        };
        let mut again = further(&plan, &found(10), 80);
        again.sort_unstable();
        // Not the load alone, what is saturated, is narrow, or broke.
        assert_eq!(again, [1, 4, 7]);
        assert_eq!(further(&plan, &found(19), 80).len(), 3);
        assert_eq!(further(&plan, &found(20), 80), [0; 0]);
    }

    #[test]
    fn runs_that_resemble_those_before_need_more_of_them() {
        let plan = plan(&["--repetitions=10", "--chunk-sizes=16", "--no-baseline"]);
        let turns = runs([1.0, 1.04], 10, 10_000.0);
        assert_eq!(further(&plan, &[turns.clone(), turns], 20), [0; 0]);
        // As wide in itself, but slower from some time on.
        let mut slower = runs([1.0; 2], 5, 10_000.0);
        slower.samples.extend(runs([1.04; 2], 5, 10_000.0).samples);
        let slower = [slower.clone(), slower];
        assert!(drift(&plan, &slower) > 0.5);
        assert_eq!(further(&plan, &slower, 20), [1]);
    }

    #[test]
    fn few_repetitions_stay_as_many() {
        let found = |of| vec![runs([1.0, 2.0], of, 10_000.0); 8];
        assert_eq!(further(&plan(&["--repetitions=7"]), &found(7), 56), [0; 0]);
        let off = plan(&["--repetitions=10", "--precision=off"]);
        assert_eq!(further(&off, &found(10), 80), [0; 0]);
    }
}
