use super::*;

#[test]
fn order_is_abandoned_when_nobody_waits_any_more() {
    let (order, wait) = FlushOrder::new();
    assert!(!order.is_abandoned());
    let end = wait.wait(Duration::ZERO);
    assert_eq!(end.unwrap_err(), RecvTimeoutError::Timeout);
    assert!(order.is_abandoned());
    order.end(0);
}
