use super::*;

#[test]
fn a_balance_adds_up_to_the_wall_time() {
    let balance = closed(100.0, [("work", 60.0), ("probes", 15.0)]);
    assert_eq!((balance["wall"], balance["rest"]), (100.0, 25.0));
    // The parts of other cores can be longer than the wall time.
    assert_eq!(closed(10.0, [("work", 12.0)])["rest"], -2.0);
}

#[test]
fn times_of_many_records_are_added_up_by_operation() {
    let mut recorded = Recorded::default();
    for (operation, ns) in [("a", 5), ("b", 1), ("a", 9)] {
        recorded.add_time(operation, Time::of_call(ns));
    }
    let estimates = recorded.estimates();
    let of = |index: usize| {
        let it = &estimates[index];
        (&*it.estimator, &*it.method, it.ns, it.calls)
    };
    assert_eq!(of(0), ("probes", "a", 14, Some((2, 5, 9))));
    assert_eq!(of(1), ("probes", "b", 1, Some((1, 1, 1))));
    assert_eq!(estimates.len(), 2);
}
