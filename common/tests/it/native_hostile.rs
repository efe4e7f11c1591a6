//! Native chunks made by hand to do harm, or by later versions.

use baler_common::container::{ChunkDecoder, DecodeErrorKind as Kind, Limits};
use baler_common::record::{RecordBatch, SchemaError};

use crate::native_chunks::{block, by_hand, decoder, header, inline_schema, reseal, varint};

const U64: &[u8] = &[0x09, 0];
const STRING: &[u8] = &[0x0d, 0];

#[track_caller]
fn refuse(chunk: &[u8]) -> Kind {
    decoder().decode(chunk).unwrap_err().kind
}

/// A table of one row: its columns and timestamps, with length and number of rows before them.
fn table(rows: u64, columns: &[u8]) -> Vec<u8> {
    let mut content = varint(rows);
    content.extend_from_slice(columns);
    let mut table = varint(content.len() as u64);
    table.extend(content);
    table
}

fn body(parts: &[&[u8]]) -> Vec<u8> {
    block(&parts.concat())
}

fn empty() -> Vec<u8> {
    by_hand(0, 0, 0, &[])
}

#[test]
fn a_chunk_made_by_hand_is_decoded() {
    assert!(decoder().decode(&empty()).unwrap().batch.is_empty());
    let schema = inline_schema("t", &[("a", U64)]);
    let columns = [0x00, 1, 7, 0x00, 1, 20];
    let chunk = by_hand(3, 1, 0, &body(&[&schema, &table(3, &columns)]));
    let batch = decoder().decode(&chunk).unwrap().batch;
    let times: Vec<_> = batch.records().map(|record| record.timestamp()).collect();
    assert_eq!(times, [Some(10); 3]);
}

#[test]
fn foreign_bytes_are_no_container() {
    for foreign in [
        &b""[..],
        b"BAL",
        b"balr",
        b"{\"a\": 1}",
        b"BALK\x01\x01\0\0",
    ] {
        let found = foreign.iter().take(4).copied().collect();
        assert_eq!(refuse(foreign), Kind::UnknownContainer { found });
    }
}

#[test]
fn versions_formats_and_features_to_come_are_named() {
    let changed = |at: usize, to: u8| {
        let mut chunk = empty();
        chunk[at] = to;
        reseal(&mut chunk);
        refuse(&chunk)
    };
    let unknown = |what, number| Kind::Unknown { what, number };
    assert_eq!(changed(4, 2), unknown("version", 2));
    assert_eq!(changed(5, 9), unknown("body format", 9));
    assert_eq!(changed(6, 1), unknown("value of the reserved bytes", 1));
    assert_eq!(changed(17, 0x80), unknown("required feature", 0x8000));
}

#[test]
fn optional_features_to_come_are_passed_over() {
    let mut chunk = empty();
    // An unknown flag, and three bytes appended to the header: 33 + 3.
    chunk[19] = 0x80;
    chunk[20] += 3;
    chunk.splice(54..54, [1, 2, 3]);
    reseal(&mut chunk);
    let decoded = decoder().decode(&chunk).unwrap();
    assert_eq!(decoded.batch, RecordBatch::default());
    let mut expected = header(0, 0);
    expected.identity.epoch.start_unix_ns = 0;
    expected.identity.epoch.random = 0;
    assert_eq!(decoded.summary.header, Some(expected));
}

#[test]
fn giant_counts_are_refused_before_anything_is_allocated() {
    let counts = [
        (u64::MAX, 0, 0),
        (0, u64::MAX, 0),
        (0, 0, u64::MAX),
        (5 << 20, 1, 0),
    ];
    for (records, types, strings) in counts {
        let kind = refuse(&by_hand(records, types, strings, &[]));
        assert!(matches!(kind, Kind::Limit { .. }), "{kind:?}");
    }
    let schema = inline_schema("t", &[("a", U64)]);
    let rows = refuse(&by_hand(3, 1, 0, &body(&[&schema, &table(1 << 40, &[])])));
    assert!(matches!(rows, Kind::Limit { limit: 3, .. }), "{rows:?}");
    let fields = [&[0, 1, b't'][..], &varint(1 << 30)].concat();
    let fields = refuse(&by_hand(1, 1, 0, &block(&fields)));
    assert!(
        matches!(fields, Kind::Limit { limit: 1_024, .. }),
        "{fields:?}"
    );
}

#[test]
fn lists_of_lists_of_constants_do_not_explode() {
    // Four million empty records in each of four million lists, in each of four million lists.
    let many = [0x00, 4, 0x80, 0x80, 0x80, 0x02];
    let kinds: [&[u8]; 4] = [
        &[0x11, 0x11, 0x01, 0],
        &[0x11, 0x13, 0x01, 0],
        &[0x11, 0x11, 0x12, 1, b'n', 0, 0],
        &[0x11, 0x11, 0x10, 0x09, 0],
    ];
    for kind in kinds {
        let schema = inline_schema("t", &[("a", kind)]);
        let columns = [&many[..], &many, &[0x00, 1, 1], &[0x00, 1, 1]].concat();
        let chunk = by_hand(1, 1, 0, &body(&[&schema, &table(1, &columns)]));
        let kind = refuse(&chunk);
        assert!(matches!(kind, Kind::Limit { .. }), "{kind:?}");
    }
}

