use super::*;

#[test]
fn every_byte_is_spelled_and_found_again() {
    let bytes: Vec<u8> = (0..=255).collect();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (mut packed, mut unpacked) = (vec![0; 256], vec![0; 512]);
    assert!(pack(text.as_bytes(), &mut packed));
    assert_eq!(packed, bytes);
    unpack(&packed, &mut unpacked);
    assert_eq!(unpacked, text.as_bytes());
    unpack(&bytes[250..255], &mut unpacked[..10]);
    assert_eq!(unpacked[..10], *b"fafbfcfdfe");
}

#[test]
fn what_is_no_lowercase_digit_is_left_alone() {
    let mut out = [0; 16];
    for byte in (0..=255_u8).filter(|byte| !b"0123456789abcdef".contains(byte)) {
        for at in 0..16 {
            let mut text = *b"0123456789abcdef";
            text[at] = byte;
            assert!(!pack(&text, &mut out), "{byte}");
        }
    }
    assert!(!pack(b"01234567", &mut out) && !pack(b"0123456789abcde", &mut out));
    assert!(!pack(b"0123456789abcdef01", &mut out));
}
