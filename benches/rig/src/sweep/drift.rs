//! Whether the machine stayed the same.
//!
//! Runs of a case are minutes apart, so that they have little in common. Where those that follow each
//! other are alike nevertheless, the machine was slower for a while than it is at other times (others
//! share it, it gets warm), and so many runs tell less than they seem to: another sweep, in other
//! minutes, would yield means that lie outside of intervals made for runs that have nothing in common.

use super::args::Plan;
use super::cell::Cell;
use super::further::FEWEST;
use super::run::Runs;
use crate::statistics::autocorrelation;

/// How much the CPU times of runs resemble those of the runs before, from 0 to 0.8: of all cases
/// together that kept up, since each has too few runs to tell.
pub(super) fn drift(plan: &Plan, found: &[Runs]) -> f64 {
    let cases = plan.cases.iter().zip(found);
    let series = cases.filter_map(|(case, runs)| {
        let keeps_up = runs.failure.is_none()
            && runs.samples.len() >= FEWEST
            && !Cell::new(case, &runs.samples, None).saturated;
        keeps_up.then(|| {
            let cpu = runs.samples.iter();
            cpu.map(|run| run.mean(|second| second.writer_cpu))
                .collect::<Vec<_>>()
        })
    });
    let series: Vec<_> = series.collect();
    autocorrelation(series.iter().map(Vec::as_slice))
}
