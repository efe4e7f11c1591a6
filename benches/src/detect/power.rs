//! The number of calls from which on a slowdown is found, by resampling of measured batches.
//!
//! ```text
//! batches of runs -> trials: the test of two windows of n batches -> power of n
//!   -> the least n from which on the power is 95 %, and its interval over resampled runs
//! ```
//!
//! A trial is one comparison as a user would make it: of one run of each version. So runs that differ
//! raise the number, as they must: a slowdown counts as found if the test takes it for real, and if
//! 95 % of the trials without a slowdown differ by less.

use std::iter;

use baler_rig::workload::Random;

use super::trimmed::Difference;

/// The share of slowdowns that must be found.
const POWER: f64 = 0.95;
/// The share of trials without a slowdown that may differ by more.
const FALSE_ALARMS: f64 = 0.05;
/// The fewest batches of a trial: four of them are left after trimming.
const FEWEST: usize = 6;
/// The number of trials for each number of batches.
const TRIALS: usize = 400;
/// How often runs are resampled for the interval.
const RESAMPLES: usize = 200;

/// Batches of the compared versions, one list for each run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compared<'a> {
    /// Differences between the versions in the same process.
    Duet(&'a [Vec<f64>]),
    /// Each version in processes of its own.
    Separate(&'a [Vec<f64>], &'a [Vec<f64>]),
}

impl Compared<'_> {
    /// The maximum number of batches of a trial: half of the shortest run, so that windows of a run differ.
    pub(super) fn max_batches(self) -> usize {
        let (one, other) = match self {
            Self::Duet(runs) => (runs, runs),
            Self::Separate(base, changed) => (base, changed),
        };
        let lengths = one.iter().chain(other).map(Vec::len);
        lengths.min().map_or(0, |shortest| shortest / 2)
    }

    fn trial(self, batches: usize, random: &mut Random) -> Trial {
        let mut window = |runs: &[Vec<f64>]| {
            let number = random.below(runs.len());
            let run = runs[number].as_slice();
            let start = random.below(run.len() - batches + 1);
            (number, run[start..start + batches].to_vec())
        };
        let (base, changed, difference) = match self {
            Self::Duet(runs) => {
                let (changed, pairs) = window(runs);
                (0, changed, Difference::of_pairs(pairs))
            }
            Self::Separate(base, changed) => {
                let ((base, before), (changed, after)) = (window(base), window(changed));
                (base, changed, Difference::of_separate(before, after))
            }
        };
        Trial {
            base,
            changed,
            difference,
        }
    }

    fn runs(self) -> [usize; 2] {
        match self {
            Self::Duet(runs) => [1, runs.len()],
            Self::Separate(base, changed) => [base.len(), changed.len()],
        }
    }
}

/// A test of two windows, and their runs.
#[derive(Debug, Clone, Copy)]
struct Trial {
    base: usize,
    changed: usize,
    difference: Difference,
}

/// Trials for growing numbers of batches.
#[derive(Debug, Clone)]
pub(super) struct Trials {
    runs: [usize; 2],
    /// The number of batches, and its trials, the largest difference first.
    sizes: Vec<(usize, Vec<Trial>)>,
}

/// How often each run counts in a resampled set.
type Weights = [Vec<f64>; 2];

impl Trials {
    /// Tests with up to this number of batches.
    pub(super) fn of(compared: Compared<'_>, max_batches: usize, random: &mut Random) -> Self {
        let sizes = sizes(max_batches).into_iter().map(|size| {
            let trials = (0..TRIALS).map(|_| compared.trial(size, random));
            let mut trials: Vec<Trial> = trials.collect();
            trials.sort_by(|one, other| other.difference.size.total_cmp(&one.difference.size));
            (size, trials)
        });
        Self {
            runs: compared.runs(),
            sizes: sizes.collect(),
        }
    }

