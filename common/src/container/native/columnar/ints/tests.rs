//! Every encoding is chosen where it is the cheapest, and returns the input.

use super::*;
use crate::container::error::DecodeErrorKind;
use crate::container::header::ClockMapping;
use crate::container::limits::Budget;
use crate::record::Column;

pub(super) const CLOCK: ClockMapping = ClockMapping {
    anchor_ticks: 1_000,
    anchor_unix_ns: 5_000_000,
    multiplier: 3,
    shift: 1,
};

pub(super) fn encode(integers: &[u64], sign: Sign) -> Vec<u8> {
    let mut column = Vec::new();
    IntEncoder::default().write(integers.iter().copied(), sign, &mut column);
    column
}

/// The integers and the encodings of a column, which must be used up.
pub(super) fn decode(
    column: &[u8],
    count: usize,
    scope: Scope<'_>,
    limit: usize,
) -> Result<(Vec<u64>, Vec<&'static str>), DecodeErrorKind> {
    let mut memory = IntScratch::default();
    let mut decoder = IntDecoder::new(Budget::new(limit), &mut memory, Some(CLOCK), true);
    let mut cursor = Cursor::in_body(column);
    let integers = decoder
        .read(&mut cursor, count, scope, "a test")
        .map_err(|error| error.kind)?
        .to_vec();
    cursor.finish("a test").map_err(|error| error.kind)?;
    Ok((integers, decoder.take_trace().unwrap()))
}

#[track_caller]
fn check(integers: &[u64], sign: Sign, encodings: &[&str]) {
    let column = encode(integers, sign);
    let (found, used) = decode(&column, integers.len(), Scope::plain(sign), 1 << 20).unwrap();
    assert_eq!(found, integers);
    assert_eq!(used, encodings, "{column:02x?}");
    if sign == Sign::Unsigned {
        check_narrow(&column, integers);
    }
}

/// Integers up to a limit are read in half the width, and the first one above it is reported.
#[track_caller]
fn check_narrow(column: &[u8], integers: &[u64]) {
    let mut memory = IntScratch::default();
    let mut narrow = |largest| {
        let mut decoder = IntDecoder::new(Budget::new(1 << 20), &mut memory, None, false);
        let mut cursor = Cursor::in_body(column);
        let found = decoder.narrow(&mut cursor, integers.len(), largest, "a test");
        found.map_err(|error| error.kind)
    };
    let most = integers.iter().copied().max().unwrap_or(0);
    let largest = most.min(u32::MAX.into());
    for largest in [largest, largest.saturating_sub(1), 0] {
        let expected = match integers.iter().find(|integer| **integer > largest) {
            Some(found) => Err(DecodeErrorKind::Invalid { found: *found }),
            None => Ok(integers
                .iter()
                .map(|integer| u32::try_from(*integer).unwrap())
                .collect()),
        };
        assert_eq!(narrow(largest), expected, "{largest}");
    }
}

pub(super) fn signed(values: impl IntoIterator<Item = i64>) -> Vec<u64> {
    values.into_iter().map(i64::cast_unsigned).collect()
}

/// Numbers without a pattern (splitmix64).
pub(super) fn noise(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(|n| {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    })
}

#[test]
fn equal_values_are_written_once() {
    check(&[7; 1_000], Sign::Unsigned, &["constant"]);
    check(&signed([-1; 3]), Sign::Signed, &["constant"]);
    check(&[u64::MAX], Sign::Unsigned, &["constant"]);
}

#[test]
fn numbers_of_a_narrow_range_are_packed() {
    let numbers: Vec<u64> = noise(100).map(|n| 1_000_000 + n % 30).collect();
    check(&numbers[..20], Sign::Unsigned, &["packed"]);
    let around_zero = noise(20).map(|n| i64::try_from(n % 13).unwrap() - 6);
    check(&signed(around_zero), Sign::Signed, &["packed"]);
}

#[test]
fn numbers_of_any_size_are_packed() {
    let numbers: Vec<u64> = noise(50).collect();
    check(&numbers, Sign::Unsigned, &["packed"]);
    check(&numbers, Sign::Signed, &["packed"]);
    let bytes = noise(50).map(|n| i64::try_from(n % 256).unwrap() - 128);
    check(&signed(bytes), Sign::Signed, &["packed"]);
}

