use super::*;

const LOOK: Duration = Duration::from_millis(10);

fn after(rate: &mut Rate, at: &mut (u64, Instant), time: Duration, records: u64) -> f64 {
    *at = (at.0 + records, at.1 + time);
    rate.observe(at.0, at.1, LOOK / 2, 1_000);
    rate.per_second()
}

#[test]
fn rate_is_followed_by_half_with_each_look() {
    let mut at = (0, Instant::now());
    let mut rate = Rate::new(at.1);
    for _ in 0..20 {
        after(&mut rate, &mut at, LOOK, 1);
    }
    assert!((rate.per_second() - 100.0).abs() < 1e-3);
    let up = after(&mut rate, &mut at, LOOK, 10_000);
    assert!((up - 500_050.0).abs() < 1.0, "{up}");
    let down = after(&mut rate, &mut at, LOOK, 1);
    assert!((down - 250_075.0).abs() < 1.0, "{down}");
    // After a second's silence little is left of it.
    let silent = after(&mut rate, &mut at, Duration::from_secs(1), 0);
    assert!(silent < down / 20.0, "{silent}");
}

#[test]
fn few_records_in_a_short_time_say_nothing() {
    let mut at = (0, Instant::now());
    let mut rate = Rate::new(at.1);
    assert!(after(&mut rate, &mut at, Duration::from_micros(10), 3) < 1e-9);
    // They count with those that come later.
    let both = after(&mut rate, &mut at, Duration::from_micros(9_990), 7);
    assert!((both - 500.0).abs() < 1e-6, "{both}");
    let many = after(&mut rate, &mut at, Duration::from_millis(1), 1_000);
    assert!((many - 500_250.0).abs() < 1.0, "{many}");
}
