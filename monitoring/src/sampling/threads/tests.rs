use std::thread;

use super::super::stack::SeenStack;
use super::*;

/// Other tests of the process may publish calls as well.
const OTHERS: usize = 16;

#[test]
fn threads_that_come_and_go_use_the_same_stacks() {
    let mut numbers = Vec::new();
    for _ in 0..200 {
        let number = thread::spawn(|| {
            assert!(!enter(|| None));
            assert!(HERE.get().is_none());
            assert!(enter(|| Some(7)));
            let mut seen = SeenStack::default();
            assert_eq!(HERE.get().unwrap().look(stacks().0, &mut seen), (0, true));
            assert_eq!(seen.operations, [7]);
            seen.thread
        });
        // It has not left the call.
        numbers.push(number.join().unwrap());
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let (choice, stacks) = stacks();
    assert!(stacks.len() <= OTHERS, "{}", stacks.len());
    let mut seen = SeenStack::default();
    for stack in stacks {
        stack.look(choice, &mut seen);
        assert_ne!(seen.operations, [7]);
    }
}
