use super::*;

#[test]
fn doubles_of_java_are_read_to_the_bit() {
    for (text, number) in [
        ("0.25", 0.25),
        ("1.0E-7", 1e-7),
        ("1.0E21", 1e21),
        ("4.9E-324", f64::from_bits(1)),
        ("-0.0", -0.0),
        ("100.0", 100.0),
        ("1.7976931348623157E308", f64::MAX),
        ("Infinity", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("NaN", f64::NAN),
    ] {
        assert_eq!(
            floating::<f64>(text, "f64").unwrap().to_bits(),
            number.to_bits(),
            "{text}"
        );
    }
    assert_eq!(floating::<f32>("1.4E-45", "f32").unwrap().to_bits(), 1);
}

#[test]
fn what_java_does_not_write_is_no_number() {
    for text in [
        "", "inf", "nan", "-NaN", "0x1p3", "1,5", "1.0d", " 1.0", "infinity", "e",
    ] {
        let message = floating::<f64>(text, "f64").unwrap_err();
        assert!(message.contains("is not a number"), "{message}");
    }
    let range = floating::<f64>("1.0E999", "f64").unwrap_err();
    assert_eq!(&*range, "1.0E999 does not fit the type f64");
    let range = integer::<i32>("2147483648", "i32").unwrap_err();
    assert_eq!(&*range, "2147483648 does not fit the type i32");
    assert!(integer::<i32>("", "i32").is_err());
    assert_eq!(integer::<i64>("-9223372036854775808", "i64"), Ok(i64::MIN));
}

#[test]
fn plain_integers_are_those_that_the_standard_library_reads() {
    let numbers = (0..19).flat_map(|digits| {
        let power = 10_i64.pow(digits);
        [power - 1, power, power + 1, 123_456_789_012_345_678 / power]
    });
    let numbers = numbers.chain([i64::MAX]).flat_map(|it| [it, -it]);
    for number in numbers {
        for text in [format!("{number}"), format!("{number}\n7")] {
            let length = number.to_string().len();
            assert_eq!(
                plain_integer(text.as_bytes()),
                Some((number, length)),
                "{text}"
            );
        }
    }
    assert_eq!(plain_integer(b"-007;12345678"), Some((-7, 4)));
    for text in [
        "",
        "-",
        ";1",
        "+1",
        "--1",
        "x1",
        "9223372036854775808",
        "-9223372036854775808",
        "00000000000000000001",
        "18446744073709551617",
    ] {
        assert_eq!(plain_integer(text.as_bytes()), None, "{text}");
    }
    // Neighbours of the digits are none.
    for byte in 0..=u8::MAX {
        let mut text = *b"12345678";
        for place in 0..8 {
            text[place] = byte;
            assert_eq!(
                eight_digits(text).is_some(),
                byte.is_ascii_digit(),
                "{text:?}"
            );
            text = *b"12345678";
        }
    }
}
