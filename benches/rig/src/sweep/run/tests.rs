use super::super::cell::tests::case;
use super::*;

#[test]
fn settings_are_added_once() {
    for (uri, setting, expected) in [
        ("kafka://a/t", "", "kafka://a/t"),
        ("kafka://a/t", "x=1", "kafka://a/t?x=1"),
        ("kafka://a/t?y=2", "x=1", "kafka://a/t?y=2&x=1"),
        ("kafka://a/t?x=2", "x=1", "kafka://a/t?x=2"),
    ] {
        assert_eq!(with(uri, setting), expected);
    }
}

#[test]
fn bytes_and_messages_of_a_rate_that_was_kept_are_those_of_a_record_times_the_rate() {
    // 21 chunks of 100 records in two seconds, of 24 at 980 records a second.
    let mark = |seconds: u64, messages: u64| Mark {
        counters: Counters {
            confirmed: messages * 100,
            messages,
            elapsed_ns: seconds * 1_000_000_000,
            cpu_ns: 0,
        },
        wire_bytes: seconds * 21_000,
        reader_cpu: Duration::ZERO,
        broker_cpu: None,
    };
    let mut case = case(Way::Baler, Some(100));
    case.rate = Some(980.0);
    let of = |case: &Case| {
        let sample = between(case, &mark(1, 3), &mark(3, 24), 2_401, 48_000);
        [WIRE_BYTES, MESSAGES].map(|name| sample.figures[name])
    };
    let [bytes, messages] = of(&case);
    assert!((bytes - 19_600.0).abs() < 1e-6 && (messages - 9.8).abs() < 1e-9);
    case.rate = None;
    assert_eq!(of(&case), [21_000.0, 10.5]);
}
