use super::*;

#[test]
fn numbers_survive_at_every_length() {
    for shift in 0..64 {
        for number in [1_u64 << shift, (1_u64 << shift) - 1, u64::MAX >> shift] {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            assert_eq!(bytes.len(), encoded_len(number), "{number}");
            assert_eq!(encode(number).0[..bytes.len()], bytes);
            assert_eq!(read(&bytes), Ok((number, bytes.len())));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), Err(Broken::Truncated));
            }
        }
    }
}

#[test]
fn overlong_and_oversized_numbers_are_refused() {
    assert_eq!(read(&[0x80, 0x00]), Err(Broken::Malformed));
    assert_eq!(read(&[0xff; 10]), Err(Broken::Malformed));
    let mut largest = vec![0xff; 9];
    largest.push(0x01);
    assert_eq!(read(&largest), Ok((u64::MAX, 10)));
    largest[9] = 0x02;
    assert_eq!(read(&largest), Err(Broken::Malformed));
}

#[test]
fn zigzag_keeps_small_magnitudes_small() {
    for (signed, unsigned) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MIN, u64::MAX)] {
        assert_eq!(zigzag(signed), unsigned);
        assert_eq!(unzigzag(unsigned), signed);
    }
}
