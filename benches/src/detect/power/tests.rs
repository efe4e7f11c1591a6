use super::super::trimmed::count;
use super::*;

const SLOWDOWN: f64 = 0.02;
const NOISE: f64 = 0.05;

/// Runs of normal noise around a value. Runs differ among each other by their own noise.
fn runs(random: &mut Random, mean: f64, noise: f64, of_runs: f64) -> Vec<Vec<f64>> {
    let mut run = || {
        let mean = mean + of_runs * random.normal();
        let batches = (0..800).map(|_| mean + noise * random.normal());
        batches.collect::<Vec<f64>>()
    };
    (0..12).map(|_| run()).collect()
}

fn needed(none: Compared<'_>, slower: Compared<'_>, random: &mut Random) -> (Needed, Trials) {
    let max_batches = none.max_batches();
    let none = Trials::of(none, max_batches, random);
    let slower = Trials::of(slower, max_batches, random);
    (Needed::of(&none, &slower, random), none)
}

/// Batches of each version by the formula for two normal samples, and the efficiency of trimmed
/// means.
fn textbook(noise: f64) -> f64 {
    let z = 1.960 + 1.645;
    2.0 * (z * noise / SLOWDOWN).powi(2) / 0.88
}

#[track_caller]
fn assert_near(found: Option<usize>, expected: f64) {
    let found = count(found.expect("the slowdown is found"));
    assert!(
        (expected / 1.3..expected * 1.3).contains(&found),
        "{found} batches instead of {expected}"
    );
}

#[test]
fn separate_runs_need_the_batches_of_the_textbook() {
    let random = &mut Random::new(1);
    let [base, same] = [(); 2].map(|()| runs(random, 1.0, NOISE, 0.0));
    let slower = runs(random, 1.0 + SLOWDOWN, NOISE, 0.0);
    let (needed, none) = needed(
        Compared::Separate(&base, &same),
        Compared::Separate(&base, &slower),
        random,
    );
    assert_near(needed.batches, textbook(NOISE));
    assert!(needed.low <= needed.batches && needed.batches <= needed.high);
    let alarms = none.alarms(None).unwrap();
    assert!((0.01..0.12).contains(&alarms), "{alarms}");
}

#[test]
fn a_duet_needs_the_batches_of_the_textbook() {
    let random = &mut Random::new(2);
    let noise_of_pairs = NOISE * 2_f64.sqrt();
    let none = runs(random, 0.0, noise_of_pairs, 0.0);
    let slower = runs(random, SLOWDOWN, noise_of_pairs, 0.0);
    let (needed, _) = needed(Compared::Duet(&none), Compared::Duet(&slower), random);
    assert_near(needed.batches, textbook(NOISE));
}

#[test]
fn half_the_noise_needs_a_quarter_of_the_batches_and_interruptions_hardly_matter() {
    let random = &mut Random::new(3);
    let mut duets = |slowdown| {
        let mut runs = runs(random, slowdown, NOISE / 2_f64.sqrt(), 0.0);
        // One in fifty is interrupted for ten calls' time, in both versions alike.
        for (number, batch) in runs.iter_mut().flatten().step_by(50).enumerate() {
            *batch += [10.0, -10.0][number % 2];
        }
        runs
    };
    let (none, slower) = (duets(0.0), duets(SLOWDOWN));
    let (needed, _) = needed(Compared::Duet(&none), Compared::Duet(&slower), random);
    // Interruptions cost a tenth more, and few batches are a coarse grid.
    assert_near(needed.batches, 1.2 * textbook(NOISE) / 4.0);
}

#[test]
fn runs_that_differ_raise_false_alarms_and_hide_the_slowdown() {
    let random = &mut Random::new(4);
    let [base, same] = [(); 2].map(|()| runs(random, 1.0, NOISE, SLOWDOWN));
    let slower = runs(random, 1.0 + SLOWDOWN, NOISE, SLOWDOWN);
    let (needed, none) = needed(
        Compared::Separate(&base, &same),
        Compared::Separate(&base, &slower),
        random,
    );
    assert_eq!(needed.batches, None);
    assert!(none.alarms(None).unwrap() > 0.5);
}

#[test]
fn too_few_batches_find_nothing() {
    let random = &mut Random::new(5);
    let few = [vec![1.0; 11]];
    let (needed, none) = needed(Compared::Duet(&few), Compared::Duet(&few), random);
    assert_eq!(
        (needed.batches, needed.high, none.alarms(None)),
        (None, None, None)
    );
}

#[test]
fn numbers_of_batches_grow_by_a_fifth() {
    assert!(sizes(5).is_empty());
    assert_eq!(sizes(12), [6, 8, 10, 12]);
}
