//! Senders of impossible bytes, beside a live sender.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use crate::support::{EMPTY, Heard, connect, reader, record, registered, registration, send};

const LIST: &str = "kieker.common.record.remotecontrol.UpdateParameterEvent";
const META: &str = "kieker.common.record.misc.KiekerMetadataRecord";

/// A name, the bytes that are sent, and a part of the message.
fn attacks() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let after =
        |class: &str, bytes: &[u8]| [registered(0, class), record(0, 1), bytes.to_vec()].concat();
    let ids = |ids: &[i32]| {
        ids.iter()
            .flat_map(|id| id.to_be_bytes())
            .collect::<Vec<_>>()
    };
    let list = |length: i32| after(LIST, &ids(&[0, 0, length]));
    let metadata = [ids(&[0, 0, 0, 0]), vec![2]].concat();
    vec![
        (
            "a giant length",
            registration(0, 0x7fff_ffff, b"x"),
            "2147483647 is above the limit of 1048576 while reading the length of a string",
        ),
        (
            "a negative length",
            registration(0, -1, b"x"),
            "above the limit of 1048576 while reading the length of a string",
        ),
        (
            "a negative id",
            registration(-2, 1, b"x"),
            "4294967294 is not allowed here while reading the id of a string",
        ),
        (
            "a class that was never registered",
            record(0x7fff_ffff, 1),
            "2147483647 is not allowed here while reading the id of a record's class",
        ),
        (
            "a negative class",
            record(-5, 1),
            "not allowed here while reading the id of a record's class",
        ),
        (
            "a string that was never registered",
            after(LIST, &ids(&[7])),
            "7 is not allowed here while reading a string id",
        ),
        (
            "a giant list",
            list(0x7fff_ffff),
            "above the limit of 1048576 while reading the length of a list",
        ),
        (
            "a list of negative length",
            list(-1),
            "above the limit of 1048576 while reading the length of a list",
        ),
        (
            "a list beyond a record's bytes",
            list(262_145),
            "1048580 is above the limit of 1048576 while reading the length of a list",
        ),
        (
            "an unknown class",
            [registered(3, "org.example.OwnRecord"), record(3, 1)].concat(),
            "the record type org.example.OwnRecord is not in the catalog",
        ),
        (
            "a bool that is none",
            after(META, &metadata),
            "2 is not allowed here while reading a bool",
        ),
        (
            "text that is not UTF-8",
            registration(0, 3, &[0xff, 0xfe, 0xfd, 0, 0]),
            "the text is not UTF-8",
        ),
        (
            "HTTP",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            "not allowed here while reading the id of a record's class",
        ),
    ]
}

#[test]
fn each_attack_closes_its_connection_and_a_live_sender_goes_on() {
    let mut reader = reader("?max_age=1ms");
    let mut live = send(reader.local_addr(), &registered(0, EMPTY));
    for (index, (name, bytes, message)) in attacks().into_iter().enumerate() {
        let mut attacker = send(reader.local_addr(), &bytes);
        let damaged = Heard::damage(&mut reader);
        assert!(
            damaged.reason.contains(message),
            "{name}: {}",
            damaged.reason
        );
        attacker
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        // The end, perhaps as a reset.
        assert!(!matches!(attacker.read(&mut [0]), Ok(1..)), "{name}");
        live.write_all(&record(0, 7)).unwrap();
        let heard = Heard::default().until(&mut reader, 1);
        assert_eq!(heard.records[0]["timestamp"], 7, "after {name}");
        assert_eq!(reader.stats().damaged, u64::try_from(index + 1).unwrap());
    }
}

#[test]
fn records_before_the_damage_are_delivered_and_the_rest_is_kept() {
    let mut reader = reader("");
    let mut stream = registered(0, EMPTY);
    stream.extend(record(0, 1));
    stream.extend(record(0, 2));
    let sound = stream.len();
    stream.extend(record(9, 3));
    let _sender = send(reader.local_addr(), &stream);
    let mut heard = Heard::default().until(&mut reader, 2);
    let damaged = heard.damaged.pop();
    let damaged = damaged.unwrap_or_else(|| Heard::damage(&mut reader));
    assert_eq!(damaged.origin.position, u64::try_from(sound).unwrap());
    assert_eq!(damaged.bytes, record(9, 3));
    assert!(
        damaged.reason.starts_with(&format!("byte {sound}: ")),
        "{}",
        damaged.reason
    );
}

#[test]
fn half_record_at_the_end_is_reported_and_an_empty_connection_is_not() {
    let mut reader = reader("");
    drop(connect(reader.local_addr()));
    let half = [registered(0, EMPTY), record(0, 1)[..9].to_vec()].concat();
    drop(send(reader.local_addr(), &half));
    let damaged = Heard::damage(&mut reader);
    assert!(
        damaged.reason.contains("ended 9 bytes into an item"),
        "{}",
        damaged.reason
    );
    assert_eq!((reader.stats().connections, reader.stats().damaged), (1, 1));
}

#[test]
fn string_tables_are_bounded_in_memory() {
    let mut reader = reader("");
    let text = "x".repeat(1 << 20);
    let mut sender = connect(reader.local_addr());
    for id in 0..64 {
        // The reader closes the connection at the last one.
        sender.write_all(&registered(id, &text)).ok();
    }
    let damaged = Heard::damage(&mut reader);
    let message = "is above the limit of 67108864 while reading the memory of the strings";
    assert!(damaged.reason.contains(message), "{}", damaged.reason);
    // One id again and again is one string.
    let mut sender = connect(reader.local_addr());
    for _ in 0..70 {
        sender.write_all(&registered(5, &text)).unwrap();
    }
    sender.write_all(&registered(0, EMPTY)).unwrap();
    sender.write_all(&record(0, 7)).unwrap();
    let heard = Heard::default().until(&mut reader, 1);
    assert_eq!(heard.records.len(), 1);
}

#[test]
fn connections_are_bounded_in_number() {
    let mut reader = reader("?max_connections=1");
    let _first = send(
        reader.local_addr(),
        &[registered(0, EMPTY), record(0, 1)].concat(),
    );
    Heard::default().until(&mut reader, 1);
    let mut second = connect(reader.local_addr());
    second
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert!(!matches!(second.read(&mut [0]), Ok(1..)));
    assert_eq!(reader.stats().connections_turned_away, 1);
}
