use super::*;

#[test]
fn panic_becomes_a_failure_with_its_text() {
    assert_eq!(Failure::catching("read from", || 1), Ok(1));
    let text = Failure::catching("read from", || panic!("of a broken promise"));
    let number = Failure::catching("read from", || std::panic::panic_any(1));
    for (failed, message) in [
        (text, "this end panicked: of a broken promise"),
        (number, "this end panicked: without a message"),
    ] {
        assert_eq!(failed, Err::<(), _>(Failure::retry("read from", message)));
    }
}