#[test]
fn columns_that_are_only_read_are_read() {
    let cases: [(&[u8], Sign, Vec<u64>, &str); 5] = [
        (
            &[VARINT, 3, 0x81, 0x01, 7],
            Sign::Unsigned,
            vec![129, 7],
            "varint",
        ),
        (&[VARINT, 2, 1, 2], Sign::Signed, signed([-1, 1]), "varint"),
        (
            &[DELTA_VARINT, 3, 10, 1, 4],
            Sign::Unsigned,
            vec![10, 9, 11],
            "delta varint",
        ),
        (
            &[FIXED, 5, 2, 1, 0, 0xff, 0xff],
            Sign::Signed,
            signed([1, -1]),
            "fixed",
        ),
        (
            &[FIXED, 3, 1, 1, 0xff],
            Sign::Unsigned,
            vec![1, 0xff],
            "fixed",
        ),
    ];
    for (column, sign, integers, name) in cases {
        let found = decode(column, integers.len(), Scope::plain(sign), 1 << 20);
        assert_eq!(found, Ok((integers, vec![name])));
    }
}

#[test]
fn steady_growth_is_written_as_packed_differences() {
    let times: Vec<u64> = noise(100)
        .scan(1_700_000_000_000_000_000, |time, n| {
            *time += 1_000 + n % 60;
            Some(*time)
        })
        .collect();
    check(&times, Sign::Signed, &["delta packed"]);
    // Equal steps take no bit.
    let line: Vec<u64> = (0..1_000).map(|n| 5 + 3 * n).collect();
    check(&line, Sign::Unsigned, &["delta packed"]);
}

#[test]
fn few_numbers_that_are_larger_are_patched() {
    let numbers: Vec<u64> = noise(200)
        .map(|n| if n % 40 == 0 { n % 90_000 } else { n % 60 })
        .collect();
    check(&numbers, Sign::Unsigned, &["patched", "packed", "packed"]);
    let mut times: Vec<u64> = noise(200)
        .scan(1 << 60, |time, n| {
            *time += 10 + n % 60;
            Some(*time)
        })
        .collect();
    times[120..].iter_mut().for_each(|time| *time += 1 << 30);
    check(
        &times,
        Sign::Signed,
        &["delta patched", "constant", "constant"],
    );
}

#[test]
fn long_runs_are_counted() {
    let runs: Vec<u64> = noise(6)
        .flat_map(|n| vec![n; 1 + usize::try_from(n % 90).unwrap()])
        .collect();
    let (_, used) = decode(
        &encode(&runs, Sign::Unsigned),
        runs.len(),
        Scope::plain(Sign::Unsigned),
        1 << 20,
    )
    .unwrap();
    assert_eq!(used[0], "run length");
    check(&runs, Sign::Unsigned, &used);
}

#[test]
fn runs_of_few_lanes_are_found() {
    // The remaining order of calls where a chunk cuts traces.
    let mut orders = [0_i32; 128];
    for (at, order) in [
        (0, 8),
        (2, 14),
        (4, -8),
        (5, 25),
        (6, -11),
        (16, 9),
        (44, 3),
    ] {
        orders[at] = order;
    }
    let integers = signed(orders.map(i64::from));
    let (mut encoder, mut column) = (IntEncoder::default(), Vec::new());
    encoder.write(integers.iter().copied(), Sign::Signed, &mut column);
    let scope = Scope::plain(Sign::Signed);
    let (found, used) = decode(&column, orders.len(), scope, 1 << 20).unwrap();
    assert_eq!((found, used[0]), (integers, "run length"));
}

#[test]
fn few_distinct_values_in_no_order_make_a_dictionary() {
    let distinct: Vec<u64> = noise(5).collect();
    let numbers: Vec<u64> = noise(100)
        .map(|n| distinct[usize::try_from(n % 5).unwrap()])
        .collect();
    check(&numbers, Sign::Unsigned, &["dictionary", "packed"]);
}

#[test]
fn extremes_survive_in_every_sign() {
    let edges = [
        0,
        1,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        0x7f,
        0x80,
        0xffff_ffff,
    ];
    for sign in [Sign::Signed, Sign::Unsigned] {
        for a in edges {
            for b in edges {
                for c in edges {
                    let integers = [a, b, c, a];
                    let column = encode(&integers, sign);
                    let (found, _) = decode(&column, 4, Scope::plain(sign), 1 << 20).unwrap();
                    assert_eq!(found, integers, "{sign:?}");
                }
            }
        }
    }
}

