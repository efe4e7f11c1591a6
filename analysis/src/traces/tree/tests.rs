use super::*;

/// 0 calls 1 and 3, 1 calls 2; in order of ends, and one of them twice.
fn whole() -> Trace {
    let call = |eoi, ess, tin, tout| Call {
        eoi,
        ess,
        tin,
        tout,
        operation: OperationId(0),
        failed: false,
        asynchronous: false,
    };
    Trace {
        id: 7,
        parent: None,
        session: None,
        calls: vec![
            call(2, 2, 20, 30),
            call(1, 1, 10, 40),
            call(3, 1, 50, 60),
            call(3, 1, 50, 60),
            call(0, 0, 0, 100),
        ],
        event_calls: Vec::new(),
    }
}

#[test]
fn a_whole_trace_becomes_a_tree() {
    let mut trace = whole();
    assert_eq!(trace.check(), (1, Ok(())));
    let own = [(None, 60), (Some(0), 20), (Some(1), 10), (Some(0), 10)];
    assert_eq!(trace.callers(), own);
    assert_eq!((trace.nanos(), trace.max_depth()), (100, 2));
}

#[test]
fn each_problem_is_named() {
    let named = |change: fn(&mut Vec<Call>)| {
        let mut trace = whole();
        change(&mut trace.calls);
        trace.check().1.unwrap_err()
    };
    assert_eq!(named(|calls| calls.clear()), Reason::NoCalls);
    assert_eq!(named(|calls| calls.truncate(4)), Reason::FirstNotRoot);
    assert_eq!(named(|calls| calls[1].eoi = 9), Reason::OrderGap);
    assert_eq!(named(|calls| calls[0].ess = 3), Reason::DepthJump);
    assert_eq!(named(|calls| calls[2].tin = 51), Reason::OrderRepeated);
}

#[test]
#[should_panic(expected = "the trace is valid")]
fn a_call_that_was_not_checked_gets_no_caller_by_chance() {
    let mut trace = whole();
    trace.calls[0].ess = -1;
    trace.callers();
}
