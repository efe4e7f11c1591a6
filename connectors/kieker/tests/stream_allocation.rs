//! Announcements in a stream of Kieker cost no memory, and a file of record types limited memory.
//!
//! A separate test binary with one test, because it counts every allocation of its process.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use baler_common::record::Catalog;
use baler_common::record::irl::{self, IrlSource, MAX_BYTES};
use baler_connector_kieker::container::KiekerStream;
use baler_connector_kieker::types;

#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The structures of a stream, its first chunk, and messages of errors.
const SLACK_BYTES: usize = 64 << 10;

fn registration(id: i32, length: i32, text: &[u8]) -> Vec<u8> {
    let head = [-1, id, length].map(i32::to_be_bytes).concat();
    [head.as_slice(), text].concat()
}

/// A class with a list and one with strings, and the beginning of a record of each.
fn announcements() -> Vec<Vec<u8>> {
    let class = b"kieker.common.record.remotecontrol.UpdateParameterEvent";
    let registered = registration(0, i32::try_from(class.len()).unwrap(), class);
    let record = [&0_i32.to_be_bytes()[..], &7_i64.to_be_bytes()].concat();
    let mut streams = Vec::new();
    for shift in 8..31 {
        let many = 1_i32 << shift;
        streams.push(registration(many, many, b"x"));
        let list = [0, 0, many].map(i32::to_be_bytes).concat();
        streams.push([&registered[..], &record, &list].concat());
        // The same as messages: kind, number of the registry, item.
        let item = |kind: u8, bytes: &[u8]| [&[kind][..], &[0; 8], bytes].concat();
        let string = item(0xff, registered.split_at(4).1);
        streams.push([string.clone(), item(1, &[&record[..], &list].concat())].concat());
        let nested = item(0xff, &[many.to_be_bytes(), many.to_be_bytes()].concat());
        streams.push([string, item(1, &[record.clone(), nested].concat())].concat());
    }
    streams
}

#[test]
fn announced_lengths_cost_nothing_and_files_of_types_cost_bounded_memory() {
    let catalog = types::shared_catalog();
    for stream in announcements() {
        let peak = counting::peak_of(|| {
            for mut cutter in [
                KiekerStream::new(catalog.clone()),
                KiekerStream::of_messages(catalog.clone(), 0),
            ] {
                cutter.cut(&stream).1.ok();
            }
        });
        assert!(peak <= SLACK_BYTES, "{peak} bytes for {stream:02x?}");
    }
    // The shortest members and definitions there are, and words without a meaning.
    for (head, part) in [
        ("package p enum E {", "A "),
        ("package p event E {", "A b "),
        ("package p", " event E"),
        ("package p", " import a"),
        ("package p event E : a", ",a"),
        ("package p event E { int a = {", "{"),
        ("", "x "),
    ] {
        let text = head.to_owned() + &part.repeat((MAX_BYTES - head.len()) / part.len());
        let source = IrlSource {
            name: "",
            text: &text,
        };
        let mut catalog = Catalog::new();
        let peak = counting::peak_of(|| {
            irl::read(&mut catalog, &[source]).ok();
        });
        assert!(peak <= 128 * MAX_BYTES, "{peak} bytes for {part}");
    }
}