#[test]
fn types_nested_too_deep_are_refused() {
    let deep = [&[0x11; 16][..], U64].concat();
    let chunk = by_hand(1, 1, 0, &body(&[&inline_schema("t", &[("a", &deep)])]));
    assert_eq!(
        refuse(&chunk),
        Kind::Limit {
            limit: 16,
            found: 17
        }
    );
    // A map is two levels.
    let maps = [&[0x13; 8][..], U64].concat();
    let chunk = by_hand(1, 1, 0, &body(&[&inline_schema("t", &[("a", &maps)])]));
    let found = 17;
    assert_eq!(refuse(&chunk), Kind::Limit { limit: 16, found });
    // Records within records, two bytes a level, for as long as the body lasts.
    let record = [0x12, 1, b'n', 1, 1, b'a'].repeat(10_000);
    let chunk = by_hand(1, 1, 0, &body(&[&inline_schema("t", &[("a", &record)])]));
    assert_eq!(
        refuse(&chunk),
        Kind::Limit {
            limit: 16,
            found: 17
        }
    );
}

#[test]
fn schemas_that_cannot_be_are_refused() {
    let twice = inline_schema("t", &[("a", U64), ("a", U64)]);
    let twice = refuse(&by_hand(1, 1, 0, &body(&[&twice])));
    assert!(matches!(
        twice,
        Kind::Schema(SchemaError::FieldTwice { .. })
    ));
    let unnamed = refuse(&by_hand(1, 1, 0, &body(&[&inline_schema("", &[])])));
    assert!(matches!(unnamed, Kind::Schema(SchemaError::Name { .. })));
    let nested = inline_schema("t", &[("a", &[0x10, 0x10, 0x09, 0])]);
    let nested = refuse(&by_hand(1, 1, 0, &body(&[&nested])));
    assert!(matches!(
        nested,
        Kind::Schema(SchemaError::NestedOptional { .. })
    ));
    let in_map = inline_schema("t", &[("a", &[0x13, 0x10, 0x10, 0x09, 0])]);
    let in_map = refuse(&by_hand(1, 1, 0, &body(&[&in_map])));
    assert!(matches!(
        in_map,
        Kind::Schema(SchemaError::NestedOptional { .. })
    ));
    let unknown = |what, number| Kind::Unknown { what, number };
    let kind = inline_schema("t", &[("a", &[0x14, 0])]);
    assert_eq!(
        refuse(&by_hand(1, 1, 0, &body(&[&kind]))),
        unknown("field type", 0x14)
    );
    let role = inline_schema("t", &[("a", &[0x09, 9])]);
    assert_eq!(
        refuse(&by_hand(1, 1, 0, &body(&[&role]))),
        unknown("role", 9)
    );
    let number = body(&[&varint(73)]);
    assert_eq!(
        refuse(&by_hand(1, 1, 0, &number)),
        unknown("well-known type", 73)
    );
}

#[test]
fn a_number_of_a_type_is_refused_without_the_table_of_types() {
    let chunk = by_hand(1, 1, 0, &body(&[&varint(2)]));
    let error = ChunkDecoder::default().decode(&chunk).unwrap_err();
    assert_eq!(error.kind, Kind::WellKnownTypesMissing { number: 2 });
}

#[test]
fn values_that_their_types_cannot_hold_are_refused() {
    // The type's bytes, and a constant one above the largest value.
    let enum_of_two: &[u8] = &[0x0f, 1, b'e', 2, 1, b'x', 1, b'y', 0];
    let cases: [(&[u8], u64); 9] = [
        (&[0x01, 0], 2),
        (&[0x02, 0], 256),
        (&[0x03, 0], 1 << 16),
        (&[0x04, 0], 1 << 32),
        (&[0x06, 0], 256),
        (&[0x08, 0], 1 << 32),
        (&[0x0a, 0], 1 << 32),
        (&[0x0c, 0], 0xd800),
        (enum_of_two, 2),
    ];
    for (kind, value) in cases {
        let value = varint(value);
        let length = varint(value.len() as u64);
        let columns = [&[0x00][..], &length, &value, &[0x00, 1, 2]].concat();
        let schema = inline_schema("t", &[("a", kind)]);
        let chunk = by_hand(1, 1, 0, &body(&[&schema, &table(1, &columns)]));
        let error = decoder().decode(&chunk).unwrap_err();
        assert!(
            matches!(error.kind, Kind::Invalid { .. }),
            "{kind:02x?} {error}"
        );
        assert!(error.in_body && error.offset > schema.len(), "{error}");
    }
}

