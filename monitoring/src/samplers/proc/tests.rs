use proptest::prelude::*;

use super::*;

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    let error = root.read("proc/stat").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("proc/stat"), "{error}");
    assert!(!root.has("proc"));
}

#[test]
fn numbers_are_all_there_or_none() {
    assert_eq!(numbers("1  2 3 x"), Some([1, 2, 3]));
    assert_eq!(numbers::<3>("1 2"), None);
    assert_eq!(numbers::<1>("-1"), None);
    assert_eq!(numbers("18446744073709551615"), Some([u64::MAX]));
    assert_eq!(numbers::<1>("18446744073709551616"), None);
}

#[test]
fn counters_grow_wrap_or_are_reset() {
    let end = u64::from(u32::MAX);
    assert_eq!(growth(5, 12), Some(7));
    assert_eq!(growth(end, 0), Some(1));
    assert_eq!(growth(end - 9, 90), Some(100));
    // A reset, of a small counter and of one beyond 32 bits.
    assert_eq!(growth(1_000, 3), None);
    assert_eq!(growth(end + 2, 3), None);
    assert_eq!(growth(u64::MAX, 0), None);
    assert_eq!(growths(&[1, 5], &[2, 4]), None);
    assert_eq!(growths(&[1, 5], &[2, 9]), Some([1, 4]));
}

#[test]
fn times_below_a_second_count_as_what_they_are() {
    assert!((per_second(5, Duration::from_millis(100)) - 50.0).abs() < 1e-9);
    let at = Instant::now();
    let reading = |millis, counter| Reading {
        at: at + Duration::from_millis(millis),
        counters: [counter],
    };
    let hundred = Duration::from_millis(100);
    assert_eq!(reading(100, 7).since(&reading(0, 2)), Some(([5], hundred)));
    // No time has passed, or it went back.
    assert_eq!(reading(0, 7).since(&reading(0, 2)), None);
    assert_eq!(reading(0, 7).since(&reading(100, 2)), None);
}

#[test]
fn what_comes_back_begins_anew() {
    let start = Instant::now();
    let mut meters = Meters::default();
    let mut step = |second, now: &[(&str, u64)]| {
        let now = now
            .iter()
            .map(|(name, counter)| ((*name).to_owned(), [*counter]));
        let at = start + Duration::from_secs(second);
        let all = meters.step(at, now.collect()).into_iter();
        all.map(|(name, [counted], time)| (name, counted, time.as_secs()))
            .collect::<Vec<_>>()
    };
    let counted = |name: &str, counted, seconds| (name.to_owned(), counted, seconds);
    assert_eq!(step(0, &[("a", 1), ("b", 1)]), []);
    assert_eq!(step(1, &[("b", 3), ("c", 9)]), [counted("b", 2, 1)]);
    assert_eq!(step(3, &[("a", 9), ("b", 4)]), [counted("b", 1, 2)]);
    assert_eq!(step(4, &[("a", 8), ("b", 4)]), [counted("b", 0, 1)]);
    assert_eq!(step(5, &[("a", 9)]), [counted("a", 1, 1)]);
}

proptest! {
    #[test]
    fn growth_is_never_more_than_what_can_be(before: u64, now: u64) {
        match growth(before, now) {
            Some(growth) if now >= before => prop_assert_eq!(growth, now - before),
            Some(growth) => prop_assert!(growth <= WRAPPED_AT_MOST),
            None => prop_assert!(now < before),
        }
    }
}
