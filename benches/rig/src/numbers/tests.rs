use super::*;

#[test]
fn numbers_keep_three_digits() {
    for (value, expected) in [
        (0.0, "0.000"),
        (0.123_4, "0.123"),
        (12.345, "12.3"),
        (999.4, "999"),
        (999.9, "1.00k"),
        (1_234_567.0, "1.23M"),
        (2.5e9, "2.50G"),
    ] {
        assert_eq!(short(value), expected);
    }
}
