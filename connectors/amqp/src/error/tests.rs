use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};

use super::*;

#[test]
fn refusals_are_final_unless_they_pass_by_themselves() {
    let soft = |kind, message: &str| {
        class_of_refusal(&AMQPError::new(AMQPErrorKind::Soft(kind), message.into()))
    };
    assert_eq!(soft(AMQPSoftError::ACCESSREFUSED, "no"), RetryClass::Final);
    assert_eq!(soft(AMQPSoftError::NOTFOUND, "no queue"), RetryClass::Final);
    let down = "home node 'a' of durable queue 'q' is down or inaccessible";
    assert_eq!(soft(AMQPSoftError::NOTFOUND, down), RetryClass::Retry);
    let starting = "queue 'q' in vhost '/' does not have a replica on the local node";
    assert_eq!(
        soft(AMQPSoftError::PRECONDITIONFAILED, starting),
        RetryClass::Retry
    );
    let hard = |kind, message: &str| {
        class_of_refusal(&AMQPError::new(AMQPErrorKind::Hard(kind), message.into()))
    };
    assert_eq!(
        hard(AMQPHardError::NOTALLOWED, "no vhost"),
        RetryClass::Final
    );
    let limit = "access refused: connection limit (1) is reached";
    assert_eq!(hard(AMQPHardError::NOTALLOWED, limit), RetryClass::Retry);
    assert_eq!(
        hard(AMQPHardError::CONNECTIONFORCED, "bye"),
        RetryClass::Retry
    );
}

/// The words are those of RabbitMQ 3.10 and 4.1.
#[test]
fn setting_that_suits_what_is_there_is_named() {
    let refused = |words: &str| {
        let words = format!("PRECONDITION_FAILED - inequivalent arg {words}");
        advice(&words).unwrap()
    };
    let type_of_queue = "'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' \
                             of type 'longstr' but current is";
    for (current, setting) in [
        ("none", "queue_type=classic"),
        ("'classic'", "queue_type=classic"),
        ("the value 'stream' of type 'longstr'", "queue_type=stream"),
    ] {
        let advice = refused(&format!("{type_of_queue} {current}"));
        assert!(
            advice.contains(setting) && advice.contains("declare=false"),
            "{advice}"
        );
    }
    let exchange =
        "'type' for exchange 'e' in vhost '/': received 'direct' but current is 'fanout'";
    assert!(refused(exchange).contains("exchange_type=fanout"));
    let limit = "'x-max-length' for queue 'q' in vhost '/': received none but current is the \
                     value '7' of type 'signedint'";
    assert!(refused(limit).contains("declare=false"));
    assert_eq!(advice("NOT_FOUND - no queue 'q' in vhost '/'"), None);
}

#[test]
fn limit_of_the_broker_is_read_from_its_words() {
    let words = "PRECONDITION_FAILED - message size 30000 is larger than configured max size 20000";
    assert_eq!(broker_limit(words), Some(20_000));
    assert_eq!(broker_limit("PRECONDITION_FAILED - something else"), None);
}
