use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Scope;
use super::super::tests::decode;
use super::*;

/// Columns in which every layout is the shortest at times.
fn integers() -> impl Strategy<Value = Vec<u64>> {
    let first = prop_oneof![Just(0), Just(1 << 63), Just(u64::MAX), any::<u64>()];
    let bits = prop_oneof![4 => 0_u32..12, 2 => 12_u32..34, 1 => 34_u32..65];
    let step = prop_oneof![Just(0), Just(1_000_u64), any::<u64>()];
    let repeats = prop_oneof![Just(1_usize), 1_usize..9];
    let count = prop_oneof![3 => 1_usize..70, 1 => 250_usize..1_200];
    (first, bits, step, repeats, count).prop_flat_map(|(first, bits, step, repeats, count)| {
        vec(any::<u64>(), count).prop_map(move |noise| {
            let integer = |(number, noise): (u64, u64)| {
                let above = noise & u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                first
                    .wrapping_add(step.wrapping_mul(number))
                    .wrapping_add(above)
            };
            let runs = (0..).zip(noise).map(integer);
            runs.flat_map(|integer| std::iter::repeat_n(integer, repeats))
                .collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn lanes_are_read_again_and_never_longer_than_packed(integers in integers()) {
        let mut encoder = IntEncoder::default();
        for sign in [Sign::Signed, Sign::Unsigned] {
            let (mut column, mut simple) = (Vec::new(), Vec::new());
            encoder.write(integers.iter().copied(), sign, &mut column);
            let (found, _) = decode(&column, integers.len(), Scope::plain(sign), 1 << 20).unwrap();
            prop_assert_eq!(&found, &integers);
            write_simple(&integers, sign, &mut Vec::new(), &mut simple);
            prop_assert!(column.len() <= simple.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_column_unlike_that_of_the_last_chunk_is_read_again(columns in vec(integers(), 2..6)) {
        let mut encoder = IntEncoder::default();
        for integers in columns {
            let mut column = Vec::new();
            encoder.begin_table(1);
            encoder.write(integers.iter().copied(), Sign::Signed, &mut column);
            let scope = Scope::plain(Sign::Signed);
            let (found, _) = decode(&column, integers.len(), scope, 1 << 20).unwrap();
            prop_assert_eq!(&found, &integers);
        }
    }
}

#[test]
fn a_column_has_the_layout_of_the_last_chunk_until_it_is_much_longer_so() {
    let mut encoder = IntEncoder::default();
    let mut layout_of = |integers: &[u64]| {
        let mut column = Vec::new();
        encoder.begin_table(1);
        encoder.write(integers.iter().copied(), Sign::Unsigned, &mut column);
        column.first().copied()
    };
    let few_values: Vec<u64> = (0..1_024)
        .map(|number| number * number % 7 * 1_001)
        .collect();
    let runs: Vec<u64> = (0..1_024).map(|number| number / 100 % 3 * 1_001).collect();
    let all_differ: Vec<u64> = (0..1_024_u64)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    assert_eq!(layout_of(&few_values), Some(DICTIONARY));
    assert_eq!(
        layout_of(&runs),
        Some(DICTIONARY),
        "it is no longer than before"
    );
    assert_eq!(layout_of(&all_differ), Some(PACKED));
}
