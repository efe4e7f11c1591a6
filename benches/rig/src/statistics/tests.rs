use super::*;

#[test]
fn quantiles_lie_between_their_neighbours() {
    let values = Distribution::of([4.0, 1.0, f64::NAN, 3.0, 2.0]);
    for (share, expected) in [
        (0.0, 1.0),
        (0.25, 1.75),
        (0.5, 2.5),
        (0.75, 3.25),
        (1.0, 4.0),
    ] {
        assert_eq!(values.quantile(share), Some(expected));
    }
    assert_eq!(Distribution::of([7.0]).quantile(0.999), Some(7.0));
    assert_eq!(Distribution::default().quantile(0.5), None);
}

#[test]
fn the_interval_of_a_mean_is_that_of_student() {
    let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    // 2.776 * 1.5811 / sqrt(5)
    assert!((interval.mean - 3.0).abs() < 1e-9);
    assert!((interval.margin() - 1.963).abs() < 1e-3);
    assert!((student(6.0) - 2.447).abs() < 0.0025 && (student(30.0) - 2.042).abs() < 0.002);
    assert_eq!(Interval::of(&[3.0]).unwrap().margin(), 0.0);
    assert_eq!(Interval::of(&[]), None);
    let ratio = Interval::of_ratio(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!((ratio.mean, ratio.margin()), (2.0, 0.0));
    // The rests are -0.5, 0 and 0.5: 4.303 * 0.5 / sqrt(3) / 2.
    let ratio = Interval::of_ratio(&[1.5, 4.0, 6.5], &[1.0, 2.0, 3.0]).unwrap();
    assert!((ratio.margin() - 0.621).abs() < 1e-3, "{ratio:?}");
    assert_eq!(Interval::of_ratio(&[1.0], &[0.0]), None);
}
