use baler_common::record::{Field, FieldType, Role, Schema, Value};

use super::*;

const SCHEDULE: Schedule = Schedule {
    first_ns: 1_700_000_000_000_000_000,
    start_ns: 1_700_000_001_000_000_000,
    interval_ns: 100_000.0,
    from_ns: 0,
    to_ns: 0,
};

fn calls(schedule: Schedule) -> (Times, Calls) {
    let load = Load::new(Material::of_seed(1), 7, schedule);
    match load.content {
        Content::Calls(calls) => (load.times, *calls),
        Content::Own(_) => panic!("no calls"),
    }
}

#[test]
fn a_record_is_in_the_first_burst_after_it() {
    let of = |after: i64| SCHEDULE.burst_of(SCHEDULE.start_ns + after) - SCHEDULE.start_ns;
    assert_eq!([-1, 0, 4_999_999].map(of), [0, BURST_NS, BURST_NS]);
    let before = now_ns();
    SCHEDULE.wait_for_burst_after(before);
    assert!(now_ns() >= SCHEDULE.burst_of(before));
}

#[test]
fn calls_end_when_they_are_due_at_the_rate_and_in_order() {
    let (times, calls) = calls(SCHEDULE);
    let mut long = 0;
    let mut last = SCHEDULE.start_ns;
    for position in 1..=50_000 {
        let call = calls.call(position, &times);
        assert_eq!(call.tout, times.due(position));
        assert!(last <= call.tout && call.tin <= call.tout, "{call:?}");
        long += u64::from(call.tout - call.tin > 1_000_000);
        last = call.tout;
    }
    assert!(long > 2_000, "{long}");
    let last = last - SCHEDULE.start_ns;
    assert!((4_999_900_000..=5_000_000_000).contains(&last), "{last}");
}

#[test]
fn the_same_seed_and_schedule_make_the_same_calls() {
    let of = |schedule, records| -> Vec<Call> {
        let (times, calls) = calls(schedule);
        (0..records)
            .map(|position| calls.call(position, &times))
            .collect()
    };
    assert_eq!(of(SCHEDULE, 3_000), of(SCHEDULE, 3_000));
    let mut later = SCHEDULE;
    later.start_ns += 7;
    assert_ne!(of(SCHEDULE, 3_000), of(later, 3_000));
    // Record 0 is made before the start of the others is known.
    assert_eq!(of(SCHEDULE, 1), of(later, 1));
}

/// A record that was logged when its time was 5, with a number.
fn own(number: i64) -> DynamicRecord {
    let time = Field::new("time", FieldType::I64).with_role(Role::UnixNanos);
    let fields = [time, Field::new("number", FieldType::I64)];
    let schema = Schema::new("Own", fields).unwrap();
    DynamicRecord::new(schema.into(), Some(5), [5, number].map(Value::Signed)).unwrap()
}

#[test]
fn records_of_the_user_come_in_turn_and_again_at_the_time_when_they_are_due() {
    let own = [1, 2, 3].map(own);
    let material = Material { seed: 1, own: &own };
    let mut load = Load::new(material, 7, SCHEDULE);
    let mut row = Vec::new();
    for position in 0..10 {
        let due = load.due(position);
        load.write_row(position, &mut row);
        assert_eq!(plain_row::read(&row), Some((7, due)));
        let LoadRecord::Own(record) = load.record(position) else {
            panic!("a call");
        };
        assert_eq!(record.timestamp(), Some(due));
        let number = i64::try_from(position % 3).unwrap() + 1;
        let moved = DynamicRecord::from(record);
        assert_eq!(moved.values(), [due, number].map(Value::Signed));
        let end = [due.to_le_bytes(), number.to_le_bytes()].concat();
        assert_eq!(row.get(13..), Some(&*end));
    }
    let bytes = payload_per_record("none", material, 256.0, 10_000.0).unwrap();
    assert!(bytes > 1.0 && bytes < 8.0, "{bytes}");
}

#[test]
fn larger_chunks_have_fewer_bytes_a_record() {
    let of = |size| payload_per_record("none", Material::of_seed(1), size, 10_000.0).unwrap();
    let bytes = [1.0, 16.0, 256.0].map(of);
    assert!(
        bytes[0] > 2.0 * bytes[1] && bytes[1] > 1.2 * bytes[2],
        "{bytes:?}"
    );
}
