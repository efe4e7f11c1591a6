use super::ticks;

#[test]
fn axes_have_a_handful_of_round_numbers() {
    assert_eq!(ticks(11.0, 210.0), [20.0, 50.0, 100.0, 200.0]);
    assert_eq!(ticks(30.0, 55.0), [30.0, 40.0, 50.0]);
    assert_eq!(ticks(0.5, 5e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
}
