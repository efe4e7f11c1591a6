use baler_common::record::timing::LogLinear;

use super::*;

#[test]
fn buckets_of_a_cell_are_those_of_the_histogram_or_parts_of_them() {
    let values = (1..5_000).chain((12..61).flat_map(|bits| {
        let power = 1_u64 << bits;
        [power - 1, power, power + 1, power + power / 3]
    }));
    for value in values {
        let bucket = log_linear(bucket_of(to_f64(value)));
        // Beyond 53 bits the nearest floating-point number may be in the next bucket.
        let off = u32::try_from(bucket).unwrap() - LogLinear::bucket_of(value);
        assert!(off == 0 || (off == 1 && value > 1 << 53), "{value}");
    }
    assert_eq!(log_linear(bucket_of(7.99)), 7);
    assert_eq!(log_linear(ZERO_BUCKET), 0);
    for fraction in [0.99, 0.5, 0.13] {
        assert_eq!(log_linear(bucket_of(fraction)), 0);
    }
    let longest = u32::try_from(log_linear(bucket_of(to_f64(LONGEST)))).unwrap();
    assert_eq!(longest, LogLinear::bucket_of(LONGEST));
}
