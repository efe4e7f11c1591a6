//! Chunks pass from the polling thread to the owner: all of them, and not each with a wake-up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{Received, Verdict};
use bytes::Bytes;

use super::membership::Membership;
use super::state::{Fetched, Next};

const CHUNKS: usize = 5_000;

/// Longer than all of it takes: who is not woken, and waits for this, fails the test.
const LONG: Duration = Duration::from_secs(60);

fn chunk(offset: usize) -> Fetched {
    Fetched {
        partition: 0,
        offset: i64::try_from(offset).unwrap(),
        bytes: Bytes::new(),
        meta: None,
        redelivered: false,
    }
}

/// Passes on chunks, as many at once as there is room for but at most so many, as the client hands
/// them out; how often it waited.
fn pass_on(membership: &Membership, at_once: usize) -> usize {
    let (mut passed, mut waits) = (0, 0);
    while passed < CHUNKS {
        match membership.next() {
            Next::Stop => panic!("it was stopped"),
            Next::Keep => {
                waits += 1;
                assert_eq!(membership.wait_for_room(LONG), Next::Fetch);
            }
            Next::Fetch => {
                for _ in 0..at_once {
                    membership.fetched(chunk(passed));
                    passed += 1;
                    if passed == CHUNKS || membership.next() != Next::Fetch {
                        break;
                    }
                }
                membership.tell();
            }
        }
    }
    waits
}

/// Takes all chunks and holds as many as `holds` before it settles the oldest.
fn take_all(membership: &Membership, holds: usize) {
    let mut held = VecDeque::new();
    let by = Instant::now() + LONG;
    for taken in 0..CHUNKS {
        match membership.receive(by).unwrap() {
            Received::Chunk(delivery) => {
                assert_eq!(delivery.origin.position, u64::try_from(taken).unwrap());
                held.push_back(delivery.token);
            }
            other => panic!("{other:?} after {taken} chunks"),
        }
        if held.len() == holds {
            membership.settle(held.pop_front().unwrap(), Verdict::Ack, |_, _| true);
        }
    }
}

/// Lets the two run side by side; how often the polling thread waited.
fn pass_all(demand: usize, holds: usize, at_once: usize) -> usize {
    let membership = Arc::new(Membership::new("kafka://h:1/t"));
    membership.set_demand(demand);
    let passing = thread::spawn({
        let membership = Arc::clone(&membership);
        move || pass_on(&membership, at_once)
    });
    let since = Instant::now();
    take_all(&membership, holds);
    let waits = passing.join().unwrap();
    assert!(since.elapsed() < LONG, "somebody was not woken");
    waits
}

#[test]
fn whoever_has_something_to_do_is_woken() {
    for demand in [1, 2, 3, 7, 32, 33, 1000] {
        for at_once in [1, 5, usize::MAX] {
            pass_all(demand, demand, at_once);
        }
    }
}

#[test]
fn polling_thread_is_woken_for_many_chunks_at_once() {
    // Of 32 that may be taken ahead half are free again, or the owner has none left.
    assert!(pass_all(1000, 900, usize::MAX) <= CHUNKS / 16);
}

#[test]
fn thread_waits_until_there_is_room_for_half() {
    let membership = Membership::new("kafka://h:1/t");
    membership.set_demand(64);
    (0..32).for_each(|offset| membership.fetched(chunk(offset)));
    let waited = |taken: usize| {
        for _ in 0..taken {
            membership.receive(Instant::now()).unwrap();
        }
        let since = Instant::now();
        let next = membership.wait_for_room(Duration::from_millis(20));
        (next, since.elapsed() >= Duration::from_millis(20))
    };
    assert_eq!(waited(0), (Next::Keep, true));
    assert_eq!(waited(15), (Next::Fetch, true), "room for fifteen");
    assert_eq!(waited(1), (Next::Fetch, false), "room for sixteen");
}
