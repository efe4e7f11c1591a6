use super::*;

#[test]
fn control_characters_are_escaped() {
    assert_eq!(escape("plain, ümläut"), "plain, ümläut");
    assert_eq!(
        escape("a\x1b[31mb\x07\u{9b}2J\x7f\nc"),
        "a\\u001b[31mb\\u0007\\u009b2J\\u007f\\u000ac"
    );
    assert_eq!(escape_but("a\nb\r", |it| it == '\n'), "a\nb\\u000d");
}

#[test]
fn times_are_rfc_3339() {
    for (ns, text) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_283_156_545_250_000_999, "2010-08-30T08:22:25.250000Z"),
        (951_784_200_000_001_000, "2000-02-29T00:30:00.000001Z"),
        (i64::MAX, "2262-04-11T23:47:16.854775Z"),
        (i64::MIN, "1677-09-21T00:12:43.145224Z"),
    ] {
        assert_eq!(time(ns), text);
    }
}

#[test]
fn spans_have_a_unit_and_three_digits() {
    for (ns, text) in [
        (0.0, "0 ns"),
        (740.0, "740 ns"),
        (999.9, "1.00 us"),
        (12_345.0, "12.3 us"),
        (1_234_567.0, "1.23 ms"),
        (999_949_999.0, "1.00 s"),
        (-1.5e9, "-1.50 s"),
        (4.2e12, "4200 s"),
    ] {
        assert_eq!(span(ns), text);
    }
}
