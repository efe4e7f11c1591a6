use proptest::prelude::*;

use super::*;

proptest! {
    /// The model: a list of keys in their order, each with a mark.
    #[test]
    fn the_front_is_what_a_list_of_marks_says(steps in prop::collection::vec((0..3, 0..24_usize), 0..200)) {
        let mut prefix = SettledPrefix::default();
        let mut model: Vec<(usize, bool)> = Vec::new();
        let mut popped = Vec::new();
        let mut next = 0;
        for (step, number) in steps {
            match step {
                0 => {
                    next += 1 + number % 3;
                    prefix.insert(next, next * 2);
                    model.push((next, false));
                }
                1 => {
                    let key = next.saturating_sub(number);
                    let known = model.iter_mut().find(|(known, _)| *known == key);
                    prop_assert_eq!(prefix.contains(&key), known.is_some());
                    prop_assert_eq!(prefix.settle(&key).is_some(), known.is_some());
                    known.into_iter().for_each(|known| known.1 = true);
                }
                _ => {
                    let front = model.iter().take_while(|known| known.1).count();
                    for (key, _) in model.drain(..front) {
                        prop_assert_eq!(prefix.pop_settled(), Some((key, key * 2)));
                        popped.push(key);
                    }
                    prop_assert_eq!(prefix.pop_settled(), None);
                }
            }
            prop_assert_eq!(prefix.len(), model.len());
            prop_assert_eq!(prefix.is_empty(), model.is_empty());
            prop_assert_eq!(prefix.first().copied(), model.first().map(|known| known.0));
            prop_assert_eq!(prefix.last_mut().map(|last| *last.0), model.last().map(|known| known.0));
            let unsettled = model.iter().filter(|known| !known.1).map(|known| known.0 * 2);
            let unsettled: Vec<usize> = unsettled.collect();
            prop_assert_eq!(prefix.unsettled_mut().map(|it| *it).collect::<Vec<_>>(), unsettled);
        }
        prop_assert!(popped.is_sorted());
    }
}
