use super::*;

#[test]
fn numbers_survive_at_every_width_and_count() {
    for bits in 0..=64 {
        for count in (0..20_u64).chain(60..70).chain(120..140) {
            let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            let numbers: Vec<u64> = (0..count)
                .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let mut packed = vec![0xab];
            pack(&numbers, bits, &mut packed);
            assert_eq!(
                packed.len() - 1,
                packed_bytes(numbers.len(), bits),
                "{bits}"
            );
            let mut found = vec![7; numbers.len()];
            unpack(&packed[1..], bits, 0, &mut found);
            assert_eq!(found, numbers, "{bits}");
            unpack(&packed[1..], bits, u64::MAX, &mut found);
            assert!(
                found
                    .iter()
                    .zip(&numbers)
                    .all(|(a, b)| *a == b.wrapping_sub(1))
            );
        }
    }
}

#[test]
fn higher_bits_are_left_out() {
    let mut packed = Vec::new();
    pack(&[u64::MAX, 0b1011, 0], 3, &mut packed);
    assert_eq!(packed, [0b0001_1111, 0]);
}

#[test]
fn the_first_number_stands_in_the_lowest_bits() {
    let mut packed = Vec::new();
    pack(&[0b101, 0b011, 0b110], 3, &mut packed);
    assert_eq!(packed, [0b1001_1101, 0b1]);
}
