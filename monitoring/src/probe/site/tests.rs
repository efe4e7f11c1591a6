use super::Turns;

#[test]
fn the_same_share_of_calls_has_its_turn_wherever_it_begins() {
    for of in [1, 2, 7, 1_000] {
        let turns = Turns::new();
        let taken = (0..of * 3).filter(|_| turns.next(of)).count();
        assert_eq!(taken, 3);
    }
}

#[test]
fn threads_of_one_call_each_are_sampled_too() {
    let taken = (0..4_000).filter(|_| Turns::new().next(4)).count();
    // Ten standard deviations.
    assert!((726..=1_274).contains(&taken), "{taken}");
}
