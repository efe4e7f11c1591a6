use super::*;

#[test]
fn alert_about_the_client_is_a_refusal() {
    let received = "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate \
                        required: SSL alert number 116 (after 0ms in state APIVERSION_QUERY)";
    assert!(is_alert(received));
    for other in [
        "",
        "SSL alert number ",
        "SSL alert number 80",
        "Connection reset",
    ] {
        assert!(!is_alert(other), "{other}");
    }
}

#[test]
fn errors_are_sorted_by_what_they_concern() {
    use RDKafkaErrorCode as Code;
    for (code, expected) in [
        (Code::MessageSizeTooLarge, ErrorClass::TooLarge),
        (Code::InvalidRecord, ErrorClass::InvalidMessage),
        (Code::TopicAuthorizationFailed, ErrorClass::Permanent),
        (Code::SaslAuthenticationFailed, ErrorClass::Permanent),
        (Code::UnknownTopicOrPartition, ErrorClass::Permanent),
        (Code::MessageTimedOut, ErrorClass::Transient),
        (Code::NotLeaderForPartition, ErrorClass::Transient),
        (Code::OutOfOrderSequenceNumber, ErrorClass::Transient),
        (Code::Fatal, ErrorClass::Transient),
    ] {
        assert_eq!(error_class(code), expected, "{code:?}");
    }
}
