use super::*;

#[test]
fn batches_have_a_thousand_instrumented_calls_and_the_first_half_is_warm_up() {
    let mut case = Case {
        variant: "none".into(),
        threads: 2,
        depth: 10,
        calls: 2_000,
    };
    assert_eq!(case.batch_calls(), 100);
    assert_eq!(case.batches(), (10, 10));
    assert_eq!(case.instrumented_calls(), 40_000);
    // An incomplete batch is rounded up to a whole one.
    case.calls = 1_001;
    assert_eq!(case.batches(), (5, 6));
    assert_eq!(case.instrumented_calls(), 22_000);
    case.depth = 2_000;
    assert_eq!(case.batch_calls(), 1);
    case.calls = 1;
    assert_eq!(case.batches(), (0, 1));
}
