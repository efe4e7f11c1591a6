use super::*;

fn new_schedule(start: Instant, period: Duration, is_jittered: bool) -> Schedule {
    let sampler = Sampler::Load;
    let task = Task {
        sampler,
        period,
        is_jittered,
    };
    Schedule::new(start, &task)
}

#[test]
fn points_do_not_drift_and_missed_ones_are_counted() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut schedule = new_schedule(start, Duration::from_millis(100), false);
    assert_eq!(schedule.due, start);
    // A little late each time.
    for (now, next, missed) in [(7, 100, 0), (150, 200, 0), (200, 300, 0), (655, 700, 3)] {
        assert_eq!(schedule.advance(at(now)), Some(missed), "{now}");
        assert_eq!(schedule.due, at(next));
    }
    // Asked early, it still goes on by one.
    assert_eq!(schedule.advance(at(650)), Some(0));
    assert_eq!(schedule.due, at(800));
    let mut never = new_schedule(start, Duration::MAX, false);
    assert_eq!(never.advance(start), None);
}

#[test]
fn periods_become_longer_and_shorter_without_missed_points() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut schedule = new_schedule(start, Duration::from_millis(100), false);
    for (now, stretch, next) in [
        (1, 1, 100),
        (110, 8, 910),
        (915, 8, 1_710),
        (1_720, 1, 1_820),
    ] {
        schedule.stretch(at(now), stretch);
        assert_eq!(schedule.advance(at(now)), Some(0), "{now}");
        assert_eq!(schedule.due, at(next));
    }
}

#[test]
fn a_jittered_point_lies_anywhere_in_each_period() {
    let start = Instant::now();
    let period = Duration::from_millis(100);
    let mut schedule = new_schedule(start, period, true);
    let mut parts = Vec::new();
    for begun in 1..=200 {
        // Sampled a little late, perhaps in the next period: no point is missed.
        let now = schedule.due + Duration::from_millis(10);
        assert_eq!(schedule.advance(now), Some(0));
        let part = schedule.due - (start + period * begun);
        assert!(part < period, "{part:?}");
        parts.push(part);
    }
    assert!(parts.iter().any(|part| *part < period / 5), "{parts:?}");
    assert!(parts.iter().any(|part| *part > period * 4 / 5), "{parts:?}");
    // Three whole periods pass.
    let before = schedule.start;
    assert_eq!(schedule.advance(before + period * 4), Some(3));
    assert_eq!(schedule.start, before + period * 4);
}
