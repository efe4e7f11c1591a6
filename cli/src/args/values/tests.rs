use super::*;

#[test]
fn sizes_counts_and_rates_are_read() {
    assert_eq!(size("64KiB").unwrap().get(), 65_536);
    assert_eq!(size("1.5MB").unwrap().get(), 1_500_000);
    assert!(size("0").is_err());
    assert_eq!(count("1_000_000"), Ok(1_000_000));
    assert_eq!(count("250k"), Ok(250_000));
    assert_eq!(rate("0.5"), Ok(0.5));
    assert_eq!(rate("2.5k"), Ok(2_500.0));
    assert!(rate("0").is_err() && rate("NaN").is_err());
    assert_eq!(chunk_records("auto"), Ok(ChunkRecords::Auto));
    let fixed = chunk_records("16").unwrap();
    assert_eq!(fixed.to_string(), "16");
    assert!(chunk_records("0").is_err() && chunk_records("Auto").is_err());
}

#[test]
fn times_are_numbers_or_rfc_3339() {
    for (text, nanos) in [
        ("0", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2010-08-30T08:22:25Z", 1_283_156_545_000_000_000),
        ("2010-08-30T10:22:25.25+02:00", 1_283_156_545_250_000_000),
        ("2000-02-29T00:00:00-00:30", 951_784_200_000_000_000),
        ("2300-01-01T00:00:00Z", i64::MAX),
        ("1600-01-01T00:00:00Z", i64::MIN),
    ] {
        assert_eq!(time(text), Ok(nanos), "{text}");
    }
    for text in [
        "",
        "today",
        "2010-8-30T08:22:25Z",
        "2010-08-30T08:22:25",
        "2010-08-30",
    ] {
        assert!(time(text).is_err(), "{text}");
    }
}
