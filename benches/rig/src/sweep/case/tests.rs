use super::*;

#[test]
fn chunks_close_by_number_or_age_and_the_last_one_is_filled_where_they_close_by_number() {
    let mut case = Case {
        way: Way::Baler,
        chunk_records: Some(128),
        rate: Some(10_000.0),
        compression: None,
        wait_time_ms: Some(500.0),
        consumers: 1,
    };
    let full = |case: &Case| [1, 2, 129, 130].map(|emitted| case.full_after(emitted));
    assert_eq!(full(&case), [1, 129, 129, 257]);
    case.rate = Some(100.0);
    assert_eq!(full(&case), [1, 2, 129, 130]);
    case.rate = None;
    assert_eq!(full(&case), [1, 2, 129, 130]);
    assert!((records_of(1_024, 500.0, 10_000.0) - 1_024.0).abs() < 1e-9);
    assert!((records_of(1_024, 10.0, 10_000.0) - 100.0).abs() < 1e-9);
    assert!((records_of(1_024, 1.0, 10.0) - 1.0).abs() < 1e-9);
}
