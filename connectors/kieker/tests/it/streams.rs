//! The bytes that Kieker's own writers sent, against the records beside them.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_connector_testkit::within_patience;
use serde_json::Value;

use crate::support::{
    EMPTY, Heard, connect, data, expected, reader, record, registered, registration, send,
};

/// The entries of a registry of two sockets: id and text, whose length is in UTF-16 units.
fn entries(mut registry: &[u8]) -> Vec<(i32, String)> {
    let mut entries = Vec::new();
    while let Some((id, rest)) = registry.split_first_chunk() {
        let (length, rest) = rest.split_first_chunk().unwrap();
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap();
        // The fewest bytes that make this number of units and end with a whole character.
        let text = (length..=3 * length)
            .filter_map(|bytes| std::str::from_utf8(rest.get(..bytes)?).ok())
            .find(|text| text.encode_utf16().count() == length);
        let text = text.unwrap().to_owned();
        registry = &rest[text.len()..];
        entries.push((i32::from_be_bytes(*id), text));
    }
    entries
}

#[test]
fn recorded_streams_of_one_socket_decode_to_their_records() {
    for (stream, records) in [
        ("single-ascii.bin", "single-ascii.jsonl"),
        ("single-mixed.bin", "single-mixed.jsonl"),
    ] {
        let mut reader = reader("");
        let expected = expected(records);
        drop(send(reader.local_addr(), &data(stream)));
        let heard = Heard::default().until(&mut reader, expected.len());
        assert_eq!(heard.records, expected, "{stream}");
        assert!(heard.damaged.is_empty(), "{:?}", heard.damaged);
        let stats = reader.stats();
        assert_eq!(stats.connections, 1);
        assert_eq!(stats.records, u64::try_from(expected.len()).unwrap());
        let sequences = heard.metas.iter().map(|meta| meta.identity.sequence);
        assert!(sequences.eq(0..stats.chunks), "sequence numbers are dense");
    }
}

#[test]
fn times_of_a_sender_are_of_the_unit_of_its_setting() {
    let mut reader = reader("?time_unit=us");
    let stream = [registered(0, EMPTY), record(0, 17)].concat();
    drop(send(reader.local_addr(), &stream));
    let heard = Heard::default().until(&mut reader, 1);
    assert_eq!(heard.records[0]["timestamp"], 17_000);
}

/// The ids of traces in a record, with the others taken out of it.
fn take_trace_ids(record: &mut Value) -> Vec<i64> {
    let fields = record["fields"].as_object_mut().unwrap();
    let is_id = |name: &str| name == "traceId" || name.ends_with("TraceId");
    let names: Vec<_> = fields.keys().filter(|name| is_id(name)).cloned().collect();
    let ids = names.iter().map(|name| fields.remove(name).unwrap());
    ids.map(|id| id.as_i64().unwrap()).collect()
}

#[test]
fn ids_of_traces_are_unique_across_connections_on_request_and_nothing_else_changes() {
    let mut reader = reader("?trace_ids=unique");
    let mut expected = expected("single-ascii.jsonl");
    let sent: Vec<_> = expected.iter_mut().map(take_trace_ids).collect();
    let mut all = HashSet::new();
    for _ in 0..2 {
        drop(send(reader.local_addr(), &data("single-ascii.bin")));
        let mut heard = Heard::default().until(&mut reader, expected.len());
        let received: Vec<_> = heard.records.iter_mut().map(take_trace_ids).collect();
        assert_eq!(heard.records, expected);
        let pairs = || sent.iter().flatten().zip(received.iter().flatten());
        let ids: HashMap<_, _> = pairs().collect();
        assert_eq!(ids.get(&-1), Some(&&-1), "no trace is no trace");
        for (sent, received) in pairs() {
            assert_eq!(ids[sent], received, "one id becomes one id");
            assert_eq!(sent.is_negative(), received.is_negative());
            assert_eq!(sent == received, *sent == -1);
        }
        let new = ids.values().filter(|id| ***id != -1);
        for id in new {
            assert!(all.insert(**id), "{id} is not unique");
        }
    }
    assert!(all.len() > 20, "{}", all.len());
}