#[test]
fn strings_are_checked() {
    let schema = inline_schema("t", &[("a", STRING)]);
    let strings = [&[0x00, 0x00, 1, 2][..], b"abcd"].concat();
    let columns = |id| table(1, &[0x00, 1, id, 0x00, 1, 2]);
    let chunk = |strings: &[u8], id| by_hand(1, 1, 2, &body(&[&schema, strings, &columns(id)]));
    assert!(decoder().decode(&chunk(&strings, 1)).is_ok());
    assert_eq!(refuse(&chunk(&strings, 2)), Kind::Invalid { found: 2 });
    // Two bytes of a character in one string, one in the other.
    let split = [&[0x00, 0x00, 1, 2][..], "a\u{20ac}".as_bytes()].concat();
    assert_eq!(refuse(&chunk(&split, 0)), Kind::Utf8);
    let not_text = [&[0x00, 0x00, 1, 1][..], b"\xff\xfe"].concat();
    assert_eq!(refuse(&chunk(&not_text, 0)), Kind::Utf8);
    let giant = [&[0x00, 0x00, 5][..], &varint(0xffff_ffff)].concat();
    assert!(matches!(refuse(&chunk(&giant, 0)), Kind::Limit { .. }));
    let long = [&[0x00, 0x00, 2][..], &varint(10_000)].concat();
    assert!(matches!(refuse(&chunk(&long, 0)), Kind::Ends { .. }));
    let without = by_hand(1, 1, 0, &body(&[&schema, &columns(0)]));
    assert_eq!(refuse(&without), Kind::Invalid { found: 0 });
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    let schema = inline_schema("t", &[]);
    let other = inline_schema("u", &[]);
    let times = [0x00, 1, 2];
    let fewer = by_hand(3, 1, 0, &body(&[&schema, &table(2, &times)]));
    let length = |declared, found| Kind::Length { declared, found };
    assert_eq!(refuse(&fewer), length(3, 2));
    let none = by_hand(0, 1, 0, &body(&[&schema, &table(0, &[])]));
    assert_eq!(refuse(&none), Kind::Invalid { found: 0 });
    let untyped = by_hand(1, 0, 0, &[]);
    assert_eq!(refuse(&untyped), length(1, 0));
    // Two records of the first type by the order, two of the second by the tables.
    let order = [0x02, 3, 0, 1, 0b100];
    let tables = [table(1, &times), table(2, &times)].concat();
    let wrong = by_hand(3, 2, 0, &body(&[&schema, &other, &order, &tables]));
    assert_eq!(refuse(&wrong), length(2, 1));
    let order = [0x02, 3, 0, 1, 0b110];
    let right = by_hand(3, 2, 0, &body(&[&schema, &other, &order, &tables]));
    assert_eq!(decoder().decode(&right).unwrap().batch.len(), 3);
    let trailing = by_hand(1, 1, 0, &body(&[&schema, &table(1, &times), &[0]]));
    assert_eq!(refuse(&trailing), Kind::Trailing { bytes: 1 });
    let in_table = by_hand(1, 1, 0, &body(&[&schema, &table(1, &[0x00, 1, 2, 9])]));
    assert_eq!(refuse(&in_table), Kind::Trailing { bytes: 1 });
}

#[test]
fn blocks_are_checked_before_they_are_decompressed() {
    let limit = |limit, found| Kind::Limit { limit, found };
    let giant = [&[1][..], &varint(1 << 40), &[1, 0]].concat();
    assert_eq!(refuse(&by_hand(0, 0, 0, &giant)), limit(256 << 20, 1 << 40));
    let half = [&[1][..], &varint(200 << 20), &[1, 0]].concat().repeat(2);
    assert_eq!(
        refuse(&by_hand(0, 0, 0, &half)),
        limit(256 << 20, 400 << 20)
    );
    let bomb = [&[1][..], &varint(2 << 20), &[1, 0]].concat();
    assert_eq!(refuse(&by_hand(0, 0, 0, &bomb)), limit(4_096, 2 << 20));
    let many = block(&[0]).repeat(17);
    assert_eq!(refuse(&by_hand(0, 0, 0, &many)), limit(16, 17));
    let unknown = Kind::Unknown {
        what: "compression",
        number: 9,
    };
    assert_eq!(refuse(&by_hand(0, 0, 0, &[9, 1, 1, 0])), unknown);
    assert_eq!(
        refuse(&by_hand(0, 0, 0, &[0, 0])),
        Kind::Invalid { found: 0 }
    );
}

#[test]
fn a_body_may_be_cut_into_blocks_anywhere() {
    let schema = inline_schema("t", &[("a", U64)]);
    let whole = [&schema[..], &table(3, &[0x00, 1, 7, 0x00, 1, 20])].concat();
    let expected = decoder()
        .decode(&by_hand(3, 1, 0, &block(&whole)))
        .unwrap()
        .batch;
    for cut in 1..whole.len() {
        let blocks = [block(&whole[..cut]), block(&whole[cut..])].concat();
        let chunk = by_hand(3, 1, 0, &blocks);
        let decoded = decoder().decode(&chunk).unwrap();
        assert_eq!(decoded.batch, expected);
    }
}

#[test]
fn limits_can_be_set() {
    let mut limits = Limits::default();
    limits.chunk_bytes = 10;
    let error = ChunkDecoder::new(limits).decode(&empty()).unwrap_err();
    assert!(matches!(error.kind, Kind::Limit { limit: 10, .. }));
}
