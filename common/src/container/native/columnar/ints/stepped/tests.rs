//! Steps are found if they exist, divided out, and multiplied in again.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::tests::{CLOCK, decode, encode, noise, signed};
use super::super::{
    CONSTANT, IntDecoder, IntEncoder, IntScratch, PACKED, REFERENCE, STEPPED, Scope, TICKS, VARINT,
};
use super::*;
use crate::container::limits::Budget;
use crate::record::Column;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0_u32..20, 0_u32..20).prop_map(|(twos, fives)| {
            2_u64
                .saturating_pow(twos)
                .saturating_mul(5_u64.saturating_pow(fives))
        }),
        (0_u32..64, -1_i64..2).prop_map(|(bits, more)| (1_u64 << bits).wrapping_add_signed(more)),
        1_u64..1_000,
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_common_divisor_is_the_largest(a in number(), b in number(), c in number()) {
        let (a, b) = (a.wrapping_mul(c), b.wrapping_mul(c));
        let divisor = common_divisor(a, b);
        if divisor == 0 {
            prop_assert_eq!((a, b), (0, 0));
        } else {
            prop_assert!(a % divisor == 0 && b % divisor == 0);
            prop_assert_eq!(common_divisor(a / divisor, b / divisor), 1);
        }
    }
}

/// A column that is written as if it had no step.
fn encode_plain(integers: &[u64], sign: Sign) -> Vec<u8> {
    let mut column = Vec::new();
    IntEncoder::default().write_plain(integers, sign, &mut column);
    column
}

#[test]
fn the_step_of_a_clock_is_divided_out() {
    let start = 1_700_000_000_000_000_000;
    let ticks: Vec<u64> = noise(1_024)
        .scan(0, |ticks, n| {
            *ticks += n % 50;
            Some(*ticks)
        })
        .collect();
    let fine = encode(&ticks, Sign::Signed).len();
    for step in [2, 10, 25, 100, 1_000, 15_625, 1_000_000, 15_625_000] {
        for rest in [0, 1, 7, 999] {
            let times: Vec<u64> = ticks.iter().map(|it| start + rest + it * step).collect();
            let plain = encode_plain(&times, Sign::Signed);
            let column = encode(&times, Sign::Signed);
            let scope = Scope::plain(Sign::Signed);
            let (found, used) = decode(&column, times.len(), scope, 1 << 20).unwrap();
            assert_eq!(found, times);
            assert_eq!(used, ["stepped", "delta packed"], "{step}");
            // Each number takes as many bits as with a clock without a step.
            assert!(column.len() <= fine + 24, "{} {fine}", column.len());
            let bits = usize::try_from(step.ilog2()).unwrap();
            assert!(column.len() + times.len() * bits / 8 < plain.len() + 24);
        }
    }
}

#[test]
fn spans_that_are_mostly_0_have_a_step() {
    let spans: Vec<u64> = noise(1_024)
        .map(|n| if n % 11 == 0 { n % 4 * 1_000_000 } else { 0 })
        .collect();
    let column = encode(&spans, Sign::Signed);
    let scope = Scope::plain(Sign::Signed);
    let (found, used) = decode(&column, spans.len(), scope, 1 << 20).unwrap();
    assert_eq!((found, used[0]), (spans, "stepped"));
}

#[test]
fn a_step_that_saves_nothing_is_left_out() {
    // Equal differences take no bits anyway.
    let steady: Vec<u64> = (0..1_000).map(|n| n * 1_000).collect();
    // Few numbers of few bits.
    let few = [0, 2, 4, 6, 0, 4, 6, 2];
    // One number is not a multiple.
    let mut odd: Vec<u64> = noise(1_000).map(|n| n % 5_000 * 1_000).collect();
    odd[777] += 1;
    for integers in [&steady[..], &few, &odd] {
        let column = encode(integers, Sign::Unsigned);
        assert_eq!(column, encode_plain(integers, Sign::Unsigned));
    }
}

