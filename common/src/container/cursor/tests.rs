use super::*;

#[test]
fn an_error_points_at_what_could_not_be_read() {
    let mut cursor = Cursor::new(&[1, 2, 3, 4]);
    cursor.u8("a byte").unwrap();
    let error = cursor.u32("a word").unwrap_err();
    assert_eq!(error.offset, 1);
    assert_eq!(error.reading, "a word");
    assert_eq!(error.kind, DecodeErrorKind::Ends { needed: 4, left: 3 });
    assert_eq!(cursor.u16("two bytes").unwrap(), 0x0302);
}

#[test]
fn a_section_keeps_the_offsets_of_the_whole() {
    let mut cursor = Cursor::in_body(&[2, 7, 8, 9]);
    let mut section = cursor.section("a section").unwrap();
    assert_eq!(section.u8("a byte").unwrap(), 7);
    let error = section.finish("a section").unwrap_err();
    assert_eq!((error.offset, error.in_body), (2, true));
    assert_eq!(error.kind, DecodeErrorKind::Trailing { bytes: 1 });
    assert_eq!(cursor.u8("the rest").unwrap(), 9);
}

#[test]
fn a_section_longer_than_what_is_left_is_refused_where_its_length_stands() {
    let mut cursor = Cursor::new(&[5, 1, 2]);
    let error = cursor.section("a section").unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Ends { needed: 5, left: 2 });
    assert_eq!(cursor.offset(), 0);
}
