//! Times of senders whose unit is not the nanosecond.

use baler_common::record::Value;
use baler_connector_kieker::container::{self, KiekerStream, StreamStep, TimeUnit};
use baler_connector_kieker::types;

const STRINGS: [&str; 7] = [
    "kieker.common.record.misc.KiekerMetadataRecord",
    "kieker.common.record.controlflow.OperationExecutionRecord",
    "kieker.common.record.flow.trace.operation.EntryLevelBeforeOperationEvent",
    "text",
    "MILLISECONDS",
    "NANOSECONDS",
    "FORTNIGHTS",
];

/// An item: `FF` or `01` and the number of the writer precede it in messages.
fn item(is_message: bool, kind: u8, bytes: &[&[u8]]) -> Vec<u8> {
    let head: &[u8] = if is_message {
        &[kind, 0, 0, 0, 0, 0, 0, 0, 7]
    } else {
        &[]
    };
    let mark: &[u8] = if is_message || kind == 1 {
        &[]
    } else {
        &[0xff; 4]
    };
    [&[head, mark], bytes].concat().concat()
}

fn strings(is_message: bool) -> Vec<u8> {
    let strings = (0_i32..).zip(STRINGS).flat_map(|(id, text)| {
        let length = i32::try_from(text.len()).unwrap().to_be_bytes();
        item(
            is_message,
            0xff,
            &[&id.to_be_bytes(), &length, text.as_bytes()],
        )
    });
    strings.collect()
}

fn metadata(is_message: bool, timestamp: i64, unit: i32) -> Vec<u8> {
    let text = 3_i32.to_be_bytes();
    let fields: [&[u8]; 10] = [
        &0_i32.to_be_bytes(),
        &timestamp.to_be_bytes(),
        &text,
        &text,
        &text,
        &[0; 4],
        &[0],
        &5_i64.to_be_bytes(),
        &unit.to_be_bytes(),
        &9_i64.to_be_bytes(),
    ];
    item(is_message, 1, &fields)
}

fn execution(is_message: bool, [timestamp, tin, tout]: [i64; 3]) -> Vec<u8> {
    let text = 3_i32.to_be_bytes();
    let trace = 2_i64.to_be_bytes();
    let (tin, tout) = (tin.to_be_bytes(), tout.to_be_bytes());
    let head = [1_i32.to_be_bytes().as_slice(), &timestamp.to_be_bytes()].concat();
    item(
        is_message,
        1,
        &[&head, &text, &text, &trace, &tin, &tout, &text, &[0; 8]],
    )
}

/// An event with lists of 1 and 2 strings.
fn entry(is_message: bool, timestamp: i64) -> Vec<u8> {
    let text = 3_i32.to_be_bytes();
    let time = timestamp.to_be_bytes();
    let head = [2_i32.to_be_bytes().as_slice(), &time, &time, &[0; 12]].concat();
    let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
    item(
        is_message,
        1,
        &[
            &head, &text, &text, &one, &text, &two, &text, &text, &[0; 4],
        ],
    )
}

/// The logging timestamp, and the fields.
type Read = (Option<i64>, Vec<(String, Value)>);

fn records(stream: &mut KiekerStream, bytes: &[u8]) -> Vec<Read> {
    let (taken, step) = stream.cut(bytes);
    assert!(matches!(step, Ok(StreamStep::More(_))), "{step:?}");
    assert_eq!(taken, bytes.len());
    let chunk = stream.take_chunk().unwrap();
    let mut decoder = container::decoder();
    let decoded = decoder.decode(&chunk.bytes).unwrap();
    let records = decoded.batch.records().map(|it| {
        let values = it.fields().values();
        let values = values.map(|(name, value)| (name.to_owned(), value.to_value()));
        (it.timestamp(), values.collect())
    });
    records.collect()
}

fn times((timestamp, fields): &Read) -> Vec<i64> {
    let times = fields
        .iter()
        .filter(|(name, _)| ["timestamp", "tin", "tout"].contains(&&**name));
    let times = times.filter_map(|(_, value)| match value {
        Value::Signed(time) => Some(*time),
        _ => None,
    });
    timestamp.iter().copied().chain(times).collect()
}

#[test]
fn times_after_a_metadata_record_are_of_its_unit() {
    for is_message in [false, true] {
        let new = || match is_message {
            true => KiekerStream::of_messages(types::shared_catalog(), 7),
            false => KiekerStream::new(types::shared_catalog()),
        };
        let mut stream = new();
        let sent = [
            strings(is_message),
            execution(is_message, [1, 2, 3]),
            metadata(is_message, 4, 4),
            execution(is_message, [5, -1, 0]),
            entry(is_message, 6),
            execution(is_message, [i64::MAX / 10, 7, 8]),
            metadata(is_message, 9, 5),
            execution(is_message, [10, 11, 12]),
            metadata(is_message, 13, 4),
        ];
        let records = records(&mut stream, &sent.concat());
        let found: Vec<_> = records.iter().map(times).collect();
        let ms = 1_000_000;
        let expected: [&[i64]; 8] = [
            &[1, 2, 3],
            &[4 * ms],
            &[5 * ms, -1, 0],
            &[6 * ms, 6 * ms],
            &[i64::MAX, 7 * ms, 8 * ms],
            &[9],
            &[10, 11, 12],
            &[13 * ms],
        ];
        assert_eq!(found, expected);
        // What comes out is in nanoseconds, and says so.
        for (place, offset) in [(1, 5 * ms), (5, 5), (7, 5 * ms)] {
            let fields = &records[place].1;
            assert_eq!(fields[5].1, Value::Signed(offset));
            assert_eq!(fields[6].1, Value::String("NANOSECONDS".into()));
        }
        assert_eq!(stream.time_unit(), TimeUnit::Milliseconds);

        // A later reader of the messages goes on with the strings and the unit that were kept.
        let mut later = new();
        for (id, text) in stream.strings().map(|(id, text)| (id, text.to_owned())) {
            later.restore(id, &text).unwrap();
        }
        let again = execution(is_message, [1, 2, 3]);
        assert_eq!(
            times(&self::records(&mut later, &again)[0]),
            [ms, 2 * ms, 3 * ms]
        );
        let kept = stream.take_new_strings();
        let mut later = new();
        kept.iter()
            .for_each(|(id, text)| later.restore(*id, text).unwrap());
        assert_eq!(later.time_unit() == TimeUnit::Milliseconds, is_message);
    }
}

#[test]
fn a_setting_counts_more_than_a_metadata_record() {
    let stream = KiekerStream::new(types::shared_catalog());
    let mut stream = stream.with_time_unit(Some(TimeUnit::Seconds));
    stream.restore_time_unit(TimeUnit::Hours);
    let sent = [
        strings(false),
        execution(false, [1, 2, 3]),
        metadata(false, 4, 4),
    ];
    let found = records(&mut stream, &sent.concat());
    let seconds = [1, 2, 3, 4].map(|it| it * 1_000_000_000);
    assert_eq!(times(&found[0]), seconds[..3]);
    assert_eq!(times(&found[1]), seconds[3..]);
    assert_eq!(found[1].1[5].1, Value::Signed(5_000_000));
}

#[test]
fn a_unit_that_java_does_not_have_is_nanoseconds() {
    let mut stream = KiekerStream::new(types::shared_catalog());
    let sent = [
        strings(false),
        metadata(false, 4, 6),
        execution(false, [1, 2, 3]),
    ];
    let found = records(&mut stream, &sent.concat());
    assert_eq!(times(&found[1]), [1, 2, 3]);
    assert_eq!(found[0].1[6].1, Value::String("FORTNIGHTS".into()));
}