/// Multiples of a step above a number, of which one may be off.
fn stepped() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        2_u64..=1_000_000_000,
        prop_oneof![
            Just(10),
            Just(100),
            Just(1_000),
            Just(1_000_000),
            Just(15_625)
        ],
        any::<u64>(),
    ];
    let edges = [
        0,
        1,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        (1 << 63) - 5_000_000,
    ];
    let base = prop_oneof![
        prop::sample::select(edges.to_vec()),
        any::<u64>(),
        (-5_000_i64..5_000).prop_map(i64::cast_unsigned),
    ];
    let bits = prop_oneof![4 => 1_u32..12, 1 => 12_u32..40, 1 => 40_u32..64];
    let off = prop::option::weighted(0.3, (any::<prop::sample::Index>(), 1_u64..2_000));
    let count = prop_oneof![2 => 8_usize..70, 1 => 70_usize..400, 1 => 0_usize..8];
    (step, base, bits, any::<bool>(), off, count).prop_flat_map(
        |(step, base, bits, rises, off, count)| {
            vec(any::<u64>(), count).prop_map(move |noise| {
                let mut sum = 0_u64;
                let multiple = |noise: u64| {
                    let number = noise & ((1 << bits) - 1);
                    sum = sum.wrapping_add(number);
                    base.wrapping_add(step.wrapping_mul(if rises { sum } else { number }))
                };
                let mut integers: Vec<u64> = noise.into_iter().map(multiple).collect();
                if let Some((at, more)) = &off {
                    if !integers.is_empty() {
                        let integer = at.get_mut(&mut integers);
                        *integer = integer.wrapping_add(*more);
                    }
                }
                integers
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn numbers_with_a_step_are_read_and_never_longer(integers in stepped()) {
        for sign in [Sign::Signed, Sign::Unsigned] {
            let column = encode(&integers, sign);
            let (found, _) = decode(&column, integers.len(), Scope::plain(sign), 1 << 20).unwrap();
            prop_assert_eq!(&found, &integers);
            prop_assert!(column.len() <= encode_plain(&integers, sign).len());
        }
    }
}

#[test]
fn ticks_may_have_a_step() {
    // 1,000 and 10 times 0, 1, 2: ticks of 1.5 ns after the anchor.
    let column = [STEPPED | TICKS, 7, 10, 0, PACKED, 3, 100, 2, 0b10_01_00];
    let scope = Scope {
        ticks: true,
        ..Scope::plain(Sign::Signed)
    };
    let (integers, used) = decode(&column, 3, scope, 1 << 20).unwrap();
    assert_eq!(integers, [5_000_000, 5_000_015, 5_000_030]);
    assert_eq!(used, ["stepped", "packed", "ticks"]);
}

#[test]
fn multiples_of_a_step_wrap_around() {
    // Half of all numbers, and 3, times 3.
    let half = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    let column = [&[STEPPED, 15, 3, 1, VARINT, 11][..], &half, &[3]].concat();
    let (integers, _) = decode(&column, 2, Scope::plain(Sign::Unsigned), 1 << 20).unwrap();
    assert_eq!(integers, [1 + (1 << 63), 10]);
    let column = [STEPPED, 5, 3, 1, CONSTANT, 1, 1];
    let (integers, _) = decode(&column, 2, Scope::plain(Sign::Signed), 1 << 20).unwrap();
    assert_eq!(integers, signed([-2, -2]));
}

#[test]
fn a_step_that_is_none_is_refused_where_it_stands() {
    let cases: [(&str, usize, &[u8]); 9] = [
        ("a step of 0", 2, &[STEPPED, 5, 0, 0, CONSTANT, 1, 7]),
        ("a step of 1", 2, &[STEPPED, 5, 1, 0, CONSTANT, 1, 7]),
        (
            "a rest that is none",
            3,
            &[STEPPED, 5, 9, 9, CONSTANT, 1, 7],
        ),
        ("no multiples", 4, &[STEPPED, 2, 9, 0]),
        (
            "steps of steps",
            4,
            &[STEPPED, 9, 9, 0, STEPPED, 5, 9, 0, CONSTANT, 1, 7],
        ),
        ("a reference", 4, &[STEPPED, 5, 9, 0, REFERENCE, 1, 0]),
        (
            "ticks within",
            4,
            &[STEPPED, 5, 9, 0, CONSTANT | TICKS, 1, 7],
        ),
        ("bytes left", 7, &[STEPPED, 6, 9, 0, CONSTANT, 1, 7, 7]),
        (
            "a step of 70 bits",
            2,
            &[
                STEPPED, 11, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1,
            ],
        ),
    ];
    let earlier = [Column::Unsigned(vec![7; 4])];
    let scope = Scope {
        ticks: true,
        earlier: &earlier,
        ..Scope::plain(Sign::Unsigned)
    };
    for (what, offset, column) in cases {
        let mut memory = IntScratch::default();
        let mut decoder = IntDecoder::new(Budget::new(1 << 20), &mut memory, Some(CLOCK), true);
        let mut cursor = Cursor::in_body(column);
        let error = decoder.read(&mut cursor, 4, scope, "a test").unwrap_err();
        assert_eq!(error.offset, offset, "{what}: {error}");
        let narrow = decoder.narrow(&mut Cursor::in_body(column), 4, 1_000, "a test");
        assert_eq!(narrow.unwrap_err().offset, offset, "{what}");
    }
}

#[test]
fn columns_of_a_few_outliers_are_not_spoilt_by_a_step() {
    // Only every second integer is examined, and none of these.
    for (one, other) in [(1_025, 1_000_000), (1_000, 1_000_000), (25, 1_000_000)] {
        let mut integers = vec![0_u64; 65];
        integers[63] = one;
        integers[64] = other;
        let times = encode(&integers, Sign::Signed);
        assert!(times.len() < 40, "{one} {other}: {}", times.len());
    }
}