#[test]
fn bytes_that_come_in_small_pieces_are_the_same_stream() {
    let mut reader = reader("");
    let expected = expected("single-ascii.jsonl");
    let mut sender = connect(reader.local_addr());
    sender.set_nodelay(true).unwrap();
    for part in data("single-ascii.bin").chunks(7) {
        sender.write_all(part).unwrap();
    }
    let heard = Heard::default().until(&mut reader, expected.len());
    assert_eq!(heard.records, expected);
}

#[test]
fn recorded_stream_of_two_sockets_decodes_whichever_socket_is_ahead() {
    let expected = expected("dual-unicode.jsonl");
    let (registry, records) = (
        data("dual-unicode-registry.bin"),
        data("dual-unicode-records.bin"),
    );
    for registry_first in [true, false] {
        let mut reader = reader("?registry_port=0");
        let addresses = (reader.local_addr(), reader.registry_addr().unwrap());
        let mut first = connect(addresses.0);
        let mut second = connect(addresses.1);
        if registry_first {
            second.write_all(&registry).unwrap();
            first.write_all(&records).unwrap();
        } else {
            first.write_all(&records).unwrap();
            // The reader waits for strings at its first record, and says nothing.
            within_patience("the first bytes", || {
                (reader.stats().bytes > 0).then_some(())
            });
            for part in registry.chunks(5) {
                second.write_all(part).unwrap();
            }
        }
        drop((first, second));
        let heard = Heard::default().until(&mut reader, expected.len());
        assert_eq!(heard.records, expected);
        assert!(heard.damaged.is_empty(), "{:?}", heard.damaged);
    }
}

#[test]
fn lengths_in_units_and_in_bytes_are_told_apart_at_the_first_string_beyond_ascii() {
    let expected = expected("dual-unicode.jsonl");
    let entries = entries(&data("dual-unicode-registry.bin"));
    let units = |text: &str| text.encode_utf16().count();
    let bytes = |text: &str| text.len();
    let lengths: [fn(&str) -> usize; 2] = [units, bytes];
    for length in lengths {
        for step in [1_000_000, 11] {
            let mut stream = Vec::new();
            for (id, text) in &entries {
                let length = i32::try_from(length(text)).unwrap();
                stream.extend(registration(*id, length, text.as_bytes()));
            }
            stream.extend(data("dual-unicode-records.bin"));
            let mut reader = reader("");
            let mut sender = connect(reader.local_addr());
            for part in stream.chunks(step) {
                sender.write_all(part).unwrap();
            }
            let heard = Heard::default().until(&mut reader, expected.len());
            assert_eq!(heard.records, expected);
        }
    }
}

#[test]
fn characters_of_two_units_and_ids_with_gaps_are_read() {
    let class = "kieker.common.record.misc.ThreadMetaData";
    for length in ["🦀 é".len(), "🦀 é".encode_utf16().count()] {
        let mut stream = registered(70_000, class);
        stream.extend(registration(
            i32::MAX,
            i32::try_from(length).unwrap(),
            "🦀 é".as_bytes(),
        ));
        stream.extend(record(70_000, -1));
        stream.extend(i32::MAX.to_be_bytes());
        stream.extend(5_i64.to_be_bytes());
        // The id gets another string, within one chunk.
        stream.extend(registered(i32::MAX, "later"));
        stream.extend(record(70_000, 9));
        stream.extend(i32::MAX.to_be_bytes());
        stream.extend(6_i64.to_be_bytes());
        let mut reader = reader("");
        let _sender = send(reader.local_addr(), &stream);
        let heard = Heard::default().until(&mut reader, 2);
        let hosts: Vec<_> = heard
            .records
            .iter()
            .map(|it| &it["fields"]["hostname"])
            .collect();
        assert_eq!(hosts, ["🦀 é", "later"]);
        assert!(heard.records[0]["timestamp"].is_null());
        assert_eq!(heard.records[1]["timestamp"], 9);
    }
}

