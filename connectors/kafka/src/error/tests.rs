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
        (Code::MessageSizeTooLarge, Concern::Size),
        (Code::InvalidRecord, Concern::Chunk),
        (Code::TopicAuthorizationFailed, Concern::Everything),
        (Code::SaslAuthenticationFailed, Concern::Everything),
        (Code::UnknownTopicOrPartition, Concern::Everything),
        (Code::MessageTimedOut, Concern::Now),
        (Code::NotLeaderForPartition, Concern::Now),
        (Code::OutOfOrderSequenceNumber, Concern::Now),
        (Code::Fatal, Concern::Now),
    ] {
        assert_eq!(concern(code), expected, "{code:?}");
    }
}
