//! Headers, and the mapping of ids.

use proptest::prelude::*;

use super::*;

/// The example of the specification.
const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn parse(header: &str) -> Result<TraceParent, TraceParentError> {
    header.parse()
}

#[test]
fn a_header_is_read_and_written() {
    let parent = parse(HEADER).unwrap();
    assert_eq!(parent.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!(parent.parent_id(), 0x00f0_67aa_0ba9_02b7);
    assert!(parent.is_sampled());
    assert_eq!(parent.kieker_trace_id(), 0x23ce_929d_0e0e_4736);
    assert_eq!((parent.kieker_order_id(), parent.state()), (-1, None));
    assert_eq!(parent.to_string(), HEADER);
}

#[test]
fn what_is_wrong_is_named() {
    let digits = |field| Err(TraceParentError::Digits { field });
    let zero = |field| Err(TraceParentError::Zero { field });
    let cases = [
        ("", Err(TraceParentError::Form)),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            Err(TraceParentError::Form),
        ),
        (
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            Err(TraceParentError::Form),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            Err(TraceParentError::Form),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            Err(TraceParentError::Form),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
            Err(TraceParentError::Form),
        ),
        (
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            Err(TraceParentError::Version),
        ),
        (
            "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            digits("version"),
        ),
        (
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            digits("trace-id"),
        ),
        (
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            digits("trace-id"),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902bX-01",
            digits("parent-id"),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            digits("trace-flags"),
        ),
        (
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            zero("trace-id"),
        ),
        (
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            zero("parent-id"),
        ),
    ];
    for (header, expected) in cases {
        assert_eq!(parse(header), expected, "{header}");
    }
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    let later = format!("{HEADER}-what-comes-then").replacen("00-", "cc-", 1);
    assert_eq!(parse(&later), parse(HEADER));
    let unknown_flags = HEADER.replace("-01", "-ff");
    assert_eq!(
        parse(&unknown_flags).unwrap().to_string(),
        HEADER.replace("-01", "-03")
    );
}

#[cfg(feature = "enable")]
#[test]
fn the_mapping_of_ids_stays_as_it_is() {
    let parent = TraceParent::of_call(0x1234_5678_9abc_def0, 7, None);
    assert_eq!(
        parent.to_string(),
        "00-161922c645ce50e8123456789abcdef0-35fc1d63025ee4db-01"
    );
    let received = parse(&parent.to_string()).unwrap();
    assert_eq!(received.kieker_trace_id(), 0x1234_5678_9abc_def0);
    let state = format!("other=1, {} ,more=2", parent.state().unwrap());
    assert_eq!(state, "other=1, baler=123456789abcdef0-00000007 ,more=2");
    let received = received.with_state(&state);
    assert_eq!(received, parent);
    assert_eq!(received.kieker_order_id(), 7);
    // The next hop keeps the id of the trace and names itself.
    let next = TraceParent::of_call(5, 0, Some(&received));
    assert_eq!(next.trace_id(), parent.trace_id());
    assert_ne!(next.parent_id(), parent.parent_id());
    assert_eq!(next.state().unwrap(), "baler=0000000000000005-00000000");
}

#[test]
fn a_state_of_others_or_a_broken_one_changes_nothing() {
    let parent = parse(HEADER).unwrap();
    for state in [
        "",
        "a=b",
        "baler=",
        "baler=1-2",
        "baler=ffffffffffffffff-00000001",
    ] {
        assert_eq!(parent.with_state(state), parent, "{state}");
    }
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(header in ".{0,60}") {
        if let Ok(parent) = parse(&header) {
            prop_assert_eq!(parse(&parent.to_string()).unwrap().trace_id(), parent.trace_id());
        }
    }

    #[test]
    fn what_is_written_is_read(trace_id in 1..=u128::MAX, parent_id in 1..=u64::MAX, flags in 0_u8..4) {
        let parent = TraceParent { trace_id, parent_id, flags, caller: None };
        prop_assert_eq!(parse(&parent.to_string()), Ok(parent));
    }
}
