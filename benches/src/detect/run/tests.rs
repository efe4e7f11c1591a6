use super::*;
use crate::detect::kind::KINDS;

fn run(kind: &Kind, steps: &[u64]) -> Run {
    Run {
        kind: kind.name.to_owned(),
        steps: steps.to_vec(),
        batch_calls: 100,
        batches: 20,
    }
}

/// A process has one controller, so the kinds take turns.
#[test]
fn more_work_takes_more_time_by_the_records_of_every_kind() {
    for kind in KINDS {
        let duet = measure(&run(kind, &[10, 20_000])).unwrap();
        let [base, changed] = duet.batches_ns.as_slice() else {
            panic!("{}: {duet:?}", kind.name)
        };
        assert!(!base.is_empty() && duet.batch_calls >= 100.0, "{duet:?}");
        let best = |batches: &[f64]| batches.iter().copied().fold(f64::INFINITY, f64::min);
        // The work differs by a factor of 2,000, so that a busy processor cannot hide it.
        assert!(best(changed) > 1.5 * best(base), "{}: {duet:?}", kind.name);
        let alone = measure(&run(kind, &[20_000])).unwrap();
        assert_eq!(alone.batches_ns.len(), 1, "{}", kind.name);
    }
}

#[test]
fn a_group_of_records_is_a_batch() {
    let times = [(1, 10), (1, 30), (4, 100), (4, 60), (9, 9)].map(|(calls, ns)| Time {
        calls,
        ..Time::of_call(ns)
    });
    assert_eq!(means(&times, 2), [20.0, 20.0]);
}

#[test]
fn a_kind_that_there_is_not_is_told() {
    let mut run = run(&KINDS[0], &[1]);
    run.kind = "nonsense".to_owned();
    let told = measure(&run).unwrap_err().to_string();
    assert!(
        told.contains("nonsense") && told.contains("part-time"),
        "{told}"
    );
}
