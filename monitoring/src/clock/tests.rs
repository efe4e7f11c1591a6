use super::*;

#[test]
fn clones_of_a_test_clock_move_together() {
    let test = TestClock::new(5);
    let clock = Clock::Test(test.clone());
    assert_eq!(clock.unix_ns(), 5);
    test.advance(10);
    assert_eq!(clock.unix_ns(), 15);
}
