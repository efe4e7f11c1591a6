use super::*;

#[test]
fn the_lowest_and_the_highest_fifth_do_not_count() {
    let values = vec![1_000.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, -1_000.0];
    let it = Trimmed::of(values);
    assert_eq!((it.mean, it.degrees), (5.5, 5.0));
    // Winsorized: 3 3 3 4 5 6 7 8 8 8, with the squares 17.5 and twice 25 around 5.5.
    assert!((it.squared_error - 42.5 / 30.0).abs() < 1e-9, "{it:?}");
}

#[test]
fn differences_within_the_noise_are_not_real() {
    let noisy = |mean: f64| -> Vec<f64> { (0..20).map(|it| mean + f64::from(it % 5)).collect() };
    assert!(!Difference::of_separate(noisy(10.0), noisy(10.5)).is_significant);
    let real = Difference::of_separate(noisy(10.0), noisy(13.0));
    assert!(
        real.is_significant && (real.size - 3.0).abs() < 1e-9,
        "{real:?}"
    );
    assert!(!Difference::of_pairs(noisy(-2.0)).is_significant);
    assert!(Difference::of_pairs(noisy(-4.0)).is_significant);
    // Without noise.
    let same = |value: f64| vec![value; 6];
    assert!(!Difference::of_separate(same(1.0), same(1.0)).is_significant);
    assert!(Difference::of_separate(same(1.0), same(2.0)).is_significant);
    assert!(!Difference::of_pairs(same(0.0)).is_significant);
}
