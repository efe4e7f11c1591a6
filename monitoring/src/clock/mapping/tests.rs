use super::*;

fn reading(at: Instant, milliseconds: u64, unix_ns: i64) -> Reading {
    Reading {
        // 2 GHz.
        ticks: 5_000_000_000 + milliseconds * 2_000_000,
        monotonic: at + Duration::from_millis(milliseconds),
        unix_ns,
        blur: 200,
    }
}

/// Anchored at 0 ms, when it was 1 s, and at 1,000 ms.
fn mapping(at: Instant) -> TickMapping {
    let first = reading(at, 0, 1_000_000_000);
    let mut mapping = TickMapping {
        anchor_ticks: first.ticks,
        anchor_unix_ns: first.unix_ns,
        multiplier: 0,
        from: first,
        later: first,
        anchored: at,
    };
    mapping.anchor(reading(at, 1_000, 2_000_000_000));
    mapping
}

#[test]
fn ticks_become_time_before_and_after_the_anchor() {
    let mapping = mapping(Instant::now());
    assert_eq!(mapping.unix_ns(5_000_000_000), 1_000_000_000);
    assert_eq!(mapping.unix_ns(9_000_000_000), 3_000_000_000);
    assert_eq!(mapping.nanoseconds(2_000), 1_000);
}

#[test]
fn a_set_wall_clock_is_followed_and_leaves_durations_alone() {
    let at = Instant::now();
    let mut mapping = mapping(at);
    // Set back by half a second meanwhile.
    mapping.anchor(reading(at, 2_000, 2_500_000_000));
    let now = reading(at, 2_000, 0).ticks;
    assert_eq!(
        mapping.unix_ns(now),
        2_500_000_100,
        "as near as it is known"
    );
    assert_eq!(mapping.nanoseconds(2_000), 1_000);
}

#[test]
fn an_anchor_moves_only_as_far_as_a_reading_contradicts_it() {
    let at = Instant::now();
    let mut mapping = mapping(at);
    mapping.anchor(reading(at, 2_000, 3_000_000_050));
    let now = reading(at, 2_000, 0).ticks;
    assert_eq!(mapping.unix_ns(now), 3_000_000_000);
}

#[test]
fn a_counter_that_jumps_does_not_spoil_the_rate() {
    let at = Instant::now();
    let mut mapping = mapping(at);
    // The machine slept for an hour of which the counter knows nothing.
    let mut awake = reading(at, 2_000, 3_603_000_000_000);
    awake.monotonic += Duration::from_secs(3_600);
    mapping.anchor(awake);
    assert_eq!(mapping.nanoseconds(2_000), 1_000);
    assert_eq!(mapping.unix_ns(awake.ticks), 3_602_999_999_900);
    // From then on it is measured anew.
    let mut next = reading(at, 3_000, 3_604_000_000_000);
    next.monotonic += Duration::from_secs(3_600);
    mapping.anchor(next);
    assert_eq!(mapping.nanoseconds(2_000), 1_000);
}

#[test]
fn the_rate_is_that_of_the_last_seconds() {
    let at = Instant::now();
    let mut mapping = mapping(at);
    for second in 2..40 {
        let unix_ns = (i64::try_from(second).unwrap() + 1) * 1_000_000_000;
        mapping.anchor(reading(at, second * 1_000, unix_ns));
    }
    let since = mapping.anchored - mapping.from.monotonic;
    assert!((RATE / 2..=RATE).contains(&since), "{since:?}");
}

#[test]
fn mapped_ticks_are_the_time_of_the_wall_clock() {
    if !ticks::is_available() {
        return;
    }
    let mut mapping = TickMapping::new();
    mapping.refresh(Instant::now());
    let (ticks, wall) = (ticks::read(), system_unix_ns());
    let difference = mapping.unix_ns(ticks) - wall;
    // Far more than two readings are apart.
    assert!(difference.abs() < 100_000_000, "{difference} ns");
}
