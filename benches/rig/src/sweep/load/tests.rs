use super::*;

const SCHEDULE: Schedule = Schedule {
    first_ns: 1_700_000_000_000_000_000,
    start_ns: 1_700_000_001_000_000_000,
    interval_ns: 100_000.0,
    from_ns: 0,
    to_ns: 0,
};

#[test]
fn a_record_is_in_the_first_burst_after_it() {
    let of = |after: i64| SCHEDULE.burst_of(SCHEDULE.start_ns + after) - SCHEDULE.start_ns;
    assert_eq!([-1, 0, 4_999_999].map(of), [0, BURST_NS, BURST_NS]);
    let before = now_ns();
    SCHEDULE.wait_for_burst_after(before);
    assert!(now_ns() >= SCHEDULE.burst_of(before));
}

#[test]
fn calls_end_when_they_are_due_at_the_rate_in_order_and_in_traces_of_the_run() {
    let load = Load::new(1, 7, SCHEDULE);
    let mut long = 0;
    let mut last = SCHEDULE.start_ns;
    for position in 1..=50_000 {
        let call = load.call(position);
        assert_eq!(call.tout, load.due(position));
        assert!(last <= call.tout && call.tin <= call.tout, "{call:?}");
        assert_eq!(run_of(call.trace_id), 7);
        long += u64::from(call.tout - call.tin > 1_000_000);
        last = call.tout;
    }
    assert!(long > 2_000, "{long}");
    let last = last - SCHEDULE.start_ns;
    assert!((4_999_900_000..=5_000_000_000).contains(&last), "{last}");
}

#[test]
fn the_same_seed_run_and_schedule_make_the_same_load() {
    let calls = |run, schedule, records| -> Vec<Call> {
        let load = Load::new(1, run, schedule);
        (0..records).map(|position| load.call(position)).collect()
    };
    assert_eq!(calls(1, SCHEDULE, 3_000), calls(1, SCHEDULE, 3_000));
    assert_ne!(calls(1, SCHEDULE, 3_000), calls(2, SCHEDULE, 3_000));
    let mut later = SCHEDULE;
    later.start_ns += 7;
    assert_ne!(calls(1, SCHEDULE, 3_000), calls(1, later, 3_000));
    // Record 0 is made before it is known when the others begin.
    assert_eq!(calls(1, SCHEDULE, 1), calls(1, later, 1));
}

#[test]
fn larger_chunks_have_fewer_bytes_a_record() {
    let of = |size| payload_per_record("none", 1, size, 10_000.0).unwrap();
    let bytes = [1.0, 16.0, 256.0].map(of);
    assert!(
        bytes[0] > 2.0 * bytes[1] && bytes[1] > 1.2 * bytes[2],
        "{bytes:?}"
    );
}
