use super::*;

fn class(operations: &[u32]) -> TraceClass {
    let calls = (0..).zip(operations).map(|(eoi, operation)| Call {
        eoi,
        ess: eoi.min(1),
        tin: 0,
        tout: 1,
        operation: OperationId(*operation),
        failed: false,
        asynchronous: false,
    });
    TraceClass {
        traces: 1,
        total_ns: 1,
        example: Trace {
            id: 0,
            parent: None,
            session: None,
            calls: calls.collect(),
            event_calls: Vec::new(),
        },
    }
}

#[test]
fn classes_with_the_same_hash_have_different_keys() {
    let mut classes = Classes::default();
    for operations in [[1, 2], [2, 1], [1, 2], [3, 3], [2, 1]] {
        let class = class(&operations);
        let calls = &class.example.calls;
        let key = classes.key_from(u64::MAX, calls, OperationId::position);
        classes.add(key, class);
    }
    let mut found: Vec<_> = classes
        .by_key
        .iter()
        .map(|(key, it)| (*key, it.class.traces))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(0, 2), (1, 1), (u64::MAX, 2)]);
}
