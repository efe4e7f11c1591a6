use std::collections::{HashMap, HashSet};

use super::*;

const CALLS: usize = 100_000;

#[test]
fn a_seed_always_makes_the_same_calls_and_emitters_have_traces_of_their_own() {
    let calls = |workload: Workload| workload.take(1_000).collect::<Vec<_>>();
    let (first, second) = (Workload::new(1), Workload::of_emitter(1, 1));
    assert_eq!(calls(first.clone()), calls(Workload::of_emitter(1, 0)));
    assert_ne!(calls(first.clone()), calls(Workload::new(2)));
    assert_eq!(first.names(), second.names());
    let traces = |workload| -> HashSet<i64> {
        let calls = calls(workload).into_iter();
        calls.map(|call| call.trace_id).collect()
    };
    assert!(traces(first).is_disjoint(&traces(second)));
}

#[test]
fn it_has_the_shape_that_its_description_says_and_calls_nest() {
    let workload = Workload::new(1);
    let operations = &workload.names().operations;
    let lengths: usize = operations.iter().map(String::len).sum();
    assert!((88..98).contains(&(lengths / OPERATIONS)), "{lengths}");
    let mut traces: HashMap<i64, Vec<Call>> = HashMap::new();
    let mut last = i64::MIN;
    for call in workload.take(CALLS) {
        assert!(call.tin < call.tout && last <= call.tout);
        assert!(call.ess < i32::try_from(MAX_DEPTH).unwrap());
        last = call.tout;
        traces.entry(call.trace_id).or_default().push(call);
    }
    let mean = CALLS as f64 / traces.len() as f64;
    assert!((22.0..24.5).contains(&mean), "{mean}");
    let whole = traces
        .values_mut()
        .filter(|calls| calls.iter().any(|call| call.eoi == 0));
    for calls in whole {
        calls.sort_by_key(|call| call.eoi);
        let mut stack: Vec<Call> = Vec::new();
        for (eoi, call) in (0_i32..).zip(calls.iter()) {
            assert_eq!(call.eoi, eoi);
            stack.truncate(usize::try_from(call.ess).unwrap());
            assert_eq!(stack.len(), usize::try_from(call.ess).unwrap());
            if let Some(caller) = stack.last() {
                assert!(caller.tin < call.tin && call.tout < caller.tout);
            }
            stack.push(*call);
        }
    }
}
