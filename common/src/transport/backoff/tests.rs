use super::*;

#[test]
fn pauses_are_drawn_from_a_doubling_range_up_to_the_maximum() {
    let policy = RetryPolicy {
        min_delay: Duration::from_millis(10),
        max_delay: Duration::from_millis(75),
        ..RetryPolicy::default()
    };
    for (failures, most) in [(0, 10), (1, 20), (2, 40), (3, 75), (4, 75), (u32::MAX, 75)] {
        let most = Duration::from_millis(most);
        let pauses: Vec<_> = (0..200).map(|draw| policy.delay(failures, draw)).collect();
        assert!(pauses.iter().all(|pause| *pause <= most), "{pauses:?}");
        let mean = pauses.iter().sum::<Duration>() / 200;
        assert!(
            mean > most * 4 / 10 && mean < most * 6 / 10,
            "{mean:?} of {most:?}"
        );
    }
}

#[test]
fn same_seed_draws_the_same_pauses_and_another_seed_others() {
    let pauses = |seed| {
        let policy = RetryPolicy {
            seed,
            ..RetryPolicy::default()
        };
        (0..20)
            .map(|draw| policy.delay(3, draw))
            .collect::<Vec<_>>()
    };
    assert_eq!(pauses(1), pauses(1));
    assert_ne!(pauses(1), pauses(2));
}

#[test]
fn pauses_grow_with_the_failures_and_begin_anew_after_a_success() {
    let policy = RetryPolicy::default();
    let mut backoff = Backoff::default();
    assert!(!backoff.is_failing());
    let grown: Vec<_> = (0..5).map(|_| backoff.pause(&policy)).collect();
    let expected = (0..5).map(|failures| policy.delay(failures, u64::from(failures) + 1));
    assert_eq!(grown, expected.collect::<Vec<_>>());
    assert!(backoff.is_failing());
    backoff.reset();
    assert!(!backoff.is_failing());
    assert_eq!(backoff.pause_after(3, &policy), policy.delay(3, 6));
    assert_eq!(backoff.pause(&policy), policy.delay(0, 7));
}
