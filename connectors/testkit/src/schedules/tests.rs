use super::*;

#[test]
fn dice_fall_as_their_seed_says_and_reach_every_side() {
    let throws = |seed| {
        let mut dice = Dice::new(seed);
        (0..600).map(|_| dice.below(6)).collect::<Vec<_>>()
    };
    assert_eq!(throws(3), throws(3));
    assert_ne!(throws(3), throws(4));
    let all = throws(3);
    assert!((0..6).all(|side| all.iter().filter(|it| **it == side).count() > 60));
}

#[test]
#[should_panic(expected = "the seventh")]
fn a_history_that_fails_fails_the_test() {
    let seen = std::cell::Cell::new(0);
    each_schedule(100, |_| {
        seen.set(seen.get() + 1);
        assert!(seen.get() != 7, "the seventh");
    });
}
