//! Vectors of the specification, round trips, and hostile bytes.

use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digit = |it: char| u8::try_from(it.to_digit(16)?).ok();
    let digits: Vec<_> = text.chars().filter_map(digit).collect();
    digits.chunks(2).map(|it| it[0] << 4 | it[1]).collect()
}

fn made(push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out);
    out
}

/// All commands and entries; every byte must be taken.
fn decode(version: Version, from: From, mut input: &[u8]) -> Vec<Command> {
    let mut decoder = Decoder::new(version, from);
    let mut commands = Vec::new();
    while !input.is_empty() {
        let taken = match decoder.step(input).unwrap() {
            Step::Command(command, taken) => {
                commands.push(command);
                taken
            }
            Step::Entries(taken) => taken,
            Step::More(needed) => panic!("{needed} bytes needed of {input:?}"),
        };
        input = &input[taken..];
    }
    assert!(!decoder.is_within_batch());
    commands
}

fn request(slot: u32, signature: &str) -> Command {
    Command::Request {
        slot,
        signature: signature.to_owned(),
    }
}

const fn update(slot: u32, is_active: bool) -> Command {
    Command::Update { slot, is_active }
}

#[test]
fn vectors_of_version_1() {
    use Version::V1;
    let bytes = made(|out| push_request(V1, 5, "a.b", out));
    assert_eq!(bytes, hex("00000000 00000005 00000003 612e62"));
    assert_eq!(decode(V1, From::Program, &bytes), [request(5, "a.b")]);
    for (is_active, text) in [
        (true, "00000000 00000005 01"),
        (false, "00000000 00000005 00"),
    ] {
        let bytes = made(|out| push_update(V1, 5, is_active, out));
        assert_eq!(bytes, hex(text));
        assert_eq!(decode(V1, From::Bridge, &bytes), [update(5, is_active)]);
    }
    let bytes = made(|out| push_batch(V1, [(5, false), (6, true)].into_iter(), out));
    assert_eq!(bytes, hex("00000001 00000000 00000005 00 00000006 01"));
    assert_eq!(
        decode(V1, From::Bridge, &bytes),
        [update(5, false), update(6, true)]
    );
}

#[test]
fn vectors_of_version_2() {
    use Version::V2;
    let bytes = made(|out| push_request(V2, 5, "a.b", out));
    assert_eq!(bytes, hex("ffffffe0 00000005 00000003 612e62"));
    assert_eq!(decode(V2, From::Program, &bytes), [request(5, "a.b")]);
    let bytes = made(|out| push_update(V2, 5, true, out));
    assert_eq!(bytes, hex("ffffffe0 00000005 01"));
    assert_eq!(decode(V2, From::Bridge, &bytes), [update(5, true)]);
    let bytes = made(|out| push_batch(V2, [(5, false), (6, true)].into_iter(), out));
    assert_eq!(
        bytes,
        hex("ffffffdf ffffffe0 00000002 00000005 00 00000006 01")
    );
    assert_eq!(
        decode(V2, From::Bridge, &bytes),
        [update(5, false), update(6, true)]
    );
    let hello = Hello {
        major: 2,
        minor: 0,
        features: 7,
        max_slots: 1 << 20,
        agent: "app".to_owned(),
    };
    let bytes = made(|out| push_hello(&hello, out));
    let expected = "ffffffde 4b444232 0002 0000 00000007 00100000 00000003 617070";
    assert_eq!(bytes, hex(expected));
    assert_eq!(decode(V2, From::Bridge, &bytes), [Command::Hello(hello)]);
    let bytes = made(|out| push_error(ErrorCode::UnknownSlot, Some(9), "x", out));
    assert_eq!(bytes, hex("ffffffdd 00000004 00000009 00000001 78"));
    let bytes = made(|out| push_snapshot(3, [(0, true)].into_iter(), out));
    assert_eq!(bytes, hex("ffffffd9 0000000000000003 00000001 00000000 01"));
    let bytes = made(|out| push_batch_request([(0, "a"), (1, "b")].into_iter(), out));
    let expected = "ffffffda 00000002 00000000 00000001 61 00000001 00000001 62";
    assert_eq!(bytes, hex(expected));
    assert_eq!(made(|out| push_bye(0, out)), hex("ffffffd7 00000000"));
    assert_eq!(
        made(|out| push_ping(1, out)),
        hex("ffffffdc 0000000000000001")
    );
    assert_eq!(
        made(|out| push_pong(1, out)),
        hex("ffffffdb 0000000000000001")
    );
}

