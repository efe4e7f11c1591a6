use proptest::prelude::*;

use super::{LogLinear, *};

fn of(durations: &[u64]) -> AggregatedDurationRecord {
    let mut sorted: Vec<_> = durations
        .iter()
        .map(|it| LogLinear::bucket_of(*it))
        .collect();
    sorted.sort_unstable();
    let mut buckets = sorted.clone();
    buckets.dedup();
    let count = |bucket: &u32| sorted.iter().filter(|it| *it == bucket).count();
    AggregatedDurationRecord {
        operation_signature: "a.b()".into(),
        hostname: "host".into(),
        since: 5,
        until: 9,
        count: durations.len().try_into().unwrap(),
        sum: durations.iter().sum(),
        min: durations.iter().copied().min().unwrap_or(u64::MAX),
        max: durations.iter().copied().max().unwrap_or(0),
        bucket_counts: buckets
            .iter()
            .map(|it| count(it).try_into().unwrap())
            .collect(),
        buckets,
    }
}

proptest! {
    #[test]
    fn parts_add_up_to_the_whole(
        left in prop::collection::vec(0_u64..1 << 40, 0..50),
        right in prop::collection::vec(0_u64..1 << 40, 0..50),
    ) {
        let mut merged = of(&left);
        merged.merge(&of(&right)).unwrap();
        let whole: Vec<_> = left.into_iter().chain(right).collect();
        prop_assert_eq!(&merged, &of(&whole));
        prop_assert_eq!(merged.bucketed(), merged.count);
    }
}

#[test]
fn quantiles_are_exact_to_a_bucket() {
    let record = of(&(1..=1_000).collect::<Vec<_>>());
    assert_eq!(record.quantile(0.0), Some(1));
    assert_eq!(
        record.quantile(0.5),
        Some(LogLinear::highest(LogLinear::bucket_of(500)))
    );
    assert_eq!(record.quantile(1.0), Some(1_000));
    assert_eq!(of(&[]).quantile(0.5), None);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut record = of(&[3]);
    let mut other = of(&[4]);
    other.operation_signature.push('!');
    assert_eq!(record.merge(&other), Err(AggregateError::OtherOperation));
    let mut other = of(&[4]);
    other.bucket_counts.clear();
    assert_eq!(record.merge(&other), Err(AggregateError::Buckets));
    assert_eq!(record, of(&[3]));
}

#[test]
fn buckets_follow_each_other_without_gap_or_overlap() {
    let last = u32::try_from(LogLinear::BUCKETS).unwrap() - 1;
    assert_eq!(LogLinear::lowest(0), 0);
    for bucket in 0..last {
        assert_eq!(
            LogLinear::highest(bucket) + 1,
            LogLinear::lowest(bucket + 1)
        );
        assert_eq!(LogLinear::bucket_of(LogLinear::lowest(bucket)), bucket);
        assert_eq!(LogLinear::bucket_of(LogLinear::highest(bucket)), bucket);
    }
    assert_eq!(LogLinear::highest(last), u64::MAX);
    assert_eq!(LogLinear::bucket_of(u64::MAX), last);
    assert_eq!(LogLinear::highest(u32::MAX), u64::MAX);
}

#[test]
fn numbers_stay_as_they_are() {
    let numbers = [0, 15, 16, 31, 32, 33, 34, 1_000, 1 << 40].map(LogLinear::bucket_of);
    assert_eq!(numbers, [0, 15, 16, 31, 32, 32, 33, 111, 592]);
}

proptest! {
    #[test]
    fn a_bucket_is_narrow(value in any::<u64>()) {
        let bucket = LogLinear::bucket_of(value);
        let (low, high) = (LogLinear::lowest(bucket), LogLinear::highest(bucket));
        prop_assert!(low <= value && value <= high);
        prop_assert!(high - low <= value / 16);
    }
}
