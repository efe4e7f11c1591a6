use super::*;

/// The article's calls, as the milliseconds that each takes.
const MIXED: [u64; 9] = [100, 1, 100, 500, 1, 100, 1, 50, 50];

const MS: u64 = 1_000_000;

fn name(milliseconds: u64) -> String {
    format!("void Demo.method{milliseconds}ms()")
}

/// Samples of a thread that makes these calls one after the other, the first one at 0, at these
/// times in milliseconds.
fn sampled(calls: &[u64], at: impl IntoIterator<Item = u64>) -> Vec<ThreadSampleRecord> {
    let mut before = None;
    let mut samples = Vec::new();
    for (round, at) in (1..).zip(at) {
        let mut end = 0;
        let call = calls.iter().find(|call| {
            end += **call;
            at < end
        });
        samples.extend(call.map(|call| ThreadSampleRecord {
            timestamp: i64::try_from(at * MS).unwrap(),
            hostname: "host".into(),
            thread: 1,
            round,
            interval: before.map_or(10, |before| at - before) * MS,
            operation_signature: name(*call),
            callers: "void Main.main();void Demo.runCode()".into(),
            depth: 3,
        }));
        before = Some(at);
    }
    samples
}

/// Milliseconds by operation.
fn expected(times: &[(u64, u64)]) -> BTreeMap<String, u64> {
    times
        .iter()
        .map(|(call, time)| (name(*call), time * MS))
        .collect()
}

#[test]
fn the_article_s_rule_finds_its_path_and_loses_an_interval_at_each_change() {
    let samples = sampled(&MIXED, (5..1_000).step_by(10));
    let estimate = BackToBack::of(&samples);
    // The article has 488, 285 and 101 ms, and these four entries.
    let times = estimate
        .times
        .iter()
        .map(|(name, time)| ((*name).to_owned(), *time));
    assert_eq!(
        times.collect::<BTreeMap<_, _>>(),
        expected(&[(500, 490), (100, 280), (50, 90)])
    );
    let seen = [100, 500, 100, 50].map(name);
    let path = seen
        .each_ref()
        .map(|it| (Some("void Demo.runCode()"), it.as_str()));
    assert_eq!(estimate.path, path);
}

#[test]
fn the_better_estimate_gives_all_time_to_an_operation() {
    let samples = sampled(&MIXED, (5..1_000).step_by(10));
    let estimate = Midpoint::of(&samples);
    let times = estimate.times.iter();
    let times = times.map(|(name, time)| ((*name).to_owned(), time.nanoseconds));
    // Really 500, 300 and 100 ms, and three times 1 ms.
    assert_eq!(
        times.collect::<BTreeMap<_, _>>(),
        expected(&[(500, 500), (100, 300), (50, 100)])
    );
    for time in estimate.times.values() {
        let (low, high) = time.interval;
        assert!(
            low < time.nanoseconds && time.nanoseconds < high,
            "{time:?}"
        );
        assert_eq!(time.samples * 10 * MS, time.nanoseconds);
    }
}

#[test]
fn short_operations_have_time_on_average_if_intervals_are_jittered() {
    // A thousand runs of the article's calls. Intervals from 5 to 15 ms, in no step with them.
    let calls: Vec<_> = (0..1_000).flat_map(|_| MIXED).collect();
    let all: u64 = calls.iter().sum();
    let mut at = 0;
    let mut random = 1_u64;
    let times = std::iter::from_fn(|| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        at += 5 + (random >> 33) % 11;
        (at < all).then_some(at)
    });
    let samples = sampled(&calls, times.collect::<Vec<_>>());
    let estimate = Midpoint::of(&samples);
    for (call, truth) in [(500, 500_000), (100, 300_000), (50, 100_000), (1, 3_000)] {
        let time = estimate.times[name(call).as_str()];
        let (low, high) = time.interval;
        assert!(low <= truth * MS && truth * MS <= high, "{call}: {time:?}");
    }
    // The article's rule cannot see them at all.
    assert_eq!(BackToBack::of(&samples).times.get(name(1).as_str()), None);
}

#[test]
fn time_outside_of_operations_belongs_to_none() {
    let mut samples = sampled(&[100], (5..100).step_by(10));
    // Idle at the fourth and the fifth sample.
    samples.retain(|sample| ![4, 5].contains(&sample.round));
    let name = name(100);
    let midpoint = Midpoint::of(&samples);
    assert_eq!(midpoint.times[name.as_str()].nanoseconds, 80 * MS);
    let estimate = BackToBack::of(&samples);
    assert_eq!(estimate.times[name.as_str()], 60 * MS);
    assert_eq!(estimate.path.len(), 2);
    assert_eq!(Midpoint::of(&[]), Midpoint::default());
    assert_eq!(samples[0].caller(), Some("void Demo.runCode()"));
    samples[0].callers.clear();
    assert_eq!(samples[0].caller(), None);
}

#[test]
fn counts_of_a_part_of_the_time_are_scaled_and_have_bounds() {
    let mut record = PartTimeRecord {
        interval: 1_000,
        share: 1.0,
        calls: 100,
        // Four slices of 25 calls.
        call_squares: 2_500.0,
        looks: 4,
        seen: 2.0,
        seen_squares: 2.0,
        ..PartTimeRecord::default()
    };
    let calls = |record: &PartTimeRecord| {
        let Estimate { value, interval } = record.all_calls()?;
        Some([value, interval.0, interval.1].map(f64::round))
    };
    assert_eq!(calls(&record), Some([100.0; 3]));
    record.share = 0.25;
    // A standard deviation of 173; 100 were counted.
    assert_eq!(calls(&record), Some([400.0, 100.0, 739.0]));
    record.off = 500;
    assert_eq!(calls(&record), Some([800.0, 121.0, 1_479.0]));
    record.off = 1_000;
    assert_eq!(calls(&record), None);

    let time = record.self_time().unwrap();
    assert_eq!(time.value, 500.0);
    assert_eq!(
        [time.interval.0, time.interval.1].map(f64::round),
        [10.0, 990.0]
    );
    record.looks = 0;
    assert_eq!(record.self_time(), None);
}
