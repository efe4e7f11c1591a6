use super::*;

#[test]
fn payload_tells_its_label() {
    let label = Label {
        producer: 3,
        lane: 2,
        sequence: 1,
    };
    let bytes = payload(label, 1000);
    assert_eq!(bytes.len(), 1000);
    assert_eq!(read_label(&bytes), label);
}

#[test]
#[should_panic(expected = "were altered")]
fn altered_payload_is_noticed() {
    let label = Label {
        producer: 3,
        lane: 2,
        sequence: 1,
    };
    let mut bytes = payload(label, 1000).to_vec();
    bytes[700] ^= 1;
    read_label(&bytes);
}