    /// The share of trials in which the test finds something, with this number of batches, or with
    /// the most if there is none.
    pub(super) fn alarms(&self, batches: Option<usize>) -> Option<f64> {
        let is_wanted = |size| batches.is_none_or(|batches| batches == size);
        let mut sizes = self.sizes.iter().rev();
        let (_, trials) = sizes.find(|(size, _)| is_wanted(*size))?;
        Some(share_beyond(trials, 0.0, &self.all_runs()))
    }

    fn all_runs(&self) -> Weights {
        self.runs.map(|runs| vec![1.0; runs])
    }

    /// Draws as many runs as there are, with replacement.
    fn resampled(&self, random: &mut Random) -> Weights {
        self.runs.map(|runs| {
            let mut weights = vec![0.0; runs];
            (0..runs).for_each(|_| weights[random.below(runs)] += 1.0);
            weights
        })
    }
}

/// From how many batches on a slowdown is found. `None` stands for more than were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needed {
    pub(super) batches: Option<usize>,
    /// The ends of its 95 % interval.
    pub(super) low: Option<usize>,
    pub(super) high: Option<usize>,
}

impl Needed {
    /// Compares trials with a slowdown and trials without one, of the same numbers of batches.
    pub(super) fn of(none: &Trials, slower: &Trials, random: &mut Random) -> Self {
        let mut resamples: Vec<Option<usize>> = (0..RESAMPLES)
            .map(|_| {
                // Both are compared with the same base runs.
                let [base, changed] = slower.resampled(random);
                let [_, unchanged] = none.resampled(random);
                found_from(none, slower, &[base.clone(), unchanged], &[base, changed])
            })
            .collect();
        resamples.sort_by_key(|size| (size.is_none(), *size));
        Self {
            batches: found_from(none, slower, &none.all_runs(), &slower.all_runs()),
            low: resamples[RESAMPLES / 40],
            high: resamples[RESAMPLES - 1 - RESAMPLES / 40],
        }
    }
}

/// The least number of batches from which on all numbers have the power.
fn found_from(
    none: &Trials,
    slower: &Trials,
    none_weights: &Weights,
    weights: &Weights,
) -> Option<usize> {
    let both = none.sizes.iter().zip(&slower.sizes).rev();
    let found = both.take_while(|((_, none), (_, slower))| {
        share_beyond(slower, threshold(none, none_weights), weights) >= POWER
    });
    found.last().map(|(_, (size, _))| *size)
}

/// The difference that only the allowed share of trials without a slowdown exceeds.
fn threshold(none: &[Trial], weights: &Weights) -> f64 {
    let all = total(none.iter(), weights);
    let mut beyond = 0.0;
    let first_allowed = none.iter().find(|trial| {
        beyond += weight(trial, weights);
        beyond > FALSE_ALARMS * all
    });
    first_allowed.map_or(0.0, |trial| trial.difference.size)
}

/// The share of trials in which the test finds a difference beyond this one.
fn share_beyond(trials: &[Trial], threshold: f64, weights: &Weights) -> f64 {
    let is_found = |it: Difference| it.is_significant && it.size > threshold;
    let found = trials.iter().filter(|trial| is_found(trial.difference));
    // Not a number if no trial has a drawn run, and then no power.
    total(found, weights) / total(trials.iter(), weights)
}

fn total<'a>(trials: impl Iterator<Item = &'a Trial>, weights: &Weights) -> f64 {
    trials.fold(0.0, |sum, trial| sum + weight(trial, weights))
}

fn weight(trial: &Trial, [base, changed]: &Weights) -> f64 {
    base[trial.base] * changed[trial.changed]
}

/// Numbers of batches up to this one, which is the last. Each is a fifth larger than the one before.
fn sizes(max: usize) -> Vec<usize> {
    let next = |size: &usize| Some(size + size.div_ceil(5));
    let sizes = iter::successors(Some(FEWEST), next).take_while(|size| *size < max);
    sizes.chain((max >= FEWEST).then_some(max)).collect()
}

#[cfg(test)]
mod tests;
