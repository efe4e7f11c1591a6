use super::*;

#[test]
fn clones_of_a_test_clock_move_together() {
    let test = TestClock::new(5);
    let clock = Clock::Test(test.clone());
    assert_eq!(clock.unix_ns(), 5);
    test.advance(10);
    assert_eq!(clock.unix_ns(), 15);
}

#[test]
fn the_time_of_the_counter_is_near_the_systems() {
    let mut mapping = TickMapping::new();
    mapping.refresh(monotonic());
    for clock in [Clock::Ticks, Clock::System] {
        let (before, time, after) = (system_unix_ns(), clock.unix_ns(), system_unix_ns());
        // The first rate is at most one in 20,000 off.
        assert!((before - 100_000..=after + 100_000).contains(&time));
    }
}

#[test]
fn an_old_anchor_is_not_used() {
    let mut mapping = TickMapping::new();
    mapping.refresh(monotonic());
    // More than two seconds for every processor.
    assert_eq!(published_unix_ns(ticks::read() + (1 << 40)), None);
}
