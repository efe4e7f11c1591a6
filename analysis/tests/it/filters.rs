//! Filters: what passes, and the figures they collect.

use baler_analysis::filters::{ByTime, ByType, Count, First, ResponseTimes, Tee, TypePattern};
use baler_analysis::{Parcel, Source, Stage, Stop, sinks};
use baler_common::container::ChunkHeader;
use baler_common::record::{DynamicRecord, FieldType, Record, Value};
use baler_common::transport::Verdict;

use crate::support::{Play, Scripted, encode, identity, keep_all, numbered, parcel, schema};

fn call(operation: &str, tin: i64, tout: i64) -> DynamicRecord {
    let fields = [
        ("operationSignature", FieldType::String),
        ("tin", FieldType::I64),
        ("tout", FieldType::I64),
    ];
    let values = vec![operation.into(), Value::Signed(tin), Value::Signed(tout)];
    DynamicRecord::new(schema("a.Call", &fields), Some(tout), values).unwrap()
}

#[test]
fn types_and_times_select_records_and_keep_their_order() {
    let (stage, numbers) = keep_all();
    let mut by_type = ByType::new([TypePattern::new("t")], ByTime::new(2..5, stage));
    let records: Vec<_> = (0..8)
        .flat_map(|number| [numbered(number), call("op", number, number)])
        .collect();
    by_type.accept(parcel(&records)).unwrap();
    assert_eq!(*numbers.lock().unwrap(), [2, 3, 4]);
}

#[test]
fn typed_records_of_a_parcel_are_those_that_filters_left() {
    #[derive(Record)]
    #[record(name = "a.Call", rename_all = "camelCase")]
    struct Call {
        tin: i64,
    }

    let records = [call("op", 1, 5), numbered(9), call("op", 2, 7)];
    let whole = parcel(&records);
    let times =
        |parcel: &Parcel| -> Vec<i64> { parcel.read::<Call>().map(|it| it.unwrap().tin).collect() };
    assert_eq!(times(&whole), [1, 2]);
    assert_eq!(times(&whole.select(|it| it.timestamp() != Some(5))), [2]);
    assert!(times(&whole.select(|it| it.type_name() == "t")).is_empty());
}

#[test]
fn records_are_counted_by_type_whole_or_selected() {
    let (count, counts) = Count::new();
    let (selected, selected_counts) = Count::new();
    let mut tee = Tee::new()
        .branch(count)
        .branch(ByType::new([TypePattern::new("Call")], selected))
        .branch(sinks::Null);
    tee.accept(parcel(&[numbered(1), call("op", 0, 1), numbered(2)]))
        .unwrap();
    tee.finish().unwrap();
    let by_type: Vec<_> = counts
        .by_type()
        .into_iter()
        .map(|it| (it.type_name.into_string(), it.records))
        .collect();
    assert_eq!(by_type, [("a.Call".to_owned(), 1), ("t".to_owned(), 2)]);
    assert_eq!(
        (selected_counts.records(), selected_counts.chunks()),
        (1, 1)
    );
}

#[test]
fn response_times_are_those_of_each_operation() {
    let (mut stage, times) = ResponseTimes::new();
    let mut records: Vec<_> = (1..=1_000)
        .map(|nanos| call("slow", 0, nanos * 1_000))
        .collect();
    records.extend((0..10).map(|_| call("fast", 5, 7)));
    records.push(call("fast", 7, 5));
    stage.accept(parcel(&records)).unwrap();
    // A selection takes the way through the records rather than the columns.
    stage
        .accept(parcel(&records).select(|record| record.timestamp() == Some(7)))
        .unwrap();
    let operations = times.operations();
    let slow = &operations[0];
    assert_eq!((&*slow.operation, slow.calls), ("slow", 1_000));
    assert!((slow.mean_ns - 500_500.0).abs() < 0.01);
    for (found, expected) in [
        (slow.p50_ns, 500_000),
        (slow.p95_ns, 950_000),
        (slow.p99_ns, 990_000),
    ] {
        assert!(
            found.abs_diff(expected) * 100 <= expected,
            "{found} for {expected}"
        );
    }
    assert_eq!(
        (&*operations[1].operation, operations[1].calls),
        ("fast", 20)
    );
    assert_eq!(times.ended_before_start(), 1);
}

#[test]
fn the_first_records_pass_and_a_chunk_cut_in_two_is_given_back() {
    let (reader, verdicts) = Scripted::new((0..4).map(|sequence| {
        let first = i64::try_from(sequence).unwrap() * 3;
        let records: Vec<_> = (first..first + 3).map(numbered).collect();
        Play::Chunk(encode(&ChunkHeader::new(identity(sequence)), &records))
    }));
    let (stage, numbers) = keep_all();
    let (mut first, taken) = First::new(5, stage);
    let mut source = Source::new(reader.endless());
    source
        .run(&mut first, Stop::default(), |_| !taken.is_enough())
        .unwrap();
    assert_eq!(*numbers.lock().unwrap(), [0, 1, 2, 3, 4]);
    let verdicts: Vec<_> = verdicts.lock().unwrap().iter().map(|it| it.1).collect();
    assert_eq!(verdicts, [Verdict::Ack, Verdict::Retry]);
}
