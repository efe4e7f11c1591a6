use super::*;

fn seen(stack: &PublishedStack, choice: u32) -> (u32, Vec<u32>) {
    let mut seen = SeenStack::default();
    assert_eq!(stack.look(choice, &mut seen), (0, true));
    (seen.depth, seen.operations)
}

#[test]
fn calls_end_in_any_order() {
    let stack = PublishedStack::new();
    stack.start(1);
    for site in [5, 6, 6, 7] {
        stack.push(1, site);
    }
    assert_eq!(seen(&stack, 1), (4, vec![5, 6, 6, 7]));
    // The guard of 7 was forgotten.
    stack.pop(6);
    assert_eq!(seen(&stack, 1), (2, vec![5, 6]));
    // It began before its site was sampled.
    stack.pop(9);
    assert_eq!(seen(&stack, 1), (2, vec![5, 6]));
    stack.pop(5);
    assert_eq!(seen(&stack, 1), (0, vec![]));
    stack.pop(5);
    assert_eq!(seen(&stack, 1), (0, vec![]));
}

#[test]
fn deep_calls_are_counted_without_their_names() {
    let stack = PublishedStack::new();
    stack.start(1);
    let all = u32::try_from(DEPTH).unwrap() + 3;
    (1..=all).for_each(|site| stack.push(1, site));
    let (depth, sites) = seen(&stack, 1);
    assert_eq!((depth, sites.len(), sites[63]), (all, DEPTH, 64));
    (1..=all).rev().for_each(|site| stack.pop(site));
    assert_eq!(seen(&stack, 1), (0, vec![]));
}

#[test]
fn another_choice_of_sites_starts_over() {
    let stack = PublishedStack::new();
    stack.start(1);
    stack.push(1, 5);
    assert_eq!(seen(&stack, 2), (0, vec![]));
    stack.push(2, 6);
    assert_eq!(seen(&stack, 2), (1, vec![6]));
    // It began under the earlier choice.
    stack.pop(5);
    assert_eq!(seen(&stack, 2), (1, vec![6]));
}

#[test]
fn a_new_owner_begins_without_calls() {
    let stack = PublishedStack::new();
    stack.start(1);
    stack.push(1, 5);
    stack.start(2);
    assert_eq!(seen(&stack, 1), (0, vec![]));
}

#[test]
fn a_stack_in_change_is_torn_and_takes_no_call_of_a_signal_handler() {
    let stack = PublishedStack::new();
    stack.start(1);
    stack.push(1, 5);
    stack.change(|| {
        stack.push(1, 6);
        stack.pop(5);
        let mut seen = SeenStack::default();
        assert_eq!(stack.look(1, &mut seen), (LOOKS as u64, false));
    });
    assert_eq!(seen(&stack, 1), (1, vec![5]));
}
