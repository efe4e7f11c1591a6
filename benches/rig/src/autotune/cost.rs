//! What a run cost in a phase, and auto by the best fixed size.

use serde::Serialize;

use super::row::Sample;
use super::writing::{Setting, Written};
use crate::statistics::{Summary, to_f64};

/// Median, least and most of the rounds.
pub(super) type Three = (f64, f64, f64);

/// What is counted of the CPU time of the writing process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cpu {
    /// All of it.
    Whole,
    /// Without what it costs the load to wait for the next record: its timer, and its being put to
    /// sleep and woken, up to a thousand times a second.
    Own,
    /// Without the thread that emits.
    Behind,
}

impl Cpu {
    /// In nanoseconds a record.
    pub(super) fn of(self, written: &Written) -> f64 {
        let others = match self {
            Self::Whole => 0,
            Self::Own => written.waiting_ns,
            Self::Behind => written.emitting_ns,
        };
        to_f64(written.cpu_ns.saturating_sub(others)) / to_f64(written.records).max(1.0)
    }
}

/// Auto by another setting, or by the best of them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct AutoBy {
    /// Without what the load's waiting costs.
    pub(super) own: Three,
    /// The whole process.
    pub(super) whole: Three,
}

pub(super) fn three(values: impl Iterator<Item = f64>) -> Option<Three> {
    let all = Summary::of(values)?;
    Some((all.median, all.min, all.max))
}

/// Auto by this setting in the same rounds.
pub(super) fn auto_by(of_phase: &[&Sample], setting: Setting) -> Option<AutoBy> {
    both(of_phase, |_, _| Some(setting))
}

/// Auto by the best of these settings: for each round the one that was cheapest in the *other* rounds.
///
/// That which was cheapest in all of them is the more likely one that was lucky, the more there are;
/// large ones do the same thing at low rates.
pub(super) fn auto_by_best(of_phase: &[&Sample], among: &[Setting]) -> Option<AutoBy> {
    both(of_phase, |cpu, round| {
        cheapest(of_phase, among, cpu, round).or_else(|| cheapest(of_phase, among, cpu, None))
    })
}

/// The cheapest by its median, but for a round.
pub(super) fn cheapest(
    of_phase: &[&Sample],
    among: &[Setting],
    cpu: Cpu,
    without: Option<usize>,
) -> Option<Setting> {
    let costs = among.iter().filter_map(|setting| {
        let of = of_phase
            .iter()
            .filter(|it| it.setting == *setting && Some(it.round) != without);
        Some((*setting, three(of.map(|it| cpu.of(&it.written)))?.0))
    });
    let cheapest = costs.min_by(|(_, a), (_, b)| a.total_cmp(b));
    cheapest.map(|(setting, _)| setting)
}

/// Auto by what is chosen for each round.
fn both(
    of_phase: &[&Sample],
    chosen: impl Fn(Cpu, Option<usize>) -> Option<Setting>,
) -> Option<AutoBy> {
    let by = |cpu: Cpu| {
        let autos = of_phase.iter().filter(|it| it.setting == Setting::Auto);
        three(autos.filter_map(|auto| {
            let setting = chosen(cpu, Some(auto.round))?;
            let other = of_phase
                .iter()
                .find(|it| it.setting == setting && it.round == auto.round)?;
            Some(cpu.of(&auto.written) / cpu.of(&other.written))
        }))
    };
    Some(AutoBy {
        own: by(Cpu::Own)?,
        whole: by(Cpu::Whole)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::reading::Found;
    use super::*;

    fn sample(setting: Setting, round: usize, cpu_ns: u64, waiting_ns: u64) -> Sample {
        Sample {
            round,
            phase: 0,
            setting,
            written: Written {
                records: 1_000,
                cpu_ns,
                emitting_ns: waiting_ns * 2,
                waiting_ns,
                ..Written::default()
            },
            found: Found::default(),
        }
    }

    #[test]
    fn what_the_load_waits_is_not_the_collectors() {
        let written = sample(Setting::Auto, 0, 100_000, 30_000).written;
        let of = [Cpu::Whole, Cpu::Own, Cpu::Behind].map(|cpu| cpu.of(&written));
        for (found, expected) in of.into_iter().zip([100.0, 70.0, 40.0]) {
            assert!((found - expected).abs() < 1e-9, "{of:?}");
        }
        let samples = [
            sample(Setting::Auto, 0, 100_000, 30_000),
            sample(Setting::Fixed(1), 0, 200_000, 60_000),
        ];
        let by = auto_by(&samples.each_ref(), Setting::Fixed(1)).unwrap();
        assert!((by.whole.0 - 0.5).abs() < 1e-9);
        let pair = [(0, 50_000), (1, 80_000)].map(|(round, waiting)| {
            [
                sample(Setting::Auto, round, 100_000, waiting),
                sample(Setting::Fixed(1), round, 60_000, 10_000),
            ]
        });
        let by = auto_by(
            &pair.as_flattened().iter().collect::<Vec<_>>(),
            Setting::Fixed(1),
        );
        let by = by.unwrap();
        assert!(
            (by.own.1 - 0.4).abs() < 1e-9 && (by.own.2 - 1.0).abs() < 1e-9,
            "{by:?}"
        );
    }

    #[test]
    fn luck_in_a_round_makes_no_setting_the_best_in_that_round() {
        // All are the same, but each of the fixed ones was lucky once.
        let settings = [1, 2, 3].map(Setting::Fixed);
        let mut samples = Vec::new();
        for round in 0..3 {
            samples.push(sample(Setting::Auto, round, 100_000, 0));
            for (number, setting) in settings.into_iter().enumerate() {
                let cpu = if number == round { 50_000 } else { 100_000 };
                samples.push(sample(setting, round, cpu, 0));
            }
        }
        let samples: Vec<&Sample> = samples.iter().collect();
        let by = auto_by_best(&samples, &settings).unwrap();
        for ratio in [by.own.0, by.own.1, by.own.2] {
            assert!((ratio - 1.0).abs() < 1e-9, "{by:?}");
        }
        // With one round there are no others.
        let one: Vec<&Sample> = samples.iter().filter(|it| it.round == 0).copied().collect();
        let by = auto_by_best(&one, &settings).unwrap();
        assert!((by.own.0 - 2.0).abs() < 1e-9, "{by:?}");
        assert!(auto_by_best(&samples, &[]).is_none());
    }
}