/// What comes back, with the code and the offset.
fn refusal(from: From, text: &str) -> (ErrorCode, usize) {
    let mut decoder = Decoder::new(Version::V2, from);
    let mut input = &hex(text)[..];
    let mut before = 0;
    loop {
        match decoder.step(input) {
            Ok(Step::Command(_, taken) | Step::Entries(taken)) => {
                input = &input[taken..];
                before += taken;
            }
            Ok(Step::More(_)) => panic!("more bytes are wanted"),
            Err(error) => return (error.code, before + error.offset),
        }
    }
}

#[test]
fn wrong_commands_have_a_code_and_an_offset() {
    use ErrorCode::{Limit, Malformed, NotAllowed, UnknownCommand};
    for (from, text, expected) in [
        (From::Bridge, "ffffffe0 00000005 02", (Malformed, 8)),
        (From::Bridge, "ffffffe0 ffffffff 01", (Malformed, 4)),
        (From::Bridge, "ffffffe0 00100000 01", (Limit, 4)),
        (From::Bridge, "ffffffdf 00000000", (Malformed, 4)),
        (From::Bridge, "ffffffdf ffffffe0 00100001", (Limit, 8)),
        (From::Bridge, "ffffffdf ffffffe0 ffffffff", (Malformed, 8)),
        (
            From::Bridge,
            "ffffffdf ffffffe0 00000001 00000000 07",
            (Malformed, 16),
        ),
        (From::Bridge, "ffffffd8", (NotAllowed, 0)),
        (From::Program, "ffffffd9", (NotAllowed, 0)),
        (From::Program, "ffffffc1", (UnknownCommand, 0)),
        (From::Program, "ffffffe0 00000000 00010001", (Limit, 8)),
        (From::Program, "ffffffe0 00000000 ffffffff", (Malformed, 8)),
        (
            From::Program,
            "ffffffe0 00000000 00000001 ff",
            (Malformed, 12),
        ),
        (From::Program, "ffffffde 4b444233", (Malformed, 4)),
    ] {
        assert_eq!(refusal(from, text), expected, "{text}");
    }
}

#[test]
fn unknown_framed_commands_are_skipped() {
    let bytes = hex("ffffffd6 ffffffc1 00000003 010203 ffffffd7 00000000");
    let commands = decode(Version::V2, From::Program, &bytes);
    assert_eq!(commands, [Command::Framed(-63), Command::Bye(0)]);
}

