use proptest::prelude::*;

use super::LogLinear;

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