#[test]
fn senders_are_producers_of_their_own_and_each_keeps_its_strings() {
    let mut reader = reader("");
    let expected = expected("single-ascii.jsonl");
    let stream = data("single-ascii.bin");
    let (head, tail) = stream.split_at(stream.len() / 2);
    let mut senders: Vec<_> = (0..8).map(|_| send(reader.local_addr(), head)).collect();
    for sender in &mut senders {
        sender.write_all(tail).unwrap();
    }
    let heard = Heard::default().until(&mut reader, 8 * expected.len());
    let mut producers: Vec<_> = heard.metas.iter().map(|it| it.identity.producer).collect();
    producers.sort();
    producers.dedup();
    assert_eq!(producers.len(), 8);
    let mut texts: Vec<_> = heard.records.iter().map(ToString::to_string).collect();
    let mut wanted: Vec<_> = (0..8)
        .flat_map(|_| expected.iter().map(ToString::to_string))
        .collect();
    texts.sort();
    wanted.sort();
    assert!(texts == wanted, "each record came eight times");
}

#[test]
fn chunks_that_are_given_back_come_again_in_order_and_demand_is_kept() {
    let mut reader = reader("?max_age=1ms");
    reader.set_demand(1);
    let mut sender = send(reader.local_addr(), &registered(0, EMPTY));
    let soon = || Instant::now() + Duration::from_secs(10);
    let now = || Instant::now() + Duration::from_millis(20);
    let next = |reader: &mut dyn ChunkReader| match reader.receive(soon()).unwrap() {
        Received::Chunk(delivery) => delivery,
        other => panic!("{other:?}"),
    };
    sender.write_all(&record(0, 1)).unwrap();
    let first = next(&mut reader);
    sender.write_all(&record(0, 2)).unwrap();
    within_patience("the second chunk", || {
        (reader.stats().chunks == 2).then_some(())
    });
    assert!(
        matches!(reader.receive(now()).unwrap(), Received::Idle),
        "demand is 1"
    );
    reader.settle(first.token, Verdict::Retry).unwrap();
    let again = next(&mut reader);
    assert_eq!((again.meta, again.redelivered), (first.meta, true));
    reader.settle(again.token, Verdict::Ack).unwrap();
    let second = next(&mut reader);
    assert_eq!(second.meta.unwrap().identity.sequence, 1);
    let report = Box::new(reader).close(soon());
    assert_eq!(report.unsettled, 1);
}

#[test]
fn sender_is_held_back_while_the_owner_does_not_settle() {
    let mut reader = reader("?memory=64KiB");
    let count = 2_000_000_usize;
    let address = reader.local_addr();
    let writing = std::thread::spawn(move || {
        let mut sender = send(address, &registered(0, EMPTY));
        let part: Vec<u8> = (0..1_000).flat_map(|_| record(0, 7)).collect();
        for _ in 0..count / 1_000 {
            sender.write_all(&part).unwrap();
        }
    });
    // The memory is full when nothing comes any more.
    let mut before = 0;
    let mut since = Instant::now();
    within_patience("the standstill", || {
        let bytes = reader.stats().bytes;
        if bytes != before {
            (before, since) = (bytes, Instant::now());
        }
        (bytes > 0 && since.elapsed() > Duration::from_millis(300)).then_some(())
    });
    assert!(reader.stats().bytes < 1 << 20, "{:?}", reader.stats());
    assert!(!writing.is_finished(), "24 MB fit into no buffer");
    let mut records = 0;
    within_patience("all records", || {
        let by = Instant::now() + Duration::from_millis(20);
        if let Received::Chunk(delivery) = reader.receive(by).unwrap() {
            records += usize::try_from(delivery.meta.unwrap().records).unwrap();
            reader.settle(delivery.token, Verdict::Ack).unwrap();
        }
        (records == count).then_some(())
    });
    writing.join().unwrap();
}
