//! Hostile messages in the format of Kieker's `AmqpWriter` take bounded memory.
//!
//! A test binary of its own with one test, because it counts every allocation of its process.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use baler_connector_kieker::messages::fuzzing::{Outcome, take};

#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const MIB: usize = 1 << 20;

const EMPTY: &str = "kieker.common.record.misc.EmptyRecord";
const LIST: &str = "kieker.common.record.remotecontrol.ActivationParameterEvent";

/// The message of a string.
fn string(registry: u64, id: i32, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    let head = [&[0xff][..], &registry.to_be_bytes(), &id.to_be_bytes()].concat();
    [&head[..], &length.to_be_bytes(), text.as_bytes()].concat()
}

/// The message of a record, with what follows its logging timestamp.
fn record(registry: u64, class: i32, fields: &[u8]) -> Vec<u8> {
    let head = [&[0x01][..], &registry.to_be_bytes(), &class.to_be_bytes()].concat();
    [&head[..], &7_i64.to_be_bytes(), fields].concat()
}

/// Takes messages with a new file; what came of them, and the most memory that it took.
fn peak_of(messages: impl Iterator<Item = Vec<u8>>) -> (Outcome, usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registry");
    let mut outcome = Outcome::default();
    let peak = counting::peak_of(|| outcome = take(messages, &file).unwrap());
    // Reading the file again takes no more.
    let again = counting::peak_of(|| {
        let known = take(std::iter::empty(), &file).unwrap().writers;
        assert_eq!(known, outcome.writers);
    });
    (outcome, peak.max(again))
}

#[test]
fn no_messages_take_more_memory_than_the_limits_allow() {
    // As many writers as there are messages, each with the beginning of a record.
    let writers = (0..4_000).flat_map(|writer| {
        let mut half = record(writer, 0, &[]);
        half.pop();
        [string(writer, 0, EMPTY), half]
    });
    let (outcome, peak) = peak_of(writers);
    assert!(outcome.writers <= 1_024, "{outcome:?}");
    assert!(outcome.broken > 2_000, "{outcome:?}");
    assert!(peak <= 16 * MIB, "{peak}");

    // Strings of 1 MiB, of ever new writers and of one writer under one id.
    let text = "x".repeat(MIB);
    let writers = (0..280).map(|writer| string(writer, 1, &text));
    let (outcome, peak) = peak_of(writers);
    assert!((200..=256).contains(&outcome.writers), "{outcome:?}");
    assert!((200 * MIB..300 * MIB).contains(&peak), "{peak}");
    let one = (0..20).map(|_| string(1, 1, &text));
    let (_, peak) = peak_of(one);
    assert!(peak <= 8 * MIB, "{peak}");

    // Lengths that are announced, in a string and in a list.
    let announced = (8..31).flat_map(|shift| {
        let many = 1_i32 << shift;
        let registry = u64::from(many.cast_unsigned());
        let mut giant = string(registry, many, "x");
        giant[13..17].copy_from_slice(&many.to_be_bytes());
        let list = [0, 0, many].map(i32::to_be_bytes).concat();
        let sound = [string(registry, 0, LIST), record(registry, 0, &list)];
        [vec![giant], sound.to_vec()].concat()
    });
    let (outcome, peak) = peak_of(announced);
    assert!(outcome.broken > 10, "{outcome:?}");
    assert!(peak <= 8 * MIB, "{peak}");

    // A record that never ends: new strings before each id, again and again.
    let nested = std::iter::once(string(1, 0, LIST));
    let head = record(1, 0, &[]);
    let nested = nested.chain([head]);
    let nested = nested.chain((0..16).map(|_| string(1, 1, &text)));
    let (outcome, peak) = peak_of(nested);
    assert!(outcome.broken > 0, "{outcome:?}");
    assert!(peak <= 48 * MIB, "{peak}");
}
