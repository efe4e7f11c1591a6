use super::*;

#[test]
fn points_do_not_drift_and_missed_ones_are_counted() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut schedule = Schedule::new(start, Duration::from_millis(100));
    assert_eq!(schedule.next, start);
    // A little late each time.
    for (now, next, missed) in [(7, 100, 0), (150, 200, 0), (200, 300, 0), (655, 700, 3)] {
        assert_eq!(schedule.advance(at(now)), Some(missed), "{now}");
        assert_eq!(schedule.next, at(next));
    }
    // Asked early, it still goes on by one.
    assert_eq!(schedule.advance(at(650)), Some(0));
    assert_eq!(schedule.next, at(800));
    let mut never = Schedule::new(start, Duration::MAX);
    assert_eq!(never.advance(start), None);
}