fn command_of(from: From) -> BoxedStrategy<(Vec<u8>, Vec<Command>)> {
    let slot = 0..MAX_SLOTS;
    let both = prop_oneof![
        any::<i64>().prop_map(|it| (made(|out| push_ping(it, out)), vec![Command::Ping(it)])),
        any::<i64>().prop_map(|it| (made(|out| push_pong(it, out)), vec![Command::Pong(it)])),
        any::<i32>().prop_map(|it| (made(|out| push_bye(it, out)), vec![Command::Bye(it)])),
        (any::<(i16, i16, i32, i32)>(), ".{0,20}").prop_map(|(it, agent)| {
            let (major, minor, features, max_slots) = it;
            let hello = Hello {
                major,
                minor,
                features,
                max_slots,
                agent,
            };
            (
                made(|out| push_hello(&hello, out)),
                vec![Command::Hello(hello)],
            )
        }),
    ];
    match from {
        From::Program => prop_oneof![
            both,
            (slot.clone(), ".{0,40}").prop_map(|(slot, it)| {
                let bytes = made(|out| push_request(Version::V2, slot, &it, out));
                (bytes, vec![request(slot, &it)])
            }),
            prop::collection::vec((slot, ".{0,9}"), 0..9).prop_map(|all| {
                let entries = all.iter().map(|(slot, it)| (*slot, it.as_str()));
                let bytes = made(|out| push_batch_request(entries.clone(), out));
                (bytes, entries.map(|(slot, it)| request(slot, it)).collect())
            }),
            (any::<(i64, i64, i64, i32)>()).prop_map(|it| {
                let (hits, misses, dropped_records, used_slots) = it;
                let stats = Stats {
                    hits,
                    misses,
                    dropped_records,
                    used_slots,
                };
                (
                    made(|out| push_stats(&stats, out)),
                    vec![Command::Stats(stats)],
                )
            }),
        ]
        .boxed(),
        From::Bridge => prop_oneof![
            both,
            (slot.clone(), any::<bool>()).prop_map(|(slot, it)| {
                let bytes = made(|out| push_update(Version::V2, slot, it, out));
                (bytes, vec![update(slot, it)])
            }),
            (
                prop::collection::vec((slot, any::<bool>()), 0..9),
                any::<Option<i64>>()
            )
                .prop_map(|(all, epoch)| {
                    let entries = all.into_iter();
                    let bytes = made(|out| match epoch {
                        Some(epoch) => push_snapshot(epoch, entries.clone(), out),
                        None => push_batch(Version::V2, entries.clone(), out),
                    });
                    let head = epoch.map(Command::Snapshot).into_iter();
                    (
                        bytes,
                        head.chain(entries.map(|(slot, it)| update(slot, it)))
                            .collect(),
                    )
                }),
        ]
        .boxed(),
    }
}

proptest! {
    #[test]
    fn commands_come_back(
        from_program in prop::collection::vec(command_of(From::Program), 1..6),
        from_bridge in prop::collection::vec(command_of(From::Bridge), 1..6),
    ) {
        for (from, sent) in [(From::Program, from_program), (From::Bridge, from_bridge)] {
            let bytes: Vec<u8> = sent.iter().flat_map(|it| it.0.clone()).collect();
            let commands: Vec<Command> = sent.into_iter().flat_map(|it| it.1).collect();
            prop_assert_eq!(decode(Version::V2, from, &bytes), commands);
        }
    }

    /// A prefix is never an error, and the number of further bytes is never too large.
    #[test]
    fn incomplete_commands_wait((bytes, _) in command_of(From::Program)) {
        for end in 0..bytes.len() {
            let mut decoder = Decoder::new(Version::V2, From::Program);
            let mut taken = 0;
            let needed = loop {
                match decoder.step(&bytes[taken..end]).unwrap() {
                    Step::Command(_, more) | Step::Entries(more) => taken += more,
                    Step::More(needed) => break needed,
                }
                if taken == end {
                    break 0;
                }
            };
            prop_assert!(needed == 0 || (end - taken < needed && taken + needed <= bytes.len()));
        }
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200), v1: bool, program: bool) {
        let version = if v1 { Version::V1 } else { Version::V2 };
        let from = if program { From::Program } else { From::Bridge };
        // The first word is a command, so that more than the first word is tried.
        for id in -42..=1 {
            let bytes = [&i32::to_be_bytes(id)[..], &bytes].concat();
            let mut input = &bytes[..];
            let mut decoder = Decoder::new(version, from);
            while let Ok(Step::Command(_, taken) | Step::Entries(taken)) = decoder.step(input) {
                prop_assert!(0 < taken && taken <= input.len());
                input = &input[taken..];
            }
        }
    }
}
