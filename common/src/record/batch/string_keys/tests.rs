use super::*;

#[test]
fn strings_that_differ_in_length_or_one_byte_differ_in_their_hash() {
    let secret = StringKeys::default().secret;
    let strings: [&[u8]; 9] = [
        b"",
        &[0],
        &[0, 0],
        b"12345678",
        b"12345678\0",
        b"12345679",
        &[0; 16],
        &[0; 17],
        &[0; 32],
    ];
    let hashes: std::collections::HashSet<_> =
        strings.iter().map(|string| hash(string, secret)).collect();
    assert_eq!(hashes.len(), strings.len());
}
