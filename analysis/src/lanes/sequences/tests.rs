use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn it_is_the_set_of_what_was_inserted(
        inserted in prop::collection::vec((0_u64..60, 0_u64..6), 0..40),
    ) {
        let mut sequences = Sequences::default();
        let mut model = BTreeSet::new();
        for (first, more) in inserted {
            sequences.insert(first, first + more);
            model.extend(first..=first + more);
        }
        for number in 0..80 {
            prop_assert_eq!(sequences.contains(number), model.contains(&number));
        }
        let missing: BTreeSet<u64> =
            sequences.gaps().flat_map(|(first, last)| first..=last).collect();
        let span = model.first().copied().unwrap_or(0)..model.last().copied().unwrap_or(0);
        let expected: BTreeSet<u64> = span.filter(|number| !model.contains(number)).collect();
        prop_assert_eq!(missing, expected);
        let within: BTreeSet<u64> =
            sequences.within(10, 30).flat_map(|(first, last)| first..=last).collect();
        prop_assert_eq!(within, model.range(10..=30).copied().collect::<BTreeSet<u64>>());
    }
}

#[test]
fn order_keeps_it_at_one_range() {
    let mut sequences = Sequences::default();
    (0..1_000).for_each(|number| sequences.insert(number, number));
    assert_eq!(sequences.ranges(), 1);
    sequences.insert(u64::MAX, u64::MAX);
    assert!(sequences.contains(u64::MAX));
}
