//! Strings whose length counts bytes or UTF-16 units, in streams that do not say which.

use baler_common::record::ValueRef;
use baler_connector_kieker::container::{self, KiekerStream};
use baler_connector_kieker::types;

const EMPTY: &str = "kieker.common.record.misc.EmptyRecord";
const THREAD: &str = "kieker.common.record.misc.ThreadMetaData";

#[derive(Debug, Clone, PartialEq)]
enum Sent {
    String(i32, String),
    /// A logging timestamp.
    Empty(i64),
    /// A logging timestamp, a string and a number.
    Thread(i64, i32, i64),
}

/// The bytes of items as a sender writes them that counts `length`. The two classes are 0 and 1.
fn stream(items: &[Sent], length: fn(&str) -> usize) -> Vec<u8> {
    let registration = |id: i32, text: &str| {
        let length = i32::try_from(length(text)).unwrap();
        let head = [-1, id, length].map(i32::to_be_bytes).concat();
        [&head, text.as_bytes()].concat()
    };
    let mut bytes = [registration(0, EMPTY), registration(1, THREAD)].concat();
    for item in items {
        match item {
            Sent::String(id, text) => bytes.extend(registration(*id, text)),
            Sent::Empty(time) => {
                bytes.extend(0_i32.to_be_bytes());
                bytes.extend(time.to_be_bytes());
            }
            Sent::Thread(time, id, number) => {
                bytes.extend(1_i32.to_be_bytes());
                bytes.extend(time.to_be_bytes());
                bytes.extend(id.to_be_bytes());
                bytes.extend(number.to_be_bytes());
            }
        }
    }
    bytes
}

/// The timestamps of the records, and their strings.
fn read(bytes: &[u8], step: usize) -> Result<Vec<(i64, String)>, String> {
    let mut stream = KiekerStream::new(types::shared_catalog());
    let mut left = Vec::new();
    for part in bytes.chunks(step) {
        left.extend_from_slice(part);
        let (taken, step) = stream.cut(&left);
        step.map_err(|error| error.to_string())?;
        left.drain(..taken);
    }
    stream.end();
    let (taken, step) = stream.cut(&left);
    step.map_err(|error| error.to_string())?;
    if taken < left.len() {
        return Err(format!("{} bytes are left", left.len() - taken));
    }
    let chunk = stream.take_chunk().ok_or("no record")?;
    let mut decoder = container::decoder();
    let decoded = decoder.decode(&chunk.bytes).unwrap();
    let records = decoded.batch.records().map(|record| {
        let text = match record.field("hostname") {
            Some(ValueRef::String(text)) => text.to_owned(),
            _ => String::new(),
        };
        (record.timestamp().unwrap_or(-1), text)
    });
    Ok(records.collect())
}

/// The records that these items mean.
fn meant(items: &[Sent]) -> Vec<(i64, String)> {
    let mut strings = std::collections::HashMap::new();
    let mut records = Vec::new();
    for item in items {
        match item {
            Sent::String(id, text) => drop(strings.insert(*id, text.clone())),
            Sent::Empty(time) => records.push((*time, String::new())),
            Sent::Thread(time, id, _) => records.push((*time, strings.get(id).unwrap().clone())),
        }
    }
    records
}

fn in_units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[test]
fn a_string_that_ends_in_zeros_forges_no_record() {
    let zeros = |count| "\0".repeat(count);
    for text in [
        format!("é{}", zeros(1)),
        format!("é{}", zeros(4)),
        format!("éé{}", zeros(2)),
        format!("€{}", zeros(12)),
        format!("{}é", "\u{1F980}".repeat(6)) + &zeros(16),
        "é".to_owned(),
        format!("{}é", zeros(3)),
    ] {
        for after in [
            vec![Sent::Empty(9)],
            vec![Sent::Empty(1_700_000_000_000_000_000), Sent::Empty(-1)],
            vec![Sent::Thread(256, 2, 0)],
            vec![Sent::Thread(1_700_000_000_000_000_000, 2, 3); 40],
            vec![
                Sent::Empty(1 << 60),
                Sent::String(3, "x".into()),
                Sent::Thread(8, 3, 4),
            ],
        ] {
            let items = [vec![Sent::String(2, text.clone())], after].concat();
            for (rule, length) in [
                ("units", in_units as fn(&str) -> usize),
                ("bytes", str::len),
            ] {
                for step in [1, 5, 64, 1 << 20] {
                    let read = read(&stream(&items, length), step);
                    assert_eq!(read, Ok(meant(&items)), "{rule} by {step}: {items:?}");
                }
            }
        }
    }
}

/// Streams at random, with the texts that are most easily confused.
#[test]
fn both_ways_to_count_are_told_apart_in_random_streams() {
    let mut state = 1_u64;
    let mut random = |below: u64| -> usize {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % below).unwrap()
    };
    for round in 0..4_000 {
        let mut items = Vec::new();
        for id in 2..3 + i32::try_from(random(4)).unwrap() {
            let text = (0..1 + random(5)).map(|_| ["é", "\0", "x", "€", "\u{1F980}"][random(5)]);
            items.push(Sent::String(id, text.collect()));
            for _ in 0..random(4) {
                let time = 1_700_000_000_000_000_000 + i64::try_from(random(1 << 30)).unwrap();
                let number = i64::try_from(random(300)).unwrap();
                items.push(match random(3) {
                    0 => Sent::Empty(time),
                    1 => Sent::Empty(-1),
                    _ => Sent::Thread(time, id, number),
                });
            }
        }
        items.push(Sent::Empty(5));
        let step = [1, 3, 17, 1 << 20][random(4)];
        for (rule, length) in [
            ("units", in_units as fn(&str) -> usize),
            ("bytes", str::len),
        ] {
            let read = read(&stream(&items, length), step);
            assert_eq!(
                read,
                Ok(meant(&items)),
                "{round}, {rule} by {step}: {items:?}"
            );
        }
    }
}
