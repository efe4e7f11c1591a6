//! Models of a published stack under loom: its owner begins and ends calls while a sampler reads,
//! in every order and with every value that a relaxed load may see.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

use super::{PublishedStack, SeenStack};

/// A thread is interrupted at most this often.
const INTERRUPTIONS: usize = 2;

const CHOICE: u32 = 1;

/// Runs an owner while a sampler reads twice. Each whole read must be one of `allowed`.
fn model(
    owner: impl Fn(&PublishedStack) + Copy + Send + Sync + 'static,
    allowed: &'static [&[u32]],
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(INTERRUPTIONS);
    builder.check(move || {
        let stack = Arc::new(PublishedStack::new());
        stack.start(7);
        stack.push(CHOICE, 1);
        let running = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || owner(&stack))
        };
        let mut seen = SeenStack::default();
        for _ in 0..2 {
            let (_, is_whole) = stack.look(CHOICE, &mut seen);
            if is_whole {
                assert!(allowed.contains(&seen.operations.as_slice()), "{seen:?}");
                // The second owner, or none.
                let is_second = [&[4][..], &[]].contains(&seen.operations.as_slice());
                assert!(
                    seen.thread == 7 || (seen.thread == 8 && is_second),
                    "{seen:?}"
                );
                assert_eq!(seen.depth as usize, seen.operations.len(), "{seen:?}");
            }
        }
        running.join().unwrap();
        // Without a writer no read is torn.
        assert_eq!(stack.look(CHOICE, &mut seen), (0, true));
        assert_eq!(seen.operations, *allowed.last().unwrap().to_owned());
    });
}

#[test]
fn a_reader_sees_a_stack_that_was_there() {
    model(
        |stack| {
            stack.push(CHOICE, 2);
            stack.pop(2);
            stack.pop(1);
        },
        &[&[1], &[1, 2], &[]],
    );
}

#[test]
fn a_call_that_replaces_another_one_is_not_mixed_with_its_caller() {
    model(
        |stack| {
            stack.pop(1);
            stack.push(CHOICE, 2);
            stack.push(CHOICE, 3);
        },
        &[&[1], &[], &[2], &[2, 3]],
    );
}

#[test]
fn a_stack_of_another_choice_is_not_seen() {
    model(
        |stack| {
            stack.push(CHOICE + 1, 2);
            stack.push(CHOICE, 3);
        },
        &[&[1], &[], &[3]],
    );
}

#[test]
fn calls_of_a_new_owner_are_not_mixed_with_calls_of_the_last_one() {
    model(
        |stack| {
            stack.start(8);
            stack.push(CHOICE, 4);
        },
        &[&[1], &[], &[4]],
    );
}

/// The owner begins a call in the order of `threads::enter`, while the site is switched off in the
/// order of the registry.
#[test]
fn a_call_of_a_site_that_is_no_longer_sampled_does_not_belong_to_the_new_choice() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(INTERRUPTIONS);
    builder.check(|| {
        let shared = Arc::new((
            PublishedStack::new(),
            AtomicBool::new(true),
            AtomicU32::new(CHOICE),
        ));
        let running = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (stack, is_sampled, choice) = &*shared;
                let choice = choice.load(Ordering::Acquire);
                if is_sampled.load(Ordering::Relaxed) {
                    stack.push(choice, 2);
                }
            })
        };
        let (stack, is_sampled, choice) = &*shared;
        is_sampled.store(false, Ordering::Release);
        choice.fetch_add(1, Ordering::Release);
        let mut seen = SeenStack::default();
        let mut look = || {
            let (_, is_whole) = stack.look(CHOICE + 1, &mut seen);
            assert!(!is_whole || seen.operations.is_empty(), "{seen:?}");
        };
        look();
        running.join().unwrap();
        look();
    });
}
