//! Messages of Kieker's `AmqpWriter`, joined, against the records that it was given.

use baler_common::record::{RecordRef, ValueRef};
use baler_connector_kieker::container::{self, KiekerStream, StreamStep};
use baler_connector_kieker::types;

/// The recorded messages, in order.
pub(crate) fn messages() -> Vec<Vec<u8>> {
    let mut bytes: &[u8] = include_bytes!("../golden/amqp-plain-mixed.messages");
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap();
        let (message, rest) = rest.split_at(length);
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

fn stream(messages: &[Vec<u8>]) -> KiekerStream {
    let id = KiekerStream::registry_of(messages.first().unwrap()).unwrap();
    KiekerStream::of_messages(types::shared_catalog(), id)
}

/// A record as the recorded lines have it.
fn as_json(record: RecordRef<'_>) -> serde_json::Value {
    let fields = record.fields().values().map(|(name, value)| {
        let value = match value {
            ValueRef::Signed(value) => value.into(),
            ValueRef::String(value) => value.into(),
            other => format!("{other:?}").into(),
        };
        (name.to_owned(), value)
    });
    let fields: serde_json::Map<_, serde_json::Value> = fields.collect();
    serde_json::json!({
        "type": record.type_name(), "timestamp": record.timestamp(), "fields": fields,
    })
}

#[test]
fn messages_are_one_stream_wherever_they_end() {
    let messages = messages();
    let joined = messages.concat();
    let expected = include_str!("../golden/amqp-plain-mixed.jsonl");
    let expected: Vec<serde_json::Value> = expected
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for step in [1, 7, 1 << 20] {
        let mut stream = stream(&messages);
        let mut strings = Vec::new();
        let mut left = Vec::new();
        for part in joined.chunks(step) {
            left.extend_from_slice(part);
            let (taken, step) = stream.cut(&left);
            assert!(matches!(step, Ok(StreamStep::More(_))), "{step:?}");
            left.drain(..taken);
            strings.extend(stream.take_new_strings());
        }
        assert!(left.is_empty());
        let chunk = stream.take_chunk().unwrap();
        let decoded = container::decoder().decode(&chunk.bytes).unwrap();
        let records: Vec<_> = decoded.batch.records().map(as_json).collect();
        assert_eq!(records, expected);
        assert_eq!(strings.len(), 26, "each string is new once");
        // A reader that is started again knows them, and they are not new to it.
        let mut again = self::stream(&messages);
        for (id, text) in &strings {
            again.restore(*id, text).unwrap();
        }
        assert!(again.take_new_strings().is_empty());
        let last = messages[messages.len() - 2..].concat();
        assert_eq!(again.cut(&last).0, last.len());
        assert_eq!(again.records(), 1);
    }
}

#[test]
fn messages_that_cannot_be_are_refused_and_the_registry_goes_on() {
    let messages = messages();
    let first = messages[0].clone();
    let mut other = first.clone();
    other[8] ^= 1;
    let mut kind = first.clone();
    kind[0] = 2;
    let mut length = first.clone();
    length[13..17].copy_from_slice(&i32::MAX.to_be_bytes());
    let mut id = first.clone();
    id[9] = 0x80;
    let mut text = first.clone();
    *text.last_mut().unwrap() = 0xff;
    // Within a record, before the id of its first string.
    let mut nested = messages[1].clone();
    nested[29] ^= 1;
    let nested = [first.clone(), nested, messages[2].clone()].concat();
    for (bytes, message) in [
        (other, "while reading the number of a registry"),
        (
            kind,
            "2 is not allowed here while reading the kind of an item",
        ),
        (
            length,
            "above the limit of 1048576 while reading the length of a string",
        ),
        (id, "while reading the id of a string"),
        (
            text,
            "the text is not UTF-8 while reading a registered string",
        ),
        (nested, "while reading the number of a registry"),
    ] {
        let mut stream = stream(&messages);
        let error = stream.cut(&bytes).1.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        let joined = messages.concat();
        assert_eq!(stream.cut(&joined).0, joined.len());
        assert_eq!(stream.records(), 20);
    }
    assert_eq!(KiekerStream::registry_of(&first[..8]), None);
    assert_eq!(KiekerStream::registry_of(&messages[2]), None);
}
