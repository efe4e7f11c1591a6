//! Numbers as Java writes them.

use std::num::IntErrorKind;
use std::str::FromStr;

use super::error::Problem;

/// A decimal integer.
pub(super) fn integer<T>(text: &str, wanted: &'static str) -> Result<T, Problem>
where
    T: FromStr<Err = std::num::ParseIntError>,
{
    text.parse().map_err(|error: T::Err| {
        let found = Problem::shown(text);
        match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                Problem::OutOfRange { found, wanted }
            }
            _ => Problem::NotANumber { found, wanted },
        }
    })
}

/// A number as `Double.toString` and `Float.toString` write it: `0.25`, `1.0E-7`, `NaN`,
/// `-Infinity`.
///
/// Rust reads `inf` and `nan` too; Java writes neither.
pub(super) fn floating<T: Floating>(text: &str) -> Result<T, Problem> {
    let wanted = T::NAME;
    let special = match text {
        "NaN" => Some(T::NAN),
        "Infinity" => Some(T::INFINITY),
        "-Infinity" => Some(T::MINUS_INFINITY),
        _ => None,
    };
    if let Some(special) = special {
        return Ok(special);
    }
    let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let number: Option<T> = text
        .bytes()
        .all(is_plain)
        .then(|| text.parse().ok())
        .flatten();
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(Problem::OutOfRange {
            found: Problem::shown(text),
            wanted,
        }),
        None => Err(Problem::NotANumber {
            found: Problem::shown(text),
            wanted,
        }),
    }
}

/// `f32` and `f64`.
pub(super) trait Floating: FromStr + Copy {
    const NAME: &'static str;
    const NAN: Self;
    const INFINITY: Self;
    const MINUS_INFINITY: Self;

    fn is_finite(self) -> bool;
}

macro_rules! floating {
    ($($float:ident),*) => {$(
        impl Floating for $float {
            const NAME: &'static str = stringify!($float);
            const NAN: Self = $float::NAN;
            const INFINITY: Self = $float::INFINITY;
            const MINUS_INFINITY: Self = $float::NEG_INFINITY;

            fn is_finite(self) -> bool {
                $float::is_finite(self)
            }
        }
    )*};
}

floating!(f32, f64);

#[cfg(test)]
mod tests {
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
                floating::<f64>(text).unwrap().to_bits(),
                number.to_bits(),
                "{text}"
            );
        }
        assert_eq!(floating::<f32>("1.4E-45").unwrap().to_bits(), 1);
    }

    #[test]
    fn what_java_does_not_write_is_no_number() {
        for text in [
            "", "inf", "nan", "-NaN", "0x1p3", "1,5", "1.0d", " 1.0", "infinity", "e",
        ] {
            assert!(
                matches!(floating::<f64>(text), Err(Problem::NotANumber { .. })),
                "{text}"
            );
        }
        assert!(matches!(
            floating::<f64>("1.0E999"),
            Err(Problem::OutOfRange { .. })
        ));
        assert!(matches!(
            integer::<i32>("2147483648", "i32"),
            Err(Problem::OutOfRange { .. })
        ));
        assert!(matches!(
            integer::<i32>("", "i32"),
            Err(Problem::NotANumber { .. })
        ));
        assert_eq!(integer::<i64>("-9223372036854775808", "i64"), Ok(i64::MIN));
    }
}
