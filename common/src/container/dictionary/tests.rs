use super::*;

#[test]
fn a_dictionary_is_told_by_its_magic_and_id() {
    let dictionary = |id: u32, rest: &[u8]| {
        let bytes = [&MAGIC[..], &id.to_le_bytes(), rest].concat();
        Dictionary::new(bytes)
    };
    assert_eq!(dictionary(7, b"x").unwrap().id(), 7);
    let malformed = Err(DictionaryError::Malformed);
    assert_eq!(dictionary(0, b"x"), malformed);
    for bytes in [
        &b""[..],
        &MAGIC,
        b"\x37\xa4\x30\xec\x01\0\0",
        b"text, not a dictionary",
    ] {
        assert_eq!(Dictionary::new(bytes), malformed);
    }
    let bytes = MAX_BYTES + 1;
    let too_large = Dictionary::new(vec![0; bytes]);
    assert_eq!(too_large, Err(DictionaryError::TooLarge { bytes }));

    let mut known = Dictionaries::default();
    known.insert(dictionary(7, b"x").unwrap()).unwrap();
    known.insert(dictionary(7, b"x").unwrap()).unwrap();
    let other = known.insert(dictionary(7, b"y").unwrap());
    assert_eq!(other, Err(DictionaryError::Ambiguous { id: 7 }));
    assert!(known.get(7).is_some() && known.get(8).is_none());
}
