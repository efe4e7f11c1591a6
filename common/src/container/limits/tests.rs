use super::*;

#[test]
fn a_budget_says_how_much_would_have_been_needed() {
    let mut budget = Budget::new(100);
    assert_eq!(budget.charge(10, 8), Ok(()));
    let over = DecodeErrorKind::Limit {
        limit: 100,
        found: 104,
    };
    assert_eq!(budget.charge(3, 8), Err(over));
    assert_eq!(budget.charge(20, 1), Ok(()));
    assert!(budget.charge(usize::MAX, 8).is_err());
}