#[test]
fn ticks_become_nanoseconds() {
    // Constant, ticks 1,010: 10 ticks of 1.5 ns after the anchor.
    let column = [CONSTANT | TICKS, 2, 0xf2, 0x07];
    let scope = Scope {
        ticks: true,
        ..Scope::plain(Sign::Signed)
    };
    let (integers, used) = decode(&column, 2, scope, 1 << 20).unwrap();
    assert_eq!(integers, [5_000_015, 5_000_015]);
    assert_eq!(used, ["constant", "ticks"]);
    let refused = decode(&column, 2, Scope::plain(Sign::Signed), 1 << 20);
    assert_eq!(refused, Err(DecodeErrorKind::Invalid { found: 0x80 }));
}

#[test]
fn a_reference_repeats_an_earlier_column() {
    let earlier = [Column::Bool(vec![true]), Column::Signed(vec![-5])];
    let scope = Scope {
        earlier: &earlier,
        ..Scope::plain(Sign::Signed)
    };
    let (integers, used) = decode(&[REFERENCE, 1, 1], 1, scope, 1 << 20).unwrap();
    assert_eq!((integers, used), (signed([-5]), vec!["reference"]));
    for (column, count) in [
        ([REFERENCE, 1, 0], 1),
        ([REFERENCE, 1, 2], 1),
        ([REFERENCE, 1, 1], 2),
    ] {
        assert!(decode(&column, count, scope, 1 << 20).is_err());
    }
    // Ticks would be mapped twice.
    let scope = Scope {
        ticks: true,
        ..scope
    };
    let twice = decode(&[REFERENCE | TICKS, 1, 1], 1, scope, 1 << 20);
    assert_eq!(twice, Err(DecodeErrorKind::Invalid { found: 0x88 }));
}

#[test]
fn a_column_is_charged_before_it_is_made() {
    let column = [CONSTANT, 1, 7];
    let over = decode(
        &column,
        1_000_000_000_000,
        Scope::plain(Sign::Unsigned),
        1 << 20,
    );
    assert!(matches!(over, Err(DecodeErrorKind::Limit { .. })));
    // A million runs claimed by a few bytes.
    let runs = [
        RUN_LENGTH, 9, 0xc0, 0x84, 0x3d, CONSTANT, 1, 7, CONSTANT, 1, 0,
    ];
    let over = decode(&runs, 1_000_000, Scope::plain(Sign::Unsigned), 9_000_000);
    assert!(
        matches!(over, Err(DecodeErrorKind::Limit { .. })),
        "{over:?}"
    );
}

#[test]
fn nonsense_is_refused() {
    let cases: [(&str, &[u8]); 12] = [
        ("no encoding", &[0x3f, 1, 0]),
        ("bytes left in the payload", &[CONSTANT, 2, 7, 7]),
        ("too few numbers", &[VARINT, 3, 1, 2, 3]),
        ("a width of 65", &[PACKED, 2, 0, 65]),
        ("too few packed bytes", &[PACKED, 3, 0, 3, 0]),
        ("a fixed width of 3", &[FIXED, 1, 3]),
        (
            "runs that are too long",
            &[RUN_LENGTH, 7, 1, CONSTANT, 1, 7, CONSTANT, 1, 4],
        ),
        (
            "runs that are too short",
            &[RUN_LENGTH, 7, 1, CONSTANT, 1, 7, CONSTANT, 1, 2],
        ),
        ("runs of runs", &[RUN_LENGTH, 3, 1, RUN_LENGTH, 0]),
        ("an empty dictionary", &[DICTIONARY, 1, 0]),
        (
            "a position behind the dictionary",
            &[DICTIONARY, 7, 3, VARINT, 3, 1, 2, 3, 0xff],
        ),
        ("a dictionary larger than the column", &[DICTIONARY, 1, 5]),
    ];
    for (what, column) in cases {
        let result = decode(column, 4, Scope::plain(Sign::Unsigned), 1 << 20);
        assert!(result.is_err(), "{what}: {result:?}");
    }
}
