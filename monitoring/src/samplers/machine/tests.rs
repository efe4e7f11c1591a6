use super::*;

#[test]
fn memory_is_told_in_bytes() {
    let text = "MemTotal:        8000000 kB\nMemFree:         1000000 kB\n\
                    MemAvailable:    5000000 kB\nSwapCached:  7 kB\nSwapTotal:       2000 kB\n\
                    SwapFree:        500 kB\nHugePages_Total:       0\n";
    let wanted = Usage {
        total: 8_192_000_000,
        available: 5_120_000_000,
        swap_total: 2_048_000,
        swap_free: 512_000,
    };
    assert_eq!(parse(text).unwrap(), wanted);
}

#[test]
fn fields_may_be_missing_but_for_the_total() {
    let old = "MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 20 kB\nCached: 30 kB\n";
    let usage = parse(old).unwrap();
    assert_eq!((usage.available, usage.swap_total), (60 * 1_024, 0));
    for text in [
        "",
        "MemTotal: x kB",
        "MemTotal: 1 kB",
        "MemTotal: -1 kB\nMemFree: 1 kB",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    let huge = format!("MemTotal: {} kB\nMemAvailable: {} kB", u64::MAX, u64::MAX);
    assert_eq!(parse(&huge).unwrap().total, u64::MAX);
}

#[test]
fn three_averages_come_first() {
    assert_eq!(
        parse_load("0.20 1.18 12.00 1/80 11206\n").unwrap(),
        [0.2, 1.18, 12.0]
    );
    for text in ["", "1 2", "a b c", "1 2 NaN", "1 2 inf", "-1 2 3"] {
        assert!(parse_load(text).is_err(), "{text}");
    }
}
